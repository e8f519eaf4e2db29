-- Register a document under a name that is neither taken nor used up.
-- KEYS: documents by name (hash), used names (set). ARGV: name, document, the most documents.
-- Returns what became of it, and the document that is registered under the name.
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then
  return {'gone', ''}
end
local stored = redis.call('HGET', KEYS[1], ARGV[1])
if stored then
  return {'kept', stored}
end
if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then
  return {'full', ''}
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return {'new', ARGV[2]}
