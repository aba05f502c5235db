-- KEYS: record. ARGV: fence, whether to forget, how long its fence is remembered then.
if state == '' or state == 'l' or fence ~= ARGV[1] then
    return 0
end
if state ~= 'r' then
    return 1
end
if ARGV[2] == '1' then
    -- So that the next fence is greater even if the clock leaps back. No claim has it.
    redis.call('SET', KEYS[1], '1l' .. fence, 'PX', ARGV[3])
else
    left(part(35, 50), part(51, 66))
    -- Its lease ends.
    redis.call('SETRANGE', KEYS[1], 50, string.rep('0', 16))
end
return 1
