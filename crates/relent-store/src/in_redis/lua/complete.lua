-- KEYS: record. ARGV: fence, whether it failed, value, keep.
local record = row(KEYS[1])
if record.fence ~= ARGV[1] then
    return 0
end
if not record.failed then
    redis.call('HSET', KEYS[1], 'failed', ARGV[2], 'value', ARGV[3])
    write(KEYS[1], now, now, now + tonumber(ARGV[4]))
end
return 1
