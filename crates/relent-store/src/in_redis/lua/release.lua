-- KEYS: lease. ARGV: fence, channel.
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then
    return 0
end
redis.call('HSET', KEYS[1], 'from', text(now), 'till', text(now))
redis.call('PUBLISH', ARGV[2], '')
return 1
