-- KEYS: lease. ARGV: the lease behind its fence, for how long it is kept.
local clock = redis.call('TIME')
-- Sixteen digits of microseconds.
local at = string.sub('0000000000' .. clock[1] .. string.sub('000000' .. clock[2], -6), -16)
if redis.call('SET', KEYS[1], '1h' .. at .. ARGV[1], 'NX', 'PX', ARGV[2]) then
    return at
end
