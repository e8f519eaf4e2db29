-- Take over an entry that was abandoned, if it is still as it was seen.
--
-- KEYS: 1 frames
-- ARGV: 1 group  2 consumer  3 entry  4 its consumer as seen  5 its deliveries as seen
--
-- One entry at a time: a frame that crashes its consumer must not use up the attempts of others.
-- The minimal idle time is 0: Redis measures it by its wall clock, which may be set. If several
-- workers claim an entry, the first one changes its consumer and deliveries, so the others fail.
-- Returns the fields, or nothing.

local seen = redis.call("XPENDING", KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1)[1]
if not seen or seen[2] ~= ARGV[4] or seen[4] ~= tonumber(ARGV[5]) then
  return {}
end
local taken = redis.call("XCLAIM", KEYS[1], ARGV[1], ARGV[2], 0, ARGV[3])[1]
return taken and taken[2] or {}
