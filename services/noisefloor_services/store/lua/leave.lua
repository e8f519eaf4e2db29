-- Remove a consumer that has no pending entries, and its heartbeat.
--
-- KEYS: 1 frames  2 beats
-- ARGV: 1 group  2 consumer
--
-- A consumer with pending entries stays: DELCONSUMER would drop them from the pending list, so that
-- they would never be delivered again.

for _, facts in ipairs(redis.call("XINFO", "CONSUMERS", KEYS[1], ARGV[1])) do
  local consumer = {}
  for at = 1, #facts, 2 do
    consumer[facts[at]] = facts[at + 1]
  end
  if consumer["name"] == ARGV[2] and consumer["pending"] == 0 then
    redis.call("XGROUP", "DELCONSUMER", KEYS[1], ARGV[1], ARGV[2])
    redis.call("HDEL", KEYS[2], ARGV[2])
    return 1
  end
end
return 0
