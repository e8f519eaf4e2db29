-- Judge frames of one kind and epoch, add the new ones, record their ids, acknowledge: all or none.
--
-- KEYS: 1 frames  2 counters  3 window  4 epochs  5 epoch  6 seen  7 late  8 cells or rows
--       9 capacity that accepted frames of the epoch have reserved
-- ARGV: 1 group  2 consumer  3 epoch  4 width of the window  5 most frames  6 most rows
--       7 most bytes  8 "sum" or "collect"  9 how many entries (n)  10 claims, a letter each
--       11 batch ids of 16 bytes  12 rows, 4 bytes each  13 sizes, 4 bytes each
--       14 .. 13+n entry ids in ascending order, without a repeated batch id
--       then for sums: pairs of (offset, 64-bit little-endian integers to be added there);
--       for collections: the rows of each new frame.
--
-- What is to be added belongs to exactly the entries that the consumer claims are new ("n"; the
-- others are duplicates, "r"). If the claims are not the truth, nothing is changed and the truth is
-- returned, a letter for each entry: n new, r duplicate, l lost (the consumer does not own it any
-- more: another one settled or claimed it), f the epoch is full, a the epoch is too far ahead.
-- An empty reply means that everything the consumer owned is settled.

local group, consumer, epoch = ARGV[1], ARGV[2], tonumber(ARGV[3])
local most_frames, most_rows, most_bytes = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local count, claims = tonumber(ARGV[9]), ARGV[10]
local entries, ids = {unpack(ARGV, 14, 13 + count)}, {}
for i = 1, count do
  ids[i] = string.sub(ARGV[11], 16 * i - 15, 16 * i)
end

local floor = window_floor(KEYS[3])
if not floor then
  return NO_WINDOW
end

local owned = {}
-- Ownership decides, not XACK's result: a paused consumer that resumes owns nothing any more.
local pending = redis.call("XPENDING", KEYS[1], group, entries[1], entries[count], 65536, consumer)
for _, one in ipairs(pending) do
  owned[one[1]] = true
end

-- Give back the capacity that admission reserved for what is settled; it reserved none for frames
-- that were appended without admission (tests, chaos).
local function give_back(frames, rows, bytes)
  for name, number in pairs({frames = frames, rows = rows, bytes = bytes}) do
    if number > 0 and redis.call("HEXISTS", KEYS[9], name) == 1
        and redis.call("HINCRBY", KEYS[9], name, -number) <= 0 then
      redis.call("HDEL", KEYS[9], name)
    end
  end
end

local function settle()
  local done, rows, bytes = {}, 0, 0
  for i = 1, count do
    if owned[entries[i]] then
      done[#done + 1] = entries[i]
      rows, bytes = rows + number_at(ARGV[12], i), bytes + number_at(ARGV[13], i)
    end
  end
  if #done > 0 then
    redis.call("XACK", KEYS[1], group, unpack(done))
    redis.call("XDEL", KEYS[1], unpack(done))
    give_back(#done, rows, bytes)
  end
end

local function refuse()
  local has_state = redis.call("EXISTS", KEYS[5]) == 1
  local seen = redis.call("SMISMEMBER", KEYS[6], unpack(ids))
  local late = redis.call("SMISMEMBER", KEYS[7], unpack(ids))
  local done, repeats, kept = 0, 0, redis.call("SCARD", KEYS[7])
  for i = 1, count do
    if owned[entries[i]] then
      done = done + 1
      if seen[i] + late[i] > 0 then
        repeats = repeats + 1
      elseif has_state and kept < most_frames then
        kept = kept + redis.call("SADD", KEYS[7], ids[i])
        redis.call("HINCRBY", KEYS[5], "late_rows", number_at(ARGV[12], i))
      end
    end
  end
  redis.call("HINCRBY", KEYS[2], "duplicates", repeats)
  redis.call("HINCRBY", KEYS[2], "late", done - repeats)
  settle()
end

if is_closed(KEYS[3], floor, epoch) then
  refuse()
  return ""
elseif epoch >= floor + tonumber(ARGV[4]) then
  return string.rep("a", count)
end

local seen = redis.call("SMISMEMBER", KEYS[6], unpack(ids))
local frames = redis.call("SCARD", KEYS[6])
local state = redis.call("HMGET", KEYS[5], "rows", "bytes")
local rows, bytes = tonumber(state[1] or 0), tonumber(state[2] or 0)
local truth, fresh, new_rows, new_bytes = {}, {}, 0, 0
for i = 1, count do
  local more, size = number_at(ARGV[12], i), number_at(ARGV[13], i)
  if not owned[entries[i]] then
    truth[i] = "l"
  elseif seen[i] == 1 then
    truth[i] = "r"
  elseif frames + #fresh >= most_frames or rows + new_rows + more > most_rows
      or bytes + new_bytes + size > most_bytes then
    truth[i] = "f"
  else
    truth[i] = "n"
    fresh[#fresh + 1] = ids[i]
    new_rows, new_bytes = new_rows + more, new_bytes + size
  end
end
truth = table.concat(truth)
if truth ~= claims then
  return truth
end

-- Everything that can fail is done before the first write, since a script is not rolled back: the
-- sums are computed, and checked for overflow, before any of them is stored.
local writes = {}
if ARGV[8] == "sum" then
  for at = 14 + count, #ARGV, 2 do
    local from, delta = tonumber(ARGV[at]), ARGV[at + 1]
    local old = redis.call("GETRANGE", KEYS[8], from, from + #delta - 1)
    local piece = added(old, delta)
    if not piece then
      return redis.error_reply("CELLOVERFLOW a sum does not fit in 64 bits")
    end
    writes[#writes + 1] = {from, piece}
  end
end
for _, write in ipairs(writes) do
  redis.call("SETRANGE", KEYS[8], write[1], write[2])
end
if ARGV[8] == "collect" then
  for at = 14 + count, #ARGV do
    redis.call("RPUSH", KEYS[8], ARGV[at])
  end
end
if #fresh > 0 then
  redis.call("SADD", KEYS[6], unpack(fresh))
  redis.call("HINCRBY", KEYS[5], "rows", new_rows)
  redis.call("HINCRBY", KEYS[5], "bytes", new_bytes)
  redis.call("SADD", KEYS[4], whole(epoch))
  redis.call("HINCRBY", KEYS[2], "counted", #fresh)
  redis.call("HINCRBY", KEYS[2], "reports", new_rows)
end
if #fresh < count then
  redis.call("HINCRBY", KEYS[2], "duplicates", count - #fresh)
end
-- Last: entries leave the stream only after their ids and sums are recorded.
settle()
return ""
