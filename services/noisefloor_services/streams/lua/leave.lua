-- Forget consumers that hold nothing: one by name, or all that were idle for long.
--
-- KEYS: 1 frames
-- ARGV: 1 group  2 consumer, or nothing  3 least idle milliseconds
--
-- A consumer that holds entries is kept: forgetting it would forget that they were handed out.

local gone = 0
for _, facts in ipairs(redis.call("XINFO", "CONSUMERS", KEYS[1], ARGV[1])) do
  local consumer = {}
  for at = 1, #facts, 2 do
    consumer[facts[at]] = facts[at + 1]
  end
  local is_meant = consumer["name"] == ARGV[2]
      or (ARGV[2] == "" and consumer["idle"] >= tonumber(ARGV[3]))
  if is_meant and consumer["pending"] == 0 then
    redis.call("XGROUP", "DELCONSUMER", KEYS[1], ARGV[1], consumer["name"])
    gone = gone + 1
  end
end
return gone
