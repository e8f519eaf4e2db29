-- Take one step towards closing an epoch: shut it, and freeze it once what it took is settled.
--
-- KEYS: 1 window  2 epochs  3 epoch  4 frames
-- ARGV: 1 epoch  2 width of the window
--
-- The first call shuts the epoch: no frame of it is appended any more, and the last entry id of the
-- stream is noted as a mark. Frames that were accepted before have ids up to the mark. Once the
-- stream has no entry up to the mark, the epoch is frozen and the window moves past closed epochs.
-- Any call may be repeated, by any process.
-- Returns 1 if it was closed now, 0 if it was before, -1 if it lies beyond the window, 2 if frames
-- that were taken before are not settled yet.

local function last_entry(stream)
  local reply = redis.call("XINFO", "STREAM", stream)
  for at = 1, #reply, 2 do
    if reply[at] == "last-generated-id" then
      return reply[at + 1]
    end
  end
end

local epoch, floor = tonumber(ARGV[1]), window_floor(KEYS[1])
if not floor then
  return NO_WINDOW
elseif is_closed(KEYS[1], floor, epoch) then
  return 0
elseif epoch >= floor + tonumber(ARGV[2]) then
  return -1
end
-- The mark is taken once: a later one would wait for frames of other epochs that came since.
local mark = redis.call("HGET", KEYS[1], shut_field(epoch))
if not mark then
  mark = last_entry(KEYS[4])
  redis.call("HINCRBY", KEYS[3], "rows", 0)  -- an epoch without frames exists, too
  redis.call("SADD", KEYS[2], whole(epoch))
  redis.call("HSET", KEYS[1], shut_field(epoch), mark)
end
if #redis.call("XRANGE", KEYS[4], "-", mark, "COUNT", 1) > 0 then
  return 2
end
redis.call("HDEL", KEYS[1], shut_field(epoch))
redis.call("HSET", KEYS[1], whole(epoch), 1)
while redis.call("HDEL", KEYS[1], whole(floor)) == 1 do
  floor = floor + 1
end
redis.call("HSET", KEYS[1], "floor", whole(floor))
return 1
