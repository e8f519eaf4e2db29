-- Close an epoch, once or again, and move the window past what is closed.
--
-- KEYS: 1 window  2 epochs  3 epoch
-- ARGV: 1 epoch  2 width of the window
--
-- Returns 1 if it was closed now, 0 if it was before, -1 if it lies beyond the window.

local epoch, floor = tonumber(ARGV[1]), window_floor(KEYS[1])
if not floor then
  return NO_WINDOW
elseif is_closed(KEYS[1], floor, epoch) then
  return 0
elseif epoch >= floor + tonumber(ARGV[2]) then
  return -1
end
redis.call("HINCRBY", KEYS[3], "rows", 0)
redis.call("SADD", KEYS[2], whole(epoch))
redis.call("HSET", KEYS[1], whole(epoch), 1)
while redis.call("HDEL", KEYS[1], whole(floor)) == 1 do
  floor = floor + 1
end
redis.call("HSET", KEYS[1], "floor", whole(floor))
return 1
