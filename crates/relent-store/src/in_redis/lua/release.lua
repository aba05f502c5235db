-- KEYS: lease. ARGV: fence, channel.
local lease = row(KEYS[1])
if lease.fence ~= ARGV[1] then
    return 0
end
redis.call('HSET', KEYS[1], 'from', text(now), 'till', text(now))
redis.call('PUBLISH', ARGV[2], '')
return 1
