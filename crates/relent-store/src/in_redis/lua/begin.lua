local since, unknown, none = part(19, 34), part(67, 82), string.rep('0', 16)

-- Grows from one claim to the next, also over what expired or was lost, because time does.
local function grown()
    return digits(math.max((tonumber(fence) or 0) + 1, tonumber(at)))
end

local function claim(fence, since, unknown)
    redis.call('SET', KEYS[1], '1r' .. fence .. since .. string.sub(ARGV[1], 1, 32) .. unknown .. string.sub(ARGV[1], 49),
        'PX', ARGV[2])
    return {'started', fence, unknown}
end

if state == 'l' then
    return claim(grown(), at, none)
end
local rest, busy = left(part(35, 50), part(51, 66))
if part(83, 114) ~= string.sub(ARGV[1], 49, 80) then
    return {'mismatch'}
end
if state ~= 'r' then
    return {'replay', state, part(35 + #ARGV[1], -1)}
end
if busy > 0 then
    if part(115, 130) == string.sub(ARGV[1], 81, 96) then
        return claim(fence, since, unknown)
    end
    return {'busy', digits(busy)}
end
if unknown ~= none then
    since = unknown
end
if ARGV[3] == '1' then
    return claim(grown(), at, since)
end
return {'unknown', since}
