-- Add 64-bit integers exactly. Put before what adds to cells.
--
-- Numbers are doubles here, exact to 2^53 only. So a cell is added as two halves of 32 bits.
local WORD, SIGN = 4294967296, 2147483648

-- Returns the sums, or nil if one does not fit in 64 bits; cells missing in old are zero.
local function added(old, delta)
  local cells = #delta / 8
  local form = "<" .. string.rep("I4i4", cells)
  local sum = {struct.unpack(form, old .. string.rep("\0", #delta - #old))}
  local more = {struct.unpack(form, delta)}
  for low = 1, 2 * cells, 2 do
    local lower, upper = sum[low] + more[low], sum[low + 1] + more[low + 1]
    if lower >= WORD then
      lower, upper = lower - WORD, upper + 1
    end
    if upper >= SIGN or upper < -SIGN then
      return nil
    end
    sum[low], sum[low + 1] = lower, upper
  end
  return struct.pack(form, unpack(sum, 1, 2 * cells))
end
