"""The twin that must fail: a consumer that adds and acknowledges at once, and looks at nothing.

Atomic it is, and still wrong: it adds whatever the acknowledgement says, so that work which was
taken over, or sent twice, counts twice. It merges as much as the exact one and makes as few calls:
so it also measures what exactness costs.
"""

import hashlib
from importlib.resources import files

from noisefloor_services.streams.batch import Group
from noisefloor_services.streams.keys import GROUP
from noisefloor_services.streams.scripts import Command, Script
from noisefloor_services.streams.server import Server

_TEXT = """
-- KEYS: 1 frames  2 counters  3 epochs  4 epoch  5 cells or rows
-- ARGV: 1 group  2 epoch  3 reduction  4 rows  5 how many entries; entries; additions
local count = tonumber(ARGV[5])
local entries = {unpack(ARGV, 6, 5 + count)}
for at = 6 + count, #ARGV, ARGV[3] == "sum" and 2 or 1 do
  if ARGV[3] == "sum" then
    local from, delta = tonumber(ARGV[at]), ARGV[at + 1]
    local old = redis.call("GETRANGE", KEYS[5], from, from + #delta - 1)
    redis.call("SETRANGE", KEYS[5], from, added(old, delta))
  else
    redis.call("RPUSH", KEYS[5], ARGV[at])
  end
end
redis.call("HINCRBY", KEYS[4], "rows", ARGV[4])
redis.call("SADD", KEYS[3], ARGV[2])
redis.call("HINCRBY", KEYS[2], "counted", count)
redis.call("XACK", KEYS[1], ARGV[1], unpack(entries))
redis.call("XDEL", KEYS[1], unpack(entries))
return ""
"""


def _script() -> Script:
    cells = files("noisefloor_services.streams") / "lua" / "cells.lua"
    text = cells.read_text(encoding="utf-8") + _TEXT
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


NAIVE = _script()


def load(server: Server) -> None:
    """Make the script known to a server; one that is restarted forgets it."""
    server.call("SCRIPT", "LOAD", NAIVE.text)


class NaiveGroup(Group):
    """Frames that are added unseen."""

    __slots__ = ()

    def command(self) -> Command:
        """Return the call that adds everything."""
        kind, epoch, keys = self.kind.name, self.epoch, self.keys
        names = [
            keys.frames,
            keys.counters,
            keys.epochs(kind),
            keys.epoch(kind, epoch),
            keys.kept(kind, epoch),
        ]
        rows = sum(entry.frame.batch.num_rows for entry in self.entries)
        fixed = (GROUP, epoch, self.kind.reduction.value, rows, len(self.entries))
        entry_ids = (entry.delivery.entry_id for entry in self.entries)
        return NAIVE.command(names, [*fixed, *entry_ids, *self._payload()])
