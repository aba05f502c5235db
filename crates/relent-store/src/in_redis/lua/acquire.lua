-- KEYS: lease. ARGV: nonce, owner, ttl, name, how long what ended is remembered.
local lease, ttl = row(KEYS[1]), tonumber(ARGV[3])

local function hold(fence, millis, ...)
    redis.call('HSET', KEYS[1], 'fence', text(fence), 'from', text(now), 'till', text(now + millis), ...)
    keep(KEYS[1], millis + tonumber(ARGV[5]))
    return {'acquired', text(fence), text(now + millis)}
end

local rest = lease.fence and left(tonumber(lease.from), tonumber(lease.till)) or 0
if rest > 0 then
    if lease.nonce == ARGV[1] then
        return hold(tonumber(lease.fence), ttl)
    end
    if now < tonumber(lease.from) then
        hold(tonumber(lease.fence), rest)
    end
    return {'held', lease.owner, text(rest)}
end
return hold(after(lease.fence), ttl, 'nonce', ARGV[1], 'owner', ARGV[2], 'name', ARGV[4])
