-- KEYS: upstream, its seconds, its processes, its permits by second.
-- ARGV: name, process, seq, window in seconds, calls, retries, successes, failures, run, is_open, is_last, whether it is only
-- a question, reserves, how long those of others count; and where a rate is booked from: gap, burst, ahead, permits, within, back (nanoseconds).
local second, window = math.floor(now / 1000), tonumber(ARGV[4])

local function numbers(packed)
    local list = {}
    for word in string.gmatch(packed or '', '%S+') do
        list[#list + 1] = tonumber(word)
    end
    return list
end

local function pack(list)
    for nth = 1, #list do
        list[nth] = text(list[nth])
    end
    return table.concat(list, ' ')
end

local process = numbers(redis.call('HGET', KEYS[3], ARGV[2]))
local is_new = ARGV[12] ~= '1' and (process[1] or 0) < tonumber(ARGV[3])
if is_new then
    local widest = math.max(window, tonumber(redis.call('HGET', KEYS[1], 'window')) or 0, 60)
    local counts = numbers(redis.call('HGET', KEYS[2], text(second)))
    if #counts == 0 then
        -- The first of this second keeps house.
        for _, old in ipairs(redis.call('HKEYS', KEYS[2])) do
            if tonumber(old) < second - widest then
                redis.call('HDEL', KEYS[2], old)
            end
        end
        for _, old in ipairs(redis.call('HKEYS', KEYS[4])) do
            if tonumber(old) < second - widest then
                redis.call('HDEL', KEYS[4], old)
            end
        end
        local all = redis.call('HGETALL', KEYS[3])
        for nth = 1, #all, 2 do
            if numbers(all[nth + 1])[2] < now - widest * 1000 then
                redis.call('HDEL', KEYS[3], all[nth])
            end
        end
    end
    for nth = 1, 4 do
        counts[nth] = (counts[nth] or 0) + tonumber(ARGV[4 + nth])
    end
    redis.call('HSET', KEYS[2], text(second), pack(counts))
    local run = tonumber(ARGV[9])
    if tonumber(ARGV[7]) == 0 then
        run = run + (tonumber(redis.call('HGET', KEYS[1], 'run')) or 0)
    end
    redis.call('HSET', KEYS[1], 'run', text(run), 'window', text(widest), 'name', ARGV[1])
    if ARGV[11] == '1' then
        redis.call('HDEL', KEYS[3], ARGV[2])
    else
        -- Calls of long ago are forgotten little by little.
        local calls, span = 0, window * 1000
        if process[4] then
            local gone = math.min(span, math.max(0, now - process[2]))
            calls = math.floor(process[4] * (span - gone) / span)
        end
        calls = calls + tonumber(ARGV[5])
        redis.call('HSET', KEYS[3], ARGV[2], pack({tonumber(ARGV[3]), now, tonumber(ARGV[10]), calls, tonumber(ARGV[13])}))
    end
    for _, key in ipairs(KEYS) do
        keep(key, 86400000)
    end
    -- What a hand holds, and what is owed for permits, is longer than what was counted: 400 days.
    keep(KEYS[1], 34560000000)
end

-- The same as `Pace::book` of the other engines.
local booked, at_once, wait = 0, 0, 0
if ARGV[15] then
    local gap, ahead, within = tonumber(ARGV[15]), tonumber(ARGV[17]), tonumber(ARGV[19])
    local wanted, back = 0, 0
    if is_new then
        wanted, back = tonumber(ARGV[18]), tonumber(ARGV[20])
    end
    local pace = redis.call('HMGET', KEYS[1], 'owed', 'at')
    local gone = math.max(0, now - (tonumber(pace[2] or '') or now)) * 1000000
    local owed = math.max(0, (tonumber(pace[1] or '') or 0) - gone)
    owed = math.max(0, owed - gap * back)

    local function till(room)
        return room < owed and 0 or math.floor((room - owed) / gap) + 1
    end
    booked = math.min(till(ahead + within), wanted)
    at_once = math.min(till(ahead), booked)
    wait = math.max(0, owed + at_once * gap - ahead)
    if ARGV[12] ~= '1' then
        redis.call('HSET', KEYS[1], 'owed', text(owed + booked * gap), 'at', text(now), 'gap', ARGV[15], 'burst', ARGV[16])
        if booked ~= back then
            local taken = (tonumber(redis.call('HGET', KEYS[4], text(second)) or '') or 0) + booked - back
            redis.call('HSET', KEYS[4], text(second), text(math.max(0, taken)))
        end
        keep(KEYS[1], 34560000000)
        keep(KEYS[4], 86400000)
    end
end

local sum, open, open_calls, processes, reserved = {0, 0, 0, 0}, 0, 0, 0, 0
local there = redis.call('HGETALL', KEYS[2])
for nth = 1, #there, 2 do
    local at = tonumber(there[nth])
    if is_new and at > second then
        -- Calls of seconds that come again do not count twice.
        local counts = numbers(there[nth + 1])
        counts[1] = 0
        redis.call('HSET', KEYS[2], there[nth], pack(counts))
    end
    -- Of the second that the beginning of the window cuts, and of what was told before the clock went back, calls do not count, and all
    -- else does.
    if at >= second - window and at <= second + window then
        for column, count in ipairs(numbers(there[nth + 1])) do
            if column > 1 or at > second - window and at <= second then
                sum[column] = sum[column] + count
            end
        end
    end
end
local all = redis.call('HGETALL', KEYS[3])
for nth = 2, #all, 2 do
    local told = numbers(all[nth])
    if told[2] >= now - window * 1000 and told[2] <= now + window * 1000 then
        processes = processes + 1
        if all[nth - 1] ~= ARGV[2] and told[2] >= now - tonumber(ARGV[14]) then
            reserved = reserved + (told[5] or 0)
        end
        if told[3] == 1 then
            open, open_calls = open + 1, open_calls + told[4]
        end
    end
end
local kept, permits = row(KEYS[1]), 0
local taken = redis.call('HGETALL', KEYS[4])
for nth = 1, #taken, 2 do
    local at = tonumber(taken[nth])
    if at > second - window and at <= second then
        permits = permits + tonumber(taken[nth + 1])
    end
end
return {text(sum[1]), text(sum[2]), text(sum[3]), text(sum[4]), kept.run or '0', text(processes), text(open),
    text(math.min(open_calls, sum[1])), kept.held or '', text(now), kept.gap or '', kept.burst or '', text(permits), text(booked),
    text(at_once), text(wait), text(reserved)}
