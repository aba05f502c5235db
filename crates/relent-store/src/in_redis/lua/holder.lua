-- KEYS: lease.
local rest, busy = left(part(19, 34), part(35, 50))
if state ~= 'h' or busy == 0 then
    return {}
end
return {part(73, 72 + tonumber(part(67, 69))), fence, digits(busy)}
