-- What the scripts about packed things share, which packed.rs lays out: what there is, and what is left of it. For how long it
-- was kept when it was written stands in it, and the server says how much of that is left.
local packed = redis.call('GET', KEYS[1])
if packed and string.sub(packed, 1, 1) ~= '1' then
    return redis.error_reply('OTHERVERSION of what is packed')
end

local function part(from, till)
    return packed and string.sub(packed, from, till) or ''
end

local state, fence = part(2, 2), part(3, 18)

local function digits(number)
    return string.format('%016.0f', number)
end

-- Of what was kept for `full` milliseconds and held for `lease` of them.
local function left(full, lease)
    full, lease = tonumber(full) or 0, tonumber(lease) or 0
    local rest = redis.call('PTTL', KEYS[1])
    -- A clock that leaps back makes nothing longer than it was.
    if rest > full and full > 0 then
        redis.call('PEXPIRE', KEYS[1], string.format('%.0f', full))
        rest = full
    end
    return rest, math.max(0, lease - (full - rest))
end
