-- KEYS: record. ARGV: fence, lease.
if state == '' or state == 'l' or fence ~= ARGV[1] then
    return 0
end
if state ~= 'r' then
    return 1
end
local rest, busy = left(part(35, 50), part(51, 66))
if busy == 0 then
    return 0
end
local lease = tonumber(ARGV[2])
local full = math.max(rest, lease)
redis.call('SETRANGE', KEYS[1], 34, digits(full) .. digits(lease))
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', full))
return 1
