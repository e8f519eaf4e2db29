-- Compare and set: replace a value unless it was changed meanwhile.
-- KEYS: a hash. ARGV: field, the value that is expected there, the value to be.
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
