-- KEYS: lease. ARGV: the lease behind its fence, for how long it is kept.
if redis.call('SET', KEYS[1], '1h' .. at .. ARGV[1], 'NX', 'PX', ARGV[2]) then
    return at
end
