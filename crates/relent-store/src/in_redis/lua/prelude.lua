-- Before the scripts that need the time or a hash.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local micros = clock[1] * 1000000 + clock[2]

local function text(number)
    return string.format('%.0f', number)
end

-- Grows from one claim to the next, also over what expired or was lost, because time does.
local function after(last)
    return math.max((tonumber(last) or 0) + 1, micros)
end

-- A hash as a table; empty where there is none.
local function row(key)
    local flat, fields = redis.call('HGETALL', key), {}
    for nth = 1, #flat, 2 do
        fields[flat[nth]] = flat[nth + 1]
    end
    return fields
end

local function keep(key, millis)
    redis.call('PEXPIRE', key, text(math.max(1, millis)))
end
