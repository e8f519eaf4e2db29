"""Chained records: each holds the hash of the one before it, so that a change shows.

The entries of one subject are one chain. The first record holds the hash of the ledger's terms
and of the subject, so that no chain passes for another's. A writer of the log can
write a whole new chain: the hash of the last record, kept where the log's writers cannot reach,
shows that (the anchor of a service, the signed card of a release).
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from noisefloor.accounting.entries import LedgerEntry
from noisefloor.accounting.privacy_filter import LossTotal
from noisefloor.accounting.snapshot import entry_fields, read_entry
from noisefloor.accounting.spending import FORMAT, LedgerTerms, added, misplaced
from noisefloor.canonical_json import canonical_json
from noisefloor.errors import BadSnapshot, BrokenChain, ClockWentBack

_LATEST = 253_402_300_799
"""The last second of the year 9999, the latest that dates can say."""

_FIELDS = ("at", "entry", "previous", "position", "total", "version")


@dataclass(frozen=True, slots=True)
class ChainedRecord:
    """One entry in its chain.

    Attributes:
        position: From 1.
        previous: Hash of the record before it, or of terms and subject.
        at: When, in whole seconds of Unix time.
        entry: What was spent.
        total: What the subject has spent up to and including it.
    """

    position: int
    previous: str
    at: int
    entry: LedgerEntry
    total: LossTotal

    @property
    def content(self) -> bytes:
        """The record as bytes: the same bytes for the same record."""
        return canonical_json(
            {
                "version": FORMAT,
                "position": self.position,
                "previous": self.previous,
                "at": self.at,
                "entry": entry_fields(self.entry),
                "total": list(self.total.numbers),
            }
        )

    @property
    def digest(self) -> str:
        """The hash of the record, in hex."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def time(self) -> str:
        """When, as people read it."""
        return datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    @classmethod
    def read(cls, content: bytes) -> "ChainedRecord":
        """Read a record, or raise BrokenChain."""
        try:
            fields = json.loads(content)
            if not isinstance(fields, dict) or fields.get("version") != FORMAT:
                raise BrokenChain(f"A record of the ledger is not of format {FORMAT}.")
            entry = read_entry(fields["entry"], "entry")
            total = LossTotal.of(tuple(map(int, fields["total"])))
            record = cls(fields["position"], fields["previous"], fields["at"], entry, total)
            is_time = type(record.at) is int and 0 <= record.at <= _LATEST
            if is_time and set(fields) == set(_FIELDS) and record.content == content:
                return record
        except (BadSnapshot, ValueError, KeyError, TypeError, AttributeError):
            pass
        except (OverflowError, RecursionError):
            pass
        raise BrokenChain("A record of the ledger cannot be read: it is damaged.")


@dataclass(frozen=True, slots=True)
class ChainTail:
    """The end of a subject's chain: all that the next record depends on.

    Attributes:
        position: Of the last record; 0 where there is none.
        head: Its hash, or that of terms and subject.
        at: Its time.
        total: What was spent.
    """

    position: int
    head: str
    at: int
    total: LossTotal

    @classmethod
    def start(cls, terms: LedgerTerms, subject: str) -> "ChainTail":
        """Return the end of an empty chain."""
        content = canonical_json([terms.content.decode("ascii"), subject])
        return cls(0, hashlib.sha256(content).hexdigest(), 0, LossTotal())

    @classmethod
    def after(cls, record: ChainedRecord) -> "ChainTail":
        """Return the end of a chain whose last record this is."""
        return cls(record.position, record.digest, record.at, record.total)

    def next(self, entry: LedgerEntry, at: int) -> ChainedRecord:
        """Return the record that follows; ClockWentBack if it would be earlier than the last."""
        if at < self.at:
            raise ClockWentBack(
                f"The clock says {_time(at)}, and the last entry of {entry.subject} is of "
                f"{_time(self.at)}: nothing was spent. Set the clock."
            )
        return ChainedRecord(self.position + 1, self.head, at, entry, added(self.total, entry))


def replay(
    terms: LedgerTerms,
    subject: str,
    contents: Sequence[bytes],
    start: ChainTail | None = None,
) -> tuple[list[ChainedRecord], ChainTail]:
    """Read a chain and check every link; BrokenChain names the first that is wrong.

    Args:
        terms: Of the ledger.
        subject: Whose chain.
        contents: Its records in order.
        start: A checked end that they have to follow; by default the beginning of the chain.
    """
    start = start or ChainTail.start(terms, subject)
    places = enumerate(contents, start.position + 1)
    records = [_read_at(subject, place, content) for place, content in places]
    tails = [start, *map(ChainTail.after, records)]
    for (before, after), record in zip(pairwise(tails), records, strict=True):
        _check_link(terms, subject, before, record)
        if after.at < before.at:
            raise BrokenChain(_at(subject, record.position, "is earlier than the one before it"))
    return records, tails[-1]


def _read_at(subject: str, place: int, content: bytes) -> ChainedRecord:
    try:
        return ChainedRecord.read(content)
    except BrokenChain as error:
        raise BrokenChain(_at(subject, place, f"cannot be used. {error}")) from None


def _check_link(
    terms: LedgerTerms, subject: str, before: ChainTail, record: ChainedRecord
) -> None:
    place = before.position + 1
    if record.entry.subject != subject:
        raise BrokenChain(_at(subject, place, "belongs to another data set"))
    if record.position != place:
        rule = f"says that it is record {record.position}: one is missing, or two are swapped"
        raise BrokenChain(_at(subject, place, rule))
    if record.previous != before.head:
        rule = "does not follow: the record before it was changed, or the terms were"
        raise BrokenChain(_at(subject, place, rule))
    if record.total != added(before.total, record.entry):
        raise BrokenChain(_at(subject, place, "has a total that its entries do not add up to"))
    if rule := misplaced(terms, before.total, record.entry):
        raise BrokenChain(_at(subject, place, rule))


def _at(subject: str, place: int, rule: str) -> str:
    return f"Ledger of {subject}: record {place} {rule}."


def _time(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
