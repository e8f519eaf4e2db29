-- Forget a consumer that holds nothing, and its signs of life.
--
-- KEYS: 1 frames  2 beats
-- ARGV: 1 group  2 consumer
--
-- A consumer that holds entries is kept: forgetting it would forget that they were handed out.

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
