-- KEYS: record. ARGV: the record behind its times, for how long it is kept, whether to take over.
-- Most keys are begun once. Such a one needs to know nothing else.
local clock = redis.call('TIME')
-- Sixteen digits of microseconds.
local at = string.sub('0000000000' .. clock[1] .. string.sub('000000' .. clock[2], -6), -16)
if redis.call('SET', KEYS[1], '1r' .. at .. at .. ARGV[1], 'NX', 'PX', ARGV[2]) then
    return at
end
