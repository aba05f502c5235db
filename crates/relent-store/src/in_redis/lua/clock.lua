-- When it is, in sixteen digits of microseconds.
local clock = redis.call('TIME')
local at = string.sub('0000000000' .. clock[1] .. string.sub('000000' .. clock[2], -6), -16)
