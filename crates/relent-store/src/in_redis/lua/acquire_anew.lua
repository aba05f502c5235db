-- KEYS: lease. ARGV: the lease behind its fence, for how long it is kept.
local clock = redis.call('TIME')
local micros = clock[1] * 1000000 + clock[2]
if redis.call('SET', KEYS[1], '1h' .. string.format('%016.0f', micros) .. ARGV[1], 'NX', 'PX', ARGV[2]) then
    return micros
end
