-- KEYS: record. ARGV: fence, lease.
local record = row(KEYS[1])
if record.fence ~= ARGV[1] then
    return 0
end
if record.failed then
    return 1
end
if lease_left(record) == 0 then
    return 0
end
local expires = now + left(tonumber(record.from), tonumber(record.expires))
local till = now + tonumber(ARGV[2])
write(KEYS[1], now, till, math.max(expires, till))
return 1
