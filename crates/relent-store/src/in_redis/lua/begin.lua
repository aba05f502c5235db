-- KEYS: record. ARGV: fingerprint, nonce, lease, keep, whether to take over, scope, key.
local record = row(KEYS[1])
local lease, kept = tonumber(ARGV[3]), tonumber(ARGV[4])

local function claim(fence, since, unknown)
    if next(record) then
        redis.call('DEL', KEYS[1])
    end
    write(KEYS[1], now, now + lease, now + math.max(kept, lease), 'fingerprint', ARGV[1], 'nonce', ARGV[2],
        'fence', text(fence), 'since', text(since), 'scope', ARGV[6], 'key', ARGV[7],
        unpack(unknown and {'unknown', text(unknown)} or {}))
    return {'started', text(fence), unknown and text(unknown) or ''}
end

if not is_there(record) then
    return claim(after(record.fence or record.last), now, nil)
end
if record.fingerprint ~= ARGV[1] then
    heal(KEYS[1], record)
    return {'mismatch'}
end
if record.failed then
    heal(KEYS[1], record)
    return {'replay', record.failed, record.value}
end
local busy = lease_left(record)
if busy > 0 then
    if record.nonce == ARGV[2] then
        return claim(tonumber(record.fence), tonumber(record.since), tonumber(record.unknown))
    end
    heal(KEYS[1], record)
    return {'busy', text(busy)}
end
local since = record.unknown or record.since
if ARGV[5] == '1' then
    return claim(after(record.fence or record.last), now, tonumber(since))
end
heal(KEYS[1], record)
return {'unknown', since}
