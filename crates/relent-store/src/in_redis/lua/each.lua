-- KEYS: those of each. ARGV: what is said of each, as much of one as of another.
-- Each has the answer that it would have alone, but what went wrong, or is long: that is asked alone.
local told, length = {}, #ARGV / #KEYS
for nth, key in ipairs(KEYS) do
    local is_well, answer = pcall(one, {key}, {unpack(ARGV, (nth - 1) * length + 1, nth * length)})
    if not is_well or type(answer) == 'table' and (answer.err or #(answer[3] or '') > 16384) then
        answer = false
    end
    told[nth] = answer
end
return told
