-- KEYS: value. ARGV: version, nonce, whether there is a value, value, key, how long what was removed is remembered.
local value = row(KEYS[1])
local current, expected = tonumber(value.version) or 0, tonumber(ARGV[1])
if value.nonce == ARGV[2] and current > expected then
    return {'replaced', value.version}
end
if current ~= expected and not (expected == 0 and not value.value) then
    return {'conflict', value.version or '0', value.value and '1' or '0', value.value or ''}
end
local version = text(after(value.version))
redis.call('HSET', KEYS[1], 'version', version, 'nonce', ARGV[2], 'key', ARGV[5])
if ARGV[3] == '1' then
    redis.call('HSET', KEYS[1], 'value', ARGV[4])
    redis.call('PERSIST', KEYS[1])
else
    redis.call('HDEL', KEYS[1], 'value')
    keep(KEYS[1], tonumber(ARGV[6]))
end
return {'replaced', version}
