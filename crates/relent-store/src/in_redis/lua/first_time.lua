-- KEYS: seen. ARGV: nonce, keep, scope, key.
local seen = row(KEYS[1])
if seen.nonce then
    return seen.nonce == ARGV[1] and 1 or 0
end
redis.call('HSET', KEYS[1], 'nonce', ARGV[1], 'scope', ARGV[3], 'key', ARGV[4])
keep(KEYS[1], tonumber(ARGV[2]))
return 1
