-- Take over the next entry that was handed out and abandoned, and say how often it was handed out.
--
-- KEYS: 1 frames
-- ARGV: 1 group  2 consumer  3 least idle milliseconds  4 where to go on
--
-- One at a time: a frame that kills its consumer must not use up the chances of its neighbours.
-- Returns where to go on ("0-0" at the end) and, if there was one, entry id, fields, deliveries.

local found = redis.call("XAUTOCLAIM", KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], "COUNT", 1)
local entry = found[2][1]
if not entry then
  return {found[1]}
end
local held = redis.call("XPENDING", KEYS[1], ARGV[1], entry[1], entry[1], 1)
return {found[1], entry[1], entry[2], held[1][4]}
