"""Ledgers of format 1, which had totals and no chain, carried over to this format.

Format 1 charged plain sums of epsilon and delta. What it has spent of a data set is taken off the
budget as such, which basic composition covers; the filter is made of what is left. Ids stay used,
releases stay stored, sealed spends stay sealed. Everything is written in one atomic step, and the
anchor after it; a repeated command finds nothing more to do.

The keys of format 1 stay where they are: a publisher of an older version must not be started on
the same store again.
"""

import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from redis import Redis

from noisefloor.accounting import (
    Amount,
    ChainTail,
    LedgerEntry,
    LedgerTerms,
    carried,
    read_entry,
)
from noisefloor.canonical_json import canonical_json
from noisefloor.errors import BadSnapshot, LedgerAbsent, UnlikeTerms
from noisefloor_services.ledger.anchor import LedgerAnchor, with_ids
from noisefloor_services.ledger.redis_ledger import RedisLedger
from noisefloor_services.ledger.terms import BadAnchor, LedgerBehind, LedgerKeys

_MIGRATE = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
for at = 3, #ARGV, 3 do
  local log = KEYS[3 + at / 3]
  local position = redis.call('RPUSH', log, ARGV[at + 2])
  redis.call('HSETNX', KEYS[2], ARGV[at], position .. ' ' .. log)
  redis.call('SADD', KEYS[3], ARGV[at + 1])
end
redis.call('HSETNX', KEYS[1], 'terms', ARGV[1])
redis.call('HSETNX', KEYS[1], 'migrated_from', '1')
redis.call('HSETNX', KEYS[1], 'ledger_id', ARGV[2])
return 1
"""
"""KEYS: terms, places, subjects; then the log of each entry. ARGV: terms, ledger id; then of each
entry its spend id, subject, and hash and record."""


@dataclass(frozen=True, slots=True)
class MigrationSummary:
    """What became of ledgers.

    Attributes:
        entries: How many entries were carried over.
        ledgers: How many ledgers were of format 1.
    """

    entries: int = 0
    ledgers: int = 0

    def joined(self, other: "MigrationSummary") -> "MigrationSummary":
        """Return what became of both."""
        return MigrationSummary(self.entries + other.entries, self.ledgers + other.ledgers)

    def __str__(self) -> str:
        if not self.ledgers:
            return "No ledger is of format 1: nothing was changed."
        return f"Carried over {self.entries} entries of {self.ledgers} ledgers of format 1."


def migrate(
    client: "Redis", name: str, terms: LedgerTerms, anchor_path: Path | None
) -> MigrationSummary:
    """Carry a ledger of format 1 over, with its anchor; nothing is lowered, repeating is free.

    Raises:
        LedgerAbsent: There is no ledger of either format.
        UnlikeTerms: It has another budget, relation or model.
        BadSnapshot: An entry of format 1 is damaged, or its entries miss their totals.
        LedgerBehind: It holds less than its anchor of format 1 says; restore a newer backup first.
    """
    keys = LedgerKeys(name)
    stored = cast(list[bytes | None], client.hmget(keys.terms_of_1, ["ledger_id", "terms"]))
    if stored[0] is None:
        if not client.exists(keys.terms):
            raise LedgerAbsent(f"There is no ledger {name} on this server, of any format.")
        return MigrationSummary()
    if stored[1] != terms.of_format(1):
        raise UnlikeTerms(f"Ledger {name} has another budget, relation or model.")
    is_new = not client.exists(keys.terms)
    count = 0
    if is_new:
        entries = _entries(client, keys)
        _check_against_anchor(anchor_path, entries)
        count = _carry_over(client, keys, terms, stored[0], entries)
    if anchor_path is not None and _version(anchor_path) == 1:
        anchor_path.replace(anchor_path.with_name(f"{anchor_path.name}.format-1"))
        anchor = LedgerAnchor(anchor_path, name, terms)
        anchor.create()
        anchor.raise_to(with_ids(RedisLedger.open(client, name, terms)))
    return MigrationSummary(count, int(is_new))


def _carry_over(
    client: "Redis",
    keys: LedgerKeys,
    terms: LedgerTerms,
    ledger_id: bytes,
    entries: list[LedgerEntry],
) -> int:
    at = int(time.time())
    tails: dict[str, ChainTail] = {}
    named = [keys.terms, keys.places, keys.subjects]
    arguments: list[bytes | str] = [terms.content, ledger_id]
    for entry in entries:
        tail = tails.get(entry.subject) or ChainTail.start(terms, entry.subject)
        record = tail.next(carried(entry), at)
        tails[entry.subject] = ChainTail.after(record)
        named.append(keys.log(entry.subject))
        stored = record.digest.encode("ascii") + record.content
        arguments += [entry.spend_id, entry.subject, stored]
    client.register_script(_MIGRATE)(keys=named, args=arguments)
    return len(entries)


def _entries(client: "Redis", keys: LedgerKeys) -> list[LedgerEntry]:
    """Read the entries of format 1, and compare them with the totals that it kept beside."""
    stored = cast(dict[bytes, bytes], client.hgetall(keys.entries_of_1))
    entries = sorted(map(_entry, stored.values()), key=lambda entry: entry.spend_id)
    for part in ("micro_epsilon", "delta_units"):
        totals = cast(dict[bytes, bytes], client.hgetall(keys.totals_of_1(part)))
        for subject, total in totals.items():
            own = [entry for entry in entries if entry.subject == subject.decode()]
            if sum(getattr(entry.debited, part) for entry in own) != int(total):
                raise BadSnapshot(f"Ledger of format 1: entries of {subject.decode()} miss it.")
    return entries


def _entry(written: bytes) -> LedgerEntry:
    try:
        outer = json.loads(written)
        body = outer["body"]
        is_whole = outer["checksum"] == hashlib.sha256(canonical_json(body)).hexdigest()
        if is_whole and body["version"] == 1 and len(body["entries"]) == 1:
            return read_entry(body["entries"][0], "entry", version=1)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise BadSnapshot("Ledger of format 1: an entry is damaged.")


def _check_against_anchor(path: Path | None, entries: list[LedgerEntry]) -> None:
    """Refuse a store that holds less than its anchor of format 1 says."""
    if path is None or _version(path) != 1:
        return
    document: dict[str, Any] = json.loads(path.read_bytes().split(b"\n")[0])
    for subject, (count, epsilon, delta) in document["subjects"].items():
        own = [entry for entry in entries if entry.subject == subject]
        spent = sum((entry.debited for entry in own), Amount(0))
        if len(own) < count or not Amount(epsilon, delta).fits(spent):
            raise LedgerBehind(
                f"{path}: the server holds less of {subject} than this anchor says. Put a newer "
                "backup back, or raise the ledger with the version that wrote it, then migrate."
            )


def _version(path: Path) -> int:
    """Return the format of an anchor; 0 where there is none."""
    try:
        body, checksum = path.read_bytes().split(b"\n")[:2]
        is_whole = checksum.decode("ascii", "replace") == hashlib.sha256(body).hexdigest()
        version = json.loads(body)["version"]
    except FileNotFoundError:
        return 0
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        is_whole, version = False, 0
    if not is_whole:
        raise BadAnchor(f"{path}: the ledger's anchor is damaged.")
    return int(version)
