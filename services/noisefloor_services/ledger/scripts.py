"""The ledger's scripts: each is one atomic step on the server.

They append and look; none of them changes or takes away what is there. A chained record is kept
with its hash before it (64 signs), so that a script can compare ends of chains without hashing.

Every script first looks whether this is still the ledger that the client opened, with at least as
many entries as the client has seen. A server that was emptied or set back looks like one where
nothing was spent; it has to refuse, not to grant.
"""

_IS_OURS = """
if redis.call('HGET', KEYS[1], 'ledger_id') ~= ARGV[1] then return {'lost'} end
if redis.call('HLEN', KEYS[2]) < tonumber(ARGV[2]) then return {'lost'} end
"""
"""KEYS: terms, places. ARGV: ledger id, how many entries the client has seen."""

CREATE = """
local known = redis.call('HMGET', KEYS[1], 'ledger_id', 'terms')
if known[1] then return known end
if ARGV[2] == '' then return {false, false} end
redis.call('HSETNX', KEYS[1], 'ledger_id', ARGV[2])
redis.call('HSETNX', KEYS[1], 'terms', ARGV[1])
return {ARGV[2], ARGV[1]}
"""
"""KEYS: terms. ARGV: terms, new id or '' to create nothing."""

# Order of the checks: a server that was set back refuses even a retry, before anything else; a
# known id is answered before the end of the chain is looked at, so that a retry is free.
APPEND = (
    _IS_OURS
    + """
local least = tonumber(ARGV[7])
if least > 0 and string.sub(redis.call('LINDEX', KEYS[3], least - 1) or '', 1, 64) ~= ARGV[8] then
  return {'behind'}
end
local place = redis.call('HGET', KEYS[2], ARGV[3])
if place then
  local position, log = string.match(place, '^(%d+) (.*)$')
  return {'known', redis.call('LINDEX', log, tonumber(position) - 1) or ''}
end
local length, last = redis.call('LLEN', KEYS[3]), redis.call('LINDEX', KEYS[3], -1)
if length < tonumber(ARGV[4]) then return {'lost'} end
if length > tonumber(ARGV[4]) then return {'changed'} end
if last and string.sub(last, 1, 64) ~= ARGV[5] then return {'lost'} end
redis.call('RPUSH', KEYS[3], ARGV[6])
redis.call('HSETNX', KEYS[2], ARGV[3], (length + 1) .. ' ' .. KEYS[3])
redis.call('SADD', KEYS[4], ARGV[9])
return {'appended', tostring(redis.call('HLEN', KEYS[2]))}
"""
)
"""KEYS: terms, places, log of the subject, subjects.
ARGV: ledger id, entries seen, spend id, the position and hash of the end that the record follows,
hash and record; then a position and hash that the log has at least, by the anchor; subject."""

# What is stored is returned before the seal is looked at: known bytes may be sent again, a sealed
# spend without them must not be drawn again.
PUBLISH = (
    _IS_OURS
    + """
if redis.call('SCARD', KEYS[5]) < tonumber(ARGV[5]) then return {'behind'} end
if redis.call('HEXISTS', KEYS[2], ARGV[3]) == 0 then return {'unspent'} end
local kept = redis.call('GET', KEYS[4])
if kept then return {'kept', kept} end
if redis.call('SISMEMBER', KEYS[3], ARGV[3]) == 1 then return {'sealed'} end
redis.call('SETNX', KEYS[4], ARGV[4])
redis.call('SADD', KEYS[5], ARGV[3])
return {'stored'}
"""
)
"""KEYS: terms, places, sealed ids, what is kept of this spend, settled ids.
ARGV: ledger id, entries seen, spend id, bytes, how many are settled at least."""

READ = (
    _IS_OURS
    + """
local found = {'read'}
for _, record in ipairs(redis.call('LRANGE', KEYS[3], tonumber(ARGV[3]), -1)) do
  found[#found + 1] = record
end
return found
"""
)
"""KEYS: terms, places, log of a subject. ARGV: ledger id, entries seen, first place (-1: the last
record alone)."""

FIND = (
    _IS_OURS
    + """
local place = redis.call('HGET', KEYS[2], ARGV[3])
if not place then return {'none'} end
local position, log = string.match(place, '^(%d+) (.*)$')
return {'read', redis.call('LINDEX', log, tonumber(position) - 1) or ''}
"""
)
"""KEYS: terms, places. ARGV: ledger id, entries seen, spend id."""

SEAL = (
    _IS_OURS
    + """
local sealed = 0
for _, id in ipairs(redis.call('HKEYS', KEYS[2])) do
  if redis.call('SADD', KEYS[4], id) == 1 then
    redis.call('SADD', KEYS[3], id)
    sealed = sealed + 1
  end
end
return {'sealed', tostring(sealed)}
"""
)
"""KEYS: terms, places, sealed ids, settled ids. ARGV: ledger id, 0. Seals every spend that has
no release: what it released may be out."""

SETTLE = (
    _IS_OURS
    + """
if ARGV[4] ~= '' then
  redis.call('SETNX', KEYS[5], string.sub(ARGV[4], 2))
  if redis.call('GET', KEYS[5]) ~= string.sub(ARGV[4], 2) then return {'redrawn'} end
elseif redis.call('HEXISTS', KEYS[2], ARGV[3]) == 0 then
  redis.call('SADD', KEYS[3], ARGV[3])
end
redis.call('SADD', KEYS[4], ARGV[3])
return {'settled'}
"""
)
"""KEYS: terms, places, sealed ids, settled ids, what is kept of the spend. ARGV: ledger id, 0,
spend id, '' or '+' with the bytes that were released. Comes before a restored entry: one that is
new here and has no bytes is sealed before it is booked, so that it is never drawn again."""
