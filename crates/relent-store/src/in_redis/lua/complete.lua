-- KEYS: record. ARGV: fence, whether it failed, value, keep.
local known = redis.call('HMGET', KEYS[1], 'fence', 'failed')
if known[1] ~= ARGV[1] then
    return 0
end
if not known[2] then
    write(KEYS[1], now, now, now + tonumber(ARGV[4]), 'failed', ARGV[2], 'value', ARGV[3])
end
return 1
