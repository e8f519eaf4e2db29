"""The ledger's anchor: a small file beside the server that says what was spent at least.

A server that was restored from an old backup looks like one where less was spent. So its totals
are also written to a file that its backups do not contain, after every spend and before the
release. The numbers in the file can only grow. It holds, for each data set, the position and the
hash of the last record of its chain, what was spent by every count, and the ids of the spends; and
the number of settled spends: a lost release must not be drawn again. A server whose record at that
position has another hash has another history.

``AnchoredLedger`` is the ledger that keeps this file. ``restore`` raises a ledger to what its
anchor says, so that what was spent stays spent. Lost entries are replaced by entries that say so,
under their ids where the anchor has them; their cost is what the anchor has more than the server.
Spends whose release may be lost are sealed: drawing again would give a second release for one
charge, or two under one id.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from redis import Redis

from noisefloor.accounting import (
    Amount,
    ChainTail,
    LedgerContents,
    LedgerEntry,
    LedgerTerms,
    LossTotal,
    encode_ledger,
)
from noisefloor.synced_files import sync_folder, write_synced
from noisefloor_services.ledger.redis_ledger import RedisLedger
from noisefloor_services.ledger.terms import (
    BEHIND,
    BadAnchor,
    LedgerBehind,
    LedgerTotals,
    SubjectTotals,
)

VERSION = 2


class LedgerAnchor:
    """The file; safe to share between threads and between processes of one machine.

    Args:
        path: Where it lies: on another disk than the server's data, or at least outside of what
            is backed up and restored together with them.
        name: Of the ledger.
        terms: Of the ledger.
    """

    __slots__ = ("_name", "_path", "_terms")

    def __init__(self, path: Path, name: str, terms: LedgerTerms) -> None:
        self._path = path
        self._name = name
        self._terms = terms.content.decode("ascii")

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._path

    @staticmethod
    def terms_at(path: Path) -> LedgerTerms:
        """Return the terms that an anchor was made with, or raise BadAnchor."""
        try:
            return LedgerTerms.read(json.loads(path.read_bytes().split(b"\n")[0])["terms"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise BadAnchor(f"{path}: the ledger's anchor cannot be read.") from None

    @property
    def is_there(self) -> bool:
        """Whether the file exists."""
        return self._path.exists()

    def read(self) -> LedgerTotals:
        """Return what it says, or raise BadAnchor."""
        try:
            body, checksum = self._path.read_bytes().split(b"\n")[:2]
            document = json.loads(body)
            if document["version"] == 1:
                raise BadAnchor(f"{self._path}: the anchor is of format 1: run migrate-ledger.")
            ids = {name: frozenset(listed) for name, listed in document.get("ids", {}).items()}
            parts = {
                name: SubjectTotals(
                    position, head, LossTotal.of(tuple(numbers)), ids.get(name, frozenset())
                )
                for name, (position, head, *numbers) in document["subjects"].items()
            }
            ledger_totals = LedgerTotals(parts, document["settled"])
        except FileNotFoundError:
            rule = "there is no anchor; restore-ledger makes it"
            raise BadAnchor(f"{self._path}: {rule}.") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise BadAnchor(f"{self._path}: the ledger's anchor cannot be read.") from None
        if checksum.decode("ascii", "replace") != hashlib.sha256(body).hexdigest():
            raise BadAnchor(f"{self._path}: the ledger's anchor is damaged.")
        if [document["version"], document["ledger"], document["terms"]] != [
            VERSION,
            self._name,
            self._terms,
        ]:
            raise BadAnchor(
                f"{self._path}: the anchor of another ledger, or of another budget or relation."
            )
        return ledger_totals

    def create(self) -> None:
        """Make the file with nothing in it, unless it is there."""
        with self._locked():
            if not self.is_there:
                self._write(LedgerTotals())

    def raise_to(self, ledger_totals: LedgerTotals, *, is_restored: bool = False) -> None:
        """Raise what it says to at least this much; it is on disk when this returns.

        Args:
            ledger_totals: What was spent.
            is_restored: Whether the server has been raised to the anchor: only then may its
                history be another one. Otherwise that is refused with LedgerBehind.
        """
        with self._locked():
            stored = self.read()
            if not is_restored and stored.contradicts(ledger_totals):
                raise LedgerBehind(f"{self._path}: {BEHIND}")
            raised = stored.joined(ledger_totals)
            if raised != stored:
                self._write(raised)

    def renew(self, older: bytes, ledger_totals: LedgerTotals) -> None:
        """Replace a file of format 1 in one step; it is kept beside, as ``NAME.format-1``.

        A crash at any point leaves the old file or the new one in place, each of them whole.

        Args:
            older: What is in the file; if it is no longer that, it is left alone (BadAnchor).
            ledger_totals: What the new file says.
        """
        kept = self._path.with_name(f"{self._path.name}.format-1")
        with self._locked():
            if self._path.read_bytes() != older:
                rule = "the anchor was changed meanwhile: stop the publisher, then repeat this"
                raise BadAnchor(f"{self._path}: {rule}.")
            draft = kept.with_name(f"{kept.name}.new")
            write_synced(draft, older, os.O_TRUNC)
            draft.replace(kept)
            sync_folder(self._path.parent)
            self._write(ledger_totals)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep others out: two that read, join and write at once would lose one of them."""
        try:
            with open(self._path.with_name(self._path.name + ".lock"), "a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError:
            raise BadAnchor(f"{self._path}: the ledger's anchor cannot be written.") from None

    def _write(self, ledger_totals: LedgerTotals) -> None:
        body = json.dumps(
            {
                "version": VERSION,
                "ledger": self._name,
                "terms": self._terms,
                "settled": ledger_totals.settled,
                "subjects": {
                    name: [one.position, one.head, *one.total.numbers]
                    for name, one in ledger_totals.subjects.items()
                },
                "ids": {
                    name: sorted(stored.ids) for name, stored in ledger_totals.subjects.items()
                },
            },
            sort_keys=True,
        ).encode("ascii")
        draft = self._path.with_name(self._path.name + ".new")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(body + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the new name is on disk as well
        finally:
            os.close(folder)


class AnchoredLedger(RedisLedger):
    """A ledger that notices when its server was set back, and then refuses."""

    __slots__ = ("_anchor",)

    _anchor: LedgerAnchor

    @classmethod
    def open_at(cls, client: "Redis", name: str, terms: LedgerTerms, anchor: LedgerAnchor) -> Self:
        """Open a ledger that is there and holds at least what its anchor says.

        Raises:
            LedgerBehind: It holds less.
            BadAnchor: The anchor is missing, damaged, or of another ledger.
        """
        ledger = cls.open(client, name, terms)
        ledger._anchor = anchor
        ledger.check_anchor()
        return ledger

    def check_anchor(self) -> None:
        """Raise LedgerBehind if the server holds less than the anchor says.

        Records that this process has not checked yet are checked as well: BrokenChain names one
        that does not follow.
        """
        anchored = self._anchor.read()
        is_behind = anchored.exceeds(self.ledger_totals(anchored.subjects))
        if is_behind or _has_another_history(self, anchored):
            raise LedgerBehind(f"{self._anchor.path}: {BEHIND}")
        for subject in self.subjects():
            self.tail(subject)

    def publish(self, spend_id: str, content: bytes) -> bytes:
        """Keep what was released for a spend, once; return what is kept and on file."""
        kept = super().publish(spend_id, content)
        self._note_settled()
        return kept

    def published(self, spend_id: str) -> bytes | None:
        """Return what was released for a spend, or None while nothing was."""
        kept = super().published(spend_id)
        if kept is not None:
            self._note_settled()  # the process that stored it may have crashed before this step
        return kept

    def _note_settled(self) -> None:
        self._anchor.raise_to(LedgerTotals(settled=self._client.scard(self._keys.settled)))

    def _least(self) -> LedgerTotals:
        return self._anchor.read()

    def _note(self, subject: str, tail: ChainTail, spend_id: str) -> None:
        self._anchor.raise_to(LedgerTotals({subject: SubjectTotals.of(tail, spend_id)}))


def _has_another_history(ledger: RedisLedger, anchored: LedgerTotals) -> bool:
    return any(
        ledger.head_at(name, part.position) != part.head
        for name, part in anchored.subjects.items()
        if part.position
    )


RELEASE = "restored from the anchor"
_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class RestorationSummary:
    """What became of a ledger.

    Attributes:
        raised: By how much the spent budget of each data set was raised.
        entries: How many entries were added.
        sealed: How many spends were sealed.
    """

    raised: dict[str, Amount]
    entries: int
    sealed: int

    def joined(self, other: "RestorationSummary") -> "RestorationSummary":
        """Return what became of two ledgers."""
        return RestorationSummary(
            self.raised | other.raised, self.entries + other.entries, self.sealed + other.sealed
        )

    def __str__(self) -> str:
        if not self.entries and not self.sealed:
            return "The ledger holds what its anchor says: nothing was raised."
        parts = [f"{name} by {amount}" for name, amount in sorted(self.raised.items())]
        raised = f"Raised {', '.join(parts)}" if parts else "Raised nothing"
        return f"{raised}; {self.entries} entries added, {self.sealed} spends sealed."


def restore(ledger: RedisLedger, anchor: LedgerAnchor) -> RestorationSummary:
    """Raise a ledger to at least what its anchor says, and the anchor to the ledger.

    Nothing is ever lowered, and repeating it does nothing more. Where the anchor is missing it is
    made of what the server holds.

    Args:
        ledger: Opened without the anchor, which would refuse it.
        anchor: What was spent at least.
    """
    is_new = not anchor.is_there
    anchor.create()
    anchored = anchor.read()
    stored = ledger.ledger_totals(anchored.subjects)
    is_behind = anchored.exceeds(stored) or _has_another_history(ledger, anchored)
    missing = {
        name: _missing(ledger.terms, name, (stored.of(name), part), _lost(ledger, part))
        for name, part in anchored.subjects.items()
    }
    added = 0
    for entries in missing.values():
        for start in range(0, len(entries), _AT_ONCE):
            added += ledger.restore(_snapshot(ledger, entries[start : start + _AT_ONCE]))
    sealed = ledger.seal() if is_behind or is_new else 0
    anchor.raise_to(with_ids(ledger), is_restored=True)
    raised = {
        name: sum((entry.debited for entry in entries), Amount(0))
        for name, entries in missing.items()
        if entries
    }
    return RestorationSummary(raised, added, sealed)


def with_ids(ledger: RedisLedger) -> LedgerTotals:
    """Return what the server holds, ids and all."""
    stored = ledger.ledger_totals()
    ids = {
        name: frozenset(one.spend_id for one in ledger.entries(name)) for name in stored.subjects
    }
    parts = {name: replace(part, ids=ids[name]) for name, part in stored.subjects.items()}
    return replace(stored, subjects=parts)


def _lost(ledger: RedisLedger, anchored: SubjectTotals) -> list[str]:
    """Return the ids that the anchor has and the server has not."""
    return [spend_id for spend_id in sorted(anchored.ids) if ledger.entry(spend_id) is None]


def _missing(
    terms: LedgerTerms,
    subject: str,
    both: tuple[SubjectTotals, SubjectTotals],
    lost: list[str],
) -> list[LedgerEntry]:
    """Return an entry for each that is lost; the first ones carry what is missing in all.

    Args:
        terms: Of the ledger.
        subject: The data set.
        both: What the server holds of it, and what the anchor says.
        lost: Ids that the anchor has and the server has not.
    """
    stored, anchored = both
    blank = LedgerEntry("", subject, RELEASE, 1, Amount(0), Amount(0), RELEASE)
    costs = _missing_costs(terms, blank, stored.total, anchored.total)
    count = max(anchored.position - stored.position, len(costs), len(lost))
    # The same loss gives the same ids, so that a repeated command adds nothing. No publication
    # has such an id: theirs have no colon.
    mark = hashlib.sha256(repr((subject, stored.numbers, anchored.numbers)).encode()).hexdigest()
    names = [*lost, *(f"restored:{mark[:16]}:{place}" for place in range(count - len(lost)))]
    order = terms.filter(LossTotal(carried=anchored.total.carried)).order
    rest = [replace(blank, order=order)] * (count - len(costs))
    return [
        replace(entry, spend_id=name) for name, entry in zip(names, [*costs, *rest], strict=True)
    ]


def _missing_costs(
    terms: LedgerTerms, blank: LedgerEntry, stored: LossTotal, anchored: LossTotal
) -> list[LedgerEntry]:
    """Return what the anchor has more than the server: carried over, and spent since."""
    costs = []
    carried = stored.carried.left_of(anchored.carried)
    if carried != Amount(0):
        costs.append(replace(blank, debited=carried, proved=carried, is_carried=True))
    plain = stored.plain.left_of(anchored.plain)
    renyi = max(0, anchored.renyi - stored.renyi)
    failure = max(0, anchored.failure - stored.failure)
    if plain != Amount(0) or renyi or failure:
        order = terms.filter(LossTotal(carried=anchored.carried)).order
        costs.append(
            replace(blank, debited=plain, proved=plain, order=order, renyi=renyi, failure=failure)
        )
    return costs


def _snapshot(ledger: RedisLedger, entries: list[LedgerEntry]) -> bytes:
    contents = LedgerContents(ledger.budget, ledger.neighbours, ledger.model, tuple(entries))
    return encode_ledger(contents)
