-- Put frames that can never count with the dead letters, once each, and acknowledge them.
--
-- KEYS: 1 frames  2 counters  3 letters
-- ARGV: 1 group  2 consumer  3 most letters, then for each: entry id, key, reason, size in bytes
--
-- An entry that the consumer does not own any more is passed over. Returns how many were settled.

local function comes_before(a, b)
  -- Byte by byte: Lua's < on strings depends on the server's locale.
  for at = 1, math.min(#a, #b) do
    if string.byte(a, at) ~= string.byte(b, at) then
      return string.byte(a, at) < string.byte(b, at)
    end
  end
  return #a < #b
end

local settled = 0
for at = 4, #ARGV, 4 do
  local entry, key, reason, size = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  if #redis.call("XPENDING", KEYS[1], ARGV[1], entry, entry, 1, ARGV[2]) == 1 then
    local kept = redis.call("HGET", KEYS[3], key)
    if kept then
      -- One key with two faults: which of them is kept must not depend on the order of arrival.
      local kept_size, kept_reason = string.match(kept, "^(%d+) (.*)$")
      local is_same = reason == kept_reason
      if (is_same and tonumber(size) < tonumber(kept_size))
          or (not is_same and comes_before(reason, kept_reason)) then
        redis.call("HSET", KEYS[3], key, size .. " " .. reason)
      end
      redis.call("HINCRBY", KEYS[2], "duplicates", 1)
    else
      if redis.call("HLEN", KEYS[3]) < tonumber(ARGV[3]) then
        redis.call("HSET", KEYS[3], key, size .. " " .. reason)
      end
      redis.call("HINCRBY", KEYS[2], "dead_letters", 1)
    end
    redis.call("XACK", KEYS[1], ARGV[1], entry)
    redis.call("XDEL", KEYS[1], entry)
    settled = settled + 1
  end
end
return settled
