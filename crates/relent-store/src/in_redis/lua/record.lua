-- What the scripts about idempotency records share.
local function lease_left(record)
    return left(tonumber(record.from), tonumber(record.till))
end

local function is_there(record)
    if not record.fence then
        return false
    end
    local expired = left(tonumber(record.from), tonumber(record.expires)) == 0
    return not (expired and (record.failed or lease_left(record) == 0))
end

-- With the fields and values that follow.
local function write(key, from, till, expires, ...)
    redis.call('HSET', key, 'from', text(from), 'till', text(till), 'expires', text(expires), ...)
    keep(key, math.max(expires, till) - now)
end

-- Written anew after the clock leapt back.
local function heal(key, record)
    if now < tonumber(record.from) then
        write(key, now, now + lease_left(record), now + left(tonumber(record.from), tonumber(record.expires)))
    end
end
