-- KEYS: record. ARGV: fence, whether to forget, how long its fence is remembered then.
local record = row(KEYS[1])
if record.fence ~= ARGV[1] then
    return 0
end
if record.failed then
    return 1
end
if ARGV[2] == '1' then
    redis.call('DEL', KEYS[1])
    -- So that the next fence is greater even if the clock leaps back. No claim has it.
    redis.call('HSET', KEYS[1], 'last', ARGV[1])
    keep(KEYS[1], tonumber(ARGV[3]))
else
    write(KEYS[1], now, now, now + left(tonumber(record.from), tonumber(record.expires)))
end
return 1
