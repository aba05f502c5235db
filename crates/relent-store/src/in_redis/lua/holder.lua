-- KEYS: lease.
local lease = row(KEYS[1])
local rest = lease.fence and left(tonumber(lease.from), tonumber(lease.till)) or 0
if rest == 0 then
    return {}
end
return {lease.owner, lease.fence, text(rest)}
