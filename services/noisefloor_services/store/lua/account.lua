-- Return a partition's numbers, all of one instant.
--
-- KEYS: 1 frames  2 counters  3 admission counters
--
-- XINFO is called here and not by the client: its reply contains the first and the last frame.

local facts = {}
local reply = redis.call("XINFO", "STREAM", KEYS[1])
for at = 1, #reply, 2 do
  facts[reply[at]] = reply[at + 1]
end

local function numbers(key, names)
  local found = redis.call("HMGET", key, unpack(names))
  for at = 1, #names do
    found[at] = tonumber(found[at] or 0)
  end
  return found
end

local outcomes = numbers(KEYS[2], {"counted", "duplicates", "dead_letters", "late", "reports"})
local refused = numbers(KEYS[3], {"repeats", "closed", "again", "ahead", "full"})
-- A duplicate that was recognised at admission was accepted (202), though never appended.
local repeats = refused[1]
return {
  facts["entries-added"] + repeats, facts["length"], outcomes[1], outcomes[2] + repeats,
  outcomes[3], outcomes[4], outcomes[5], unpack(refused, 2),
}
