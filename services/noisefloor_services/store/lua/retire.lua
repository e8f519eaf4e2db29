-- Drop sums, rows and seen ids of a closed epoch; the window goes on refusing its frames.
--
-- KEYS: 1 window  2 epochs  3 epoch  4 seen  5 late  6 cells or rows
--       7 capacity that accepted frames of the epoch have reserved  8 what was released
-- ARGV: 1 epoch
--
-- Returns 1, or 0 and changes nothing if the epoch is open.

local epoch, floor = tonumber(ARGV[1]), window_floor(KEYS[1])
if not floor then
  return NO_WINDOW
elseif not is_closed(KEYS[1], floor, epoch) then
  return 0
end
redis.call("UNLINK", KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8])
redis.call("SREM", KEYS[2], whole(epoch))
return 1
