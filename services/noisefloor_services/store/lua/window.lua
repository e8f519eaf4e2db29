-- The window of a kind's epochs: shared by the scripts that judge frames, and put before them.
-- A window is a hash: "floor" is the oldest open epoch; a field named after a later epoch means
-- that it is closed; "shut:" and an epoch means that it takes no more frames and is being closed:
-- the value is the last entry of the stream at that moment. Epochs have at most ten digits:
-- doubles hold them exactly.

local function whole(number)
  return string.format("%.0f", number)
end

local function window_floor(window)
  local floor = redis.call("HGET", window, "floor")
  return floor and tonumber(floor)
end

local function is_closed(window, floor, epoch)
  return epoch < floor or redis.call("HEXISTS", window, whole(epoch)) == 1
end

local function shut_field(epoch)
  return "shut:" .. whole(epoch)
end

local function number_at(packed, i)
  return (struct.unpack("<I4", packed, 4 * i - 3))
end

local NO_WINDOW = redis.error_reply("NOWINDOW the kind has no window here: prepare it first")
