-- KEYS: record. ARGV: fence, what came of it, for how long it is kept, the same in digits, value.
local record = redis.call('GET', KEYS[1])
if not record then
    return 0
end
if string.sub(record, 1, 1) ~= '1' then
    return redis.error_reply('OTHERVERSION of what is packed')
end
local state = string.sub(record, 2, 2)
if state == 'l' or string.sub(record, 3, 18) ~= ARGV[1] then
    return 0
end
if state == 'r' then
    redis.call('SET', KEYS[1], '1' .. ARGV[2] .. string.sub(record, 3, 34) .. ARGV[4] .. string.sub(record, 51) .. ARGV[5],
        'PX', ARGV[3])
end
return 1
