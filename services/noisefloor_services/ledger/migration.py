"""Ledgers of format 1, which had totals and no chain, carried over to this format.

Format 1 charged plain sums of epsilon and delta. What it has spent of a data set is taken off the
budget as such, which basic composition covers; the filter is made of what is left. Ids stay used,
releases stay stored, sealed spends stay sealed. Everything is written in one atomic step. After it
the anchor is made anew, whole, from what the server then holds, and replaces the old one in one
step. A command that was killed at any point is repeated; until then the old anchor keeps every
publisher of this version out.

A store that holds less than its anchor says is refused: less was spent in it, or a release is
lost, which would then be drawn a second time.

The keys of format 1 stay where they are: a publisher of an older version must not be started on
the same store again.
"""

import hashlib
import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from redis import Redis

from noisefloor.accounting import (
    Amount,
    ChainedRecord,
    ChainTail,
    LedgerEntry,
    LedgerTerms,
    LossTotal,
    carried,
    read_entry,
)
from noisefloor.canonical_json import canonical_json
from noisefloor.errors import BadSnapshot, LedgerAbsent, UnlikeTerms
from noisefloor_services.ledger.anchor import LedgerAnchor, with_ids
from noisefloor_services.ledger.redis_ledger import RedisLedger
from noisefloor_services.ledger.terms import (
    BadAnchor,
    LedgerBehind,
    LedgerKeys,
    LedgerTotals,
    SubjectTotals,
)

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
        anchors: How many anchors were of format 1.
    """

    entries: int = 0
    ledgers: int = 0
    anchors: int = 0

    def joined(self, other: "MigrationSummary") -> "MigrationSummary":
        """Return what became of both."""
        return MigrationSummary(
            self.entries + other.entries,
            self.ledgers + other.ledgers,
            self.anchors + other.anchors,
        )

    def __str__(self) -> str:
        if self.ledgers:
            return f"Carried over {self.entries} entries of {self.ledgers} ledgers of format 1."
        if self.anchors:
            return f"Carried over {self.anchors} anchors of format 1; their ledgers were before."
        return "No ledger is of format 1: nothing was changed."


def migrate(
    client: "Redis", name: str, terms: LedgerTerms, anchor_path: Path | None
) -> MigrationSummary:
    """Carry a ledger of format 1 over, with its anchor; nothing is lowered, repeating is free.

    Raises:
        LedgerAbsent: There is no ledger of either format.
        UnlikeTerms: It has another budget, relation or model.
        BadSnapshot: An entry of format 1 is damaged, its entries miss their totals, or a release
            is gone.
        LedgerBehind: It holds less than its anchor of format 1 says; restore a newer backup first.
        BadAnchor: The anchor is damaged, or another ledger's.
    """
    keys = LedgerKeys(name)
    ledger_id = _ledger_to_carry_over(client, keys, terms)
    older = _OlderAnchor.read(anchor_path, name, terms)
    moved = MigrationSummary(anchors=int(older is not None))
    if ledger_id is not None:
        records = _records(terms, _entries(client, keys))
        totals = _totals(records, _settled(client, keys))
        if older is not None:
            older.check(totals, f"Put a newer backup back, or {_RAISE_WITH_1}, then migrate.")
        if _carry_over(client, keys, (terms.content, ledger_id), records):
            moved = replace(moved, entries=len(records), ledgers=1)
    if older is not None:
        # Compared again: it may have been carried over by another run, on another day.
        totals = with_ids(RedisLedger.open(client, name, terms))
        older.check(totals, "Put a newer backup back, then migrate.")
        LedgerAnchor(older.path, name, terms).renew(older.content, totals)
    return moved


_RAISE_WITH_1 = "raise the ledger with the version that wrote it"


def _ledger_to_carry_over(client: "Redis", keys: LedgerKeys, terms: LedgerTerms) -> bytes | None:
    """Return the id of a ledger of format 1, or None if it was carried over before."""
    ledger_id, stored = cast(
        list[bytes | None], client.hmget(keys.terms_of_1, ["ledger_id", "terms"])
    )
    is_new = not client.exists(keys.terms)
    if ledger_id is None and is_new:
        raise LedgerAbsent(f"There is no ledger {keys.name} on this server, of any format.")
    if ledger_id is not None and stored != terms.of_format(1):
        raise UnlikeTerms(f"Ledger {keys.name} has another budget, relation or model.")
    return ledger_id if is_new else None


@dataclass(frozen=True, slots=True)
class _OlderAnchor:
    """An anchor of format 1.

    Attributes:
        path: Where it is.
        content: Its bytes.
        least: What the ledger holds at least.
    """

    path: Path
    content: bytes
    least: LedgerTotals

    @classmethod
    def read(cls, path: Path | None, name: str, terms: LedgerTerms) -> "_OlderAnchor | None":
        """Read it; None where there is none, or one of another format."""
        if path is None or not path.exists():
            return None
        try:
            content = path.read_bytes()
            body, checksum = content.split(b"\n")[:2]
            is_whole = checksum.decode("ascii", "replace") == hashlib.sha256(body).hexdigest()
            document = json.loads(body) if is_whole else {}
            if document["version"] != 1:
                return None
            ids = {of: frozenset(listed) for of, listed in document.get("ids", {}).items()}
            subjects = {
                of: SubjectTotals(
                    count,
                    total=LossTotal(carried=Amount(epsilon, delta)),
                    ids=ids.get(of, frozenset()),
                )
                for of, (count, epsilon, delta) in document["subjects"].items()
            }
            least = LedgerTotals(subjects, document["settled"])
            owner = [document["ledger"], document["terms"]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise BadAnchor(f"{path}: the ledger's anchor is damaged.") from None
        if owner != [name, terms.of_format(1).decode("ascii")]:
            raise BadAnchor(f"{path}: the anchor of another ledger, or of another budget.")
        return cls(path, content, least)

    def check(self, totals: LedgerTotals, remedy: str) -> None:
        """Raise LedgerBehind if a ledger holds less."""
        subjects = self.least.subjects
        behind = [
            name
            for name, part in subjects.items()
            if LedgerTotals({name: part}).exceeds(totals) or part.ids - totals.of(name).ids
        ]
        if self.least.settled > totals.settled:
            behind.append("what was released")
        if behind:
            raise LedgerBehind(
                f"{self.path}: the server holds less of {', '.join(behind)} than this anchor "
                f"says. {remedy}"
            )


def _carry_over(
    client: "Redis", keys: LedgerKeys, owner: tuple[bytes, bytes], records: list[ChainedRecord]
) -> bool:
    """Append records in one step, unless another process did; return whether it was this one."""
    named = [keys.terms, keys.places, keys.subjects]
    arguments: list[bytes | str] = [*owner]
    for record in records:
        named.append(keys.log(record.entry.subject))
        stored = record.digest.encode("ascii") + record.content
        arguments += [record.entry.spend_id, record.entry.subject, stored]
    return bool(client.register_script(_MIGRATE)(keys=named, args=arguments))


def _records(terms: LedgerTerms, entries: list[LedgerEntry]) -> list[ChainedRecord]:
    """Chain the entries of each subject, as they are carried over."""
    at = int(time.time())
    records = []
    tails: dict[str, ChainTail] = {}
    for entry in entries:
        tail = tails.get(entry.subject) or ChainTail.start(terms, entry.subject)
        records.append(tail.next(carried(entry), at))
        tails[entry.subject] = ChainTail.after(records[-1])
    return records


def _totals(records: list[ChainedRecord], settled: int) -> LedgerTotals:
    """Return what a ledger of these records holds."""
    tails = {record.entry.subject: ChainTail.after(record) for record in records}
    ids: dict[str, list[str]] = {name: [] for name in tails}
    for record in records:
        ids[record.entry.subject].append(record.entry.spend_id)
    subjects = {name: SubjectTotals.of(tail, *ids[name]) for name, tail in tails.items()}
    return LedgerTotals(subjects, settled)


def _settled(client: "Redis", keys: LedgerKeys) -> int:
    """Count the spends that are never drawn again; each has its release, or is sealed.

    Format 1 wrote mark and release in one step. A mark without either would be drawn again.
    """
    settled = cast(set[bytes], client.smembers(keys.settled))
    unsealed = settled - cast(set[bytes], client.smembers(keys.sealed))
    lost = [one for one in sorted(unsealed) if not client.exists(keys.kept(one.decode()))]
    if lost:
        named = ", ".join(one.decode() for one in lost[:3])
        rule = f"what was released for {named} is gone. Put a newer backup back, then migrate"
        raise BadSnapshot(f"Ledger of format 1: {rule}.")
    return len(settled)


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
