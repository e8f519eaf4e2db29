-- Append frames of one kind and epoch if the epoch is open and has capacity for them.
--
-- KEYS: 1 frames  2 window  3 epoch  4 seen  5 late  6 admission counters of the partition
--       7 capacity that accepted frames of the epoch have reserved
-- ARGV: 1 epoch  2 width of the window  3 most frames  4 most rows  5 most bytes
--       6 batch ids of 16 bytes  7 rows, 4 bytes each  8 sizes, 4 bytes each  9 .. the frames
--
-- This is the only place that decides whether a frame is accepted, and it is one step with the
-- append: once an epoch is shut here, no frame of it can enter the stream, whatever an ad server
-- has cached. Returns a letter for each frame: t accepted, r counted before, c the epoch is closed,
-- a it is too far ahead, f it is full, w it is full unless waiting frames prove to be duplicates.
-- An empty reply, the usual one, means that all were accepted.

local epoch, count = tonumber(ARGV[1]), #ARGV - 8
local most = {tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])}
local refused = {repeats = 0, closed = 0, again = 0, ahead = 0, full = 0}
local answers = {}

local function batch_ids()
  local ids = {}
  for i = 1, count do
    ids[i] = string.sub(ARGV[6], 16 * i - 15, 16 * i)
  end
  return ids
end

local function counted_answers()
  for name, number in pairs(refused) do
    if number > 0 then
      redis.call("HINCRBY", KEYS[6], name, number)
    end
  end
  return table.concat(answers)
end

-- As the role does with a frame that came after the close: a duplicate is known by its id.
local function refuse_closed()
  local ids, late_rows = batch_ids(), 0
  local has_state, kept = redis.call("EXISTS", KEYS[3]) == 1, redis.call("SCARD", KEYS[5])
  local seen = redis.call("SMISMEMBER", KEYS[4], unpack(ids))
  local late = redis.call("SMISMEMBER", KEYS[5], unpack(ids))
  for i = 1, count do
    local is_new, outcome = late[i] == 0, "closed"
    if seen[i] == 1 then
      outcome = "repeats"
    elseif is_new and has_state and kept < most[1] then
      is_new = redis.call("SADD", KEYS[5], ids[i]) == 1
      if is_new then
        kept, late_rows = kept + 1, late_rows + number_at(ARGV[7], i)
      end
    end
    if outcome == "closed" and not is_new then
      outcome = "again"
    end
    refused[outcome] = refused[outcome] + 1
    answers[i] = outcome == "repeats" and "r" or "c"
  end
  if late_rows > 0 then
    redis.call("HINCRBY", KEYS[7], "late_rows", late_rows)
  end
  return counted_answers()
end

local window = redis.call("HMGET", KEYS[2], "floor", whole(epoch), shut_field(epoch))
local floor = tonumber(window[1] or -1)
if floor < 0 then
  return NO_WINDOW
elseif epoch < floor or window[2] or window[3] then
  return refuse_closed()
elseif epoch >= floor + tonumber(ARGV[2]) then
  refused.ahead = count
  answers[1] = string.rep("a", count)
  return counted_answers()
end

-- Free capacity is what is neither counted nor reserved: frames that wait may all be new.
local state = redis.call("HMGET", KEYS[3], "rows", "bytes")
local counted = {redis.call("SCARD", KEYS[4]), tonumber(state[1] or 0), tonumber(state[2] or 0)}
local names = {"frames", "rows", "bytes"}
local used = redis.call("HMGET", KEYS[7], unpack(names))
local is_empty = redis.call("XLEN", KEYS[1]) == 0
for at = 1, 3 do
  local waiting = tonumber(used[at] or 0)
  if is_empty and waiting ~= 0 then
    -- A frame that was buried unread did not give its reservation back (bury.lua does not know
    -- its epoch). In an empty stream nothing waits, so a reservation that is left is dropped.
    redis.call("HDEL", KEYS[7], names[at])
    waiting = 0
  end
  used[at] = counted[at] + waiting
end

local function has_capacity(amounts, needs)
  return amounts[1] + needs[1] <= most[1] and amounts[2] + needs[2] <= most[2]
      and amounts[3] + needs[3] <= most[3]
end

local function append(first, last, needs)
  for i = first, last do
    redis.call("XADD", KEYS[1], "0-*", "f", ARGV[8 + i])
  end
  for at = 1, 3 do
    if needs[at] > 0 then
      redis.call("HINCRBY", KEYS[7], names[at], needs[at])
    end
    used[at] = used[at] + needs[at]
  end
end

-- Usually there is capacity for all of them.
local form = "<" .. string.rep("I4", count)
local rows, sizes = {struct.unpack(form, ARGV[7])}, {struct.unpack(form, ARGV[8])}
local all = {count, 0, 0}
for i = 1, count do
  all[2], all[3] = all[2] + rows[i], all[3] + sizes[i]
end
if has_capacity(used, all) then
  append(1, count, all)
  return ""
end

local ids = batch_ids()
for i = 1, count do
  local needs = {1, rows[i], sizes[i]}
  if has_capacity(used, needs) then
    append(i, i, needs)
    answers[i] = "t"
  elseif redis.call("SMISMEMBER", KEYS[4], ids[i])[1] == 1 then
    answers[i], refused.repeats = "r", refused.repeats + 1
  elseif has_capacity(counted, needs) then
    answers[i] = "w"
  else
    answers[i], refused.full = "f", refused.full + 1
  end
end
return counted_answers()
