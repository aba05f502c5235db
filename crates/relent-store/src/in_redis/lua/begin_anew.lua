-- KEYS: record. ARGV: the record behind its times, for how long it is kept, whether to take over.
-- Most keys are begun once. Such a one needs to know nothing else.
if redis.call('SET', KEYS[1], '1r' .. at .. at .. ARGV[1], 'NX', 'PX', ARGV[2]) then
    return at
end
