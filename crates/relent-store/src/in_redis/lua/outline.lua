-- KEYS: what is packed. ARGV: how much of it is wanted. How long it is, and how long it is kept.
return {redis.call('GETRANGE', KEYS[1], 0, ARGV[1]), redis.call('STRLEN', KEYS[1]), redis.call('PTTL', KEYS[1])}
