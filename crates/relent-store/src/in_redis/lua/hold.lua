-- KEYS: upstream. ARGV: name, how it is held.
redis.call('HSET', KEYS[1], 'name', ARGV[1])
if ARGV[2] == '' then
    redis.call('HDEL', KEYS[1], 'held')
else
    redis.call('HSET', KEYS[1], 'held', ARGV[2])
end
return 1
