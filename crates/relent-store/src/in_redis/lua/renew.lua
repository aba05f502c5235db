-- KEYS: lease. ARGV: fence, ttl, how long what ended is remembered.
local lease, ttl = row(KEYS[1]), tonumber(ARGV[2])
if lease.fence ~= ARGV[1] or left(tonumber(lease.from), tonumber(lease.till)) == 0 then
    return ''
end
redis.call('HSET', KEYS[1], 'from', text(now), 'till', text(now + ttl))
keep(KEYS[1], ttl + tonumber(ARGV[3]))
return text(now + ttl)
