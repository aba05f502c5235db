-- KEYS: record. ARGV: fence, whether to forget.
local record = row(KEYS[1])
if record.fence ~= ARGV[1] then
    return 0
end
if record.failed then
    return 1
end
if ARGV[2] == '1' then
    redis.call('DEL', KEYS[1])
else
    write(KEYS[1], now, now, now + left(tonumber(record.from), tonumber(record.expires)))
end
return 1
