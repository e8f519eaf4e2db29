"""The ledger's scripts: each is one atomic step on the server.

Amounts come as decimal texts below 2**53, where the server's floating numbers are exact; totals
are kept by HINCRBY in 64 bits. A total at or above 2**53 (only a merge can bring one about) reads
as a float that is no smaller than 2**53, and no budget reaches that: it is refused all the same.

Every script first looks whether this is still the ledger that the client opened, with at least as
many entries as the client has seen. A server that was emptied or set back looks like one where
nothing was spent; it has to refuse, not to grant.
"""

_IS_OURS = """
if redis.call('HGET', KEYS[1], 'ledger_id') ~= ARGV[1] then return {'lost'} end
local size = redis.call('HLEN', KEYS[2])
if size < tonumber(ARGV[2]) then return {'lost'} end
"""
"""KEYS: terms, entries. ARGV: ledger id, how many entries the client has seen."""

CREATE = """
local known = redis.call('HMGET', KEYS[1], 'ledger_id', 'terms')
if known[1] then return known end
if ARGV[2] == '' then return {false, false} end
redis.call('HSET', KEYS[1], 'ledger_id', ARGV[2], 'terms', ARGV[1],
           'micro_epsilon', ARGV[3], 'delta_units', ARGV[4])
return {ARGV[2], ARGV[1]}
"""
"""KEYS: terms. ARGV: terms, new id or '' to create nothing, budget of epsilon, of delta."""

# Order of the checks: a server that was set back refuses even a retry, before anything else; a
# known id is answered before the budget is looked at, so that a retry is free. The budget is
# compared by a difference of numbers below 2**53, which is exact; their sum might not be.
SPEND = (
    _IS_OURS
    + """
local ids = redis.call('SCARD', KEYS[5])
local epsilon = redis.call('HGET', KEYS[3], ARGV[4]) or '0'
local delta = redis.call('HGET', KEYS[4], ARGV[4]) or '0'
if ids < tonumber(ARGV[8]) or tonumber(epsilon) < tonumber(ARGV[9])
    or tonumber(delta) < tonumber(ARGV[10]) then
  return {'behind'}
end
local known = redis.call('HGET', KEYS[2], ARGV[3])
if known == ARGV[5] then
  return {'known', tostring(size), tostring(ids), epsilon, delta}
end
if known then return {'conflict'} end
local budget = redis.call('HMGET', KEYS[1], 'micro_epsilon', 'delta_units')
if tonumber(ARGV[6]) > tonumber(budget[1]) - tonumber(epsilon)
    or tonumber(ARGV[7]) > tonumber(budget[2]) - tonumber(delta) then
  return {'refused', epsilon, delta}
end
redis.call('HSET', KEYS[2], ARGV[3], ARGV[5])
redis.call('HINCRBY', KEYS[3], ARGV[4], ARGV[6])
redis.call('HINCRBY', KEYS[4], ARGV[4], ARGV[7])
redis.call('SADD', KEYS[5], ARGV[3])
return {'granted', tostring(size + 1), tostring(ids + 1),
        redis.call('HGET', KEYS[3], ARGV[4]), redis.call('HGET', KEYS[4], ARGV[4])}
"""
)
"""KEYS: terms, entries, epsilons, deltas, ids of the subject.
ARGV: ledger id, entries seen, spend id, subject, entry, epsilon, delta; then entries, epsilon and
delta that the subject has at least: fewer are a server that was set back."""

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
redis.call('SET', KEYS[4], ARGV[4])
redis.call('SADD', KEYS[5], ARGV[3])
return {'stored'}
"""
)
"""KEYS: terms, entries, sealed ids, what is kept of this spend, settled ids.
ARGV: ledger id, entries seen, spend id, bytes, how many are settled at least."""

READ = (
    _IS_OURS
    + """
local ids = ARGV[4] == 'entries' and redis.call('SMEMBERS', KEYS[5]) or {}
local found = {'read', redis.call('HGET', KEYS[3], ARGV[3]) or '0',
               redis.call('HGET', KEYS[4], ARGV[3]) or '0'}
for _, id in ipairs(ids) do
  found[#found + 1] = redis.call('HGET', KEYS[2], id)
end
return found
"""
)
"""KEYS: as for a spend. ARGV: ledger id, entries seen, subject, 'entries' or ''.
Both totals, then the subject's entries if ARGV[4] is 'entries'."""

READ_TOTALS = (
    _IS_OURS
    + """
local found = {'held', tostring(redis.call('SCARD', KEYS[5]))}
for at = 3, #ARGV do
  found[#found + 1] = tostring(redis.call('SCARD', KEYS[at + 3]))
  found[#found + 1] = redis.call('HGET', KEYS[3], ARGV[at]) or '0'
  found[#found + 1] = redis.call('HGET', KEYS[4], ARGV[at]) or '0'
end
return found
"""
)
"""KEYS: terms, entries, epsilons, deltas, settled ids; then the ids of each subject.
ARGV: ledger id, 0; then subjects. How many spends are settled; then entries, epsilon and delta of
each subject."""

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
"""KEYS: terms, entries, sealed ids, settled ids. ARGV: ledger id, 0. Seals every spend that has
no release: what it released may be out."""

MERGE = (
    _IS_OURS
    + """
local fresh, epsilons, deltas = {}, {}, {}
for at = 3, #ARGV, 6 do
  local id, subject = ARGV[at], ARGV[at + 1]
  local known = redis.call('HGET', KEYS[2], id)
  if known and known ~= ARGV[at + 2] then return {'conflict', id} end
  if not known then
    fresh[#fresh + 1] = at
    epsilons[subject] = (epsilons[subject] or redis.call('HGET', KEYS[3], subject) or 0)
                        + tonumber(ARGV[at + 3])
    deltas[subject] = (deltas[subject] or redis.call('HGET', KEYS[4], subject) or 0)
                      + tonumber(ARGV[at + 4])
    if epsilons[subject] > 2^62 or deltas[subject] > 2^62 then return {'overflow'} end
  end
  local kept = ARGV[at + 5] ~= '' and redis.call('GET', KEYS[6 + 2 * (at - 3) / 6 + 2])
  if kept and kept ~= string.sub(ARGV[at + 5], 2) then return {'redrawn', id} end
end
for _, at in ipairs(fresh) do
  local id, subject = ARGV[at], ARGV[at + 1]
  redis.call('HSET', KEYS[2], id, ARGV[at + 2])
  redis.call('HINCRBY', KEYS[3], subject, ARGV[at + 3])
  redis.call('HINCRBY', KEYS[4], subject, ARGV[at + 4])
  redis.call('SADD', KEYS[6 + 2 * (at - 3) / 6 + 1], id)
  if ARGV[at + 5] == '' then redis.call('SADD', KEYS[5], id) end
  redis.call('SADD', KEYS[6], id)
end
for at = 3, #ARGV, 6 do
  if ARGV[at + 5] ~= '' then
    redis.call('SADD', KEYS[6], ARGV[at])
    redis.call('SET', KEYS[6 + 2 * (at - 3) / 6 + 2], string.sub(ARGV[at + 5], 2))
  end
end
return {'merged', tostring(#fresh)}
"""
)
"""KEYS: terms, entries, epsilons, deltas, sealed ids, settled ids; then for each entry the ids of
its subject and what is kept of it. ARGV: ledger id, 0; then for each entry spend id, subject,
entry, epsilon, delta, and '' or '+' with the bytes that were released. Everything is looked at
before the first write: a refused merge leaves no trace."""
