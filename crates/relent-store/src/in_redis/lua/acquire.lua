local rest, busy = left(part(19, 34), part(35, 50))
if state == 'h' and busy > 0 then
    if part(51, 66) ~= string.sub(ARGV[1], 33, 48) then
        return {'held', part(73, 72 + tonumber(part(67, 69))), digits(busy)}
    end
else
    fence = digits(math.max((tonumber(fence) or 0) + 1, tonumber(at)))
end
redis.call('SET', KEYS[1], '1h' .. fence .. ARGV[1], 'PX', ARGV[2])
return {'acquired', fence, digits(math.floor(tonumber(at) / 1000) + tonumber(string.sub(ARGV[1], 17, 32)))}
