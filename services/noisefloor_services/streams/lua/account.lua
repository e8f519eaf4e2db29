-- Return a partition's numbers, all of one instant.
--
-- KEYS: 1 frames  2 counters
--
-- Asked here and not by XINFO from outside: that reply holds the first and the last frame.

local facts = {}
local reply = redis.call("XINFO", "STREAM", KEYS[1])
for at = 1, #reply, 2 do
  facts[reply[at]] = reply[at + 1]
end
local names = {"counted", "duplicates", "dead_letters", "late", "reports"}
local outcomes = redis.call("HMGET", KEYS[2], unpack(names))
for at = 1, #names do
  outcomes[at] = tonumber(outcomes[at] or 0)
end
return {facts["entries-added"], facts["length"], unpack(outcomes)}
