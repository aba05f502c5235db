-- KEYS: lease. ARGV: fence, for how long it is kept and held in digits, for how long it is kept.
local rest, busy = left(part(19, 34), part(35, 50))
if state ~= 'h' or fence ~= ARGV[1] or busy == 0 then
    return ''
end
redis.call('SETRANGE', KEYS[1], 18, ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
local clock = redis.call('TIME')
return digits(clock[1] * 1000 + math.floor(clock[2] / 1000) + tonumber(string.sub(ARGV[2], 17, 32)))
