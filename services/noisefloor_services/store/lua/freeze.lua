-- Store a value of a closed epoch's answer, once; return what is stored.
--
-- KEYS: 1 epoch  2 what was released of it
-- ARGV: 1 field  2 value
--
-- Returns nothing if the epoch was retired meanwhile: then there is no answer to keep.

if redis.call("EXISTS", KEYS[1]) == 0 then
  return false
end
redis.call("HSETNX", KEYS[2], ARGV[1], ARGV[2])
return redis.call("HGET", KEYS[2], ARGV[1])
