local since, unknown, none = part(19, 34), part(67, 82), string.rep('0', 16)

local function claim(last, began, before)
    local new = digits(math.max((tonumber(last) or 0) + 1, micros))
    if last == nil then
        new = fence
    end
    redis.call('SET', KEYS[1], '1r' .. new .. began .. string.sub(ARGV[1], 1, 32) .. before .. string.sub(ARGV[1], 49),
        'PX', ARGV[2])
    return {'started', new, before}
end

if state == 'l' then
    return claim(fence, at, none)
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
        return claim(nil, since, unknown)
    end
    return {'busy', digits(busy)}
end
if unknown ~= none then
    since = unknown
end
if ARGV[3] == '1' then
    return claim(fence, at, since)
end
return {'unknown', since}
