-- Take over an entry that was abandoned, if it is still as it was seen.
--
-- KEYS: 1 frames
-- ARGV: 1 group  2 consumer  3 entry  4 who held it  5 how often it was handed out
--
-- One at a time: a frame that kills its consumer must not use up the chances of its neighbours.
-- No idle time is given: it would be measured by the server's wall clock. Of several workers that
-- judge alike, the first one changes what the others expect. Returns the fields, or nothing.

local held = redis.call("XPENDING", KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1)[1]
if not held or held[2] ~= ARGV[4] or held[4] ~= tonumber(ARGV[5]) then
  return {}
end
local taken = redis.call("XCLAIM", KEYS[1], ARGV[1], ARGV[2], 0, ARGV[3])[1]
return taken and taken[2] or {}
