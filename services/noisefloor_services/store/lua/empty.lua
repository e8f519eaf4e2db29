-- Delete the oldest frames of a collection that is dropped, settled or not.
--
-- KEYS: 1 frames
-- ARGV: 1 group
--
-- Entry by entry: no user has the right to delete the stream itself. Few at a time: each may have a
-- megabyte, and XRANGE copies it. Returns how many were deleted; 0 once there are none.

local ids = {}
for at, entry in ipairs(redis.call("XRANGE", KEYS[1], "-", "+", "COUNT", 16)) do
  ids[at] = entry[1]
end
if #ids > 0 then
  redis.call("XACK", KEYS[1], ARGV[1], unpack(ids))
  redis.call("XDEL", KEYS[1], unpack(ids))
end
return #ids
