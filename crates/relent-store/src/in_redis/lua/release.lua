-- KEYS: lease. ARGV: fence, channel.
local head = redis.call('GETRANGE', KEYS[1], 0, 17)
if string.sub(head, 3) ~= ARGV[1] then
    return 0
end
if string.sub(head, 1, 2) == '1h' then
    redis.call('SETRANGE', KEYS[1], 1, 'f')
    redis.call('PUBLISH', ARGV[2], '')
end
return 1
