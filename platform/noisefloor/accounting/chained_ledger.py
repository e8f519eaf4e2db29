"""A privacy ledger on an append-only log: the answers of ``Ledger``, in chained records.

A spend is decided on the end of its subject's chain, by the same code as in memory. The log then
appends the record in one atomic step, if that is still the end; else the spend is decided again
on the new one. Thus several processes may spend at once, and no budget is exceeded. Each
try that fails means that another spend was booked: no process waits for ever.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from noisefloor.accounting.chain import ChainedRecord, ChainTail, replay
from noisefloor.accounting.entries import Amount, LedgerEntry, StatementLine
from noisefloor.accounting.ledger import Ledger, conflict
from noisefloor.accounting.privacy_filter import LossTotal
from noisefloor.accounting.release_loss import ReleaseLoss
from noisefloor.accounting.spending import (
    LedgerTerms,
    Spend,
    SpendReceipt,
    check_text,
    followed,
    granted,
    is_retry,
)
from noisefloor.errors import BrokenChain, BudgetExceeded, ClockWentBack, SpendConflict
from noisefloor.privacy import Guarantee, Neighbours, TrustModel

_MOST_TRIES = 100_000
"""Far more than there are spenders at once: a log that always answers 'changed' is broken."""


class AppendStatus(Enum):
    """What became of an append."""

    APPENDED = "appended"
    KNOWN = "known"
    CHANGED = "changed"


class Appended(NamedTuple):
    """The answer of a log.

    Attributes:
        status: Whether the record was appended.
        record: For ``known`` the record of that spend id.
    """

    status: AppendStatus
    record: bytes | None = None


@dataclass(frozen=True, slots=True)
class SpendPreview:
    """What a spend would do, had it been one.

    Attributes:
        is_allowed: Whether it would be accepted.
        requested: What it would debit; None for an infinite cost.
        left: What is left now.
        after: What would be left; as now, if it is refused.
        why: What runs out, in words; empty if it is accepted.
    """

    is_allowed: bool
    requested: Amount | None
    left: Amount
    after: Amount
    why: str = ""

    def __str__(self) -> str:
        requested = "an infinite epsilon" if self.requested is None else str(self.requested)
        verdict = "accepted" if self.is_allowed else "refused"
        rest = f"{self.after} would be left" if self.is_allowed else self.why
        return f"Dry run, nothing was spent: {requested} would be {verdict}; {rest}."


class ChainedLedger(ABC):
    """Budgets of many subjects under one relation and one model, on an append-only log.

    Args:
        terms: Budget, relation and model.
        clock: Unix time in seconds.
    """

    __slots__ = ("_clock", "_tails", "_terms")

    def __init__(self, terms: LedgerTerms, clock: Callable[[], float] = time.time) -> None:
        self._terms = terms
        self._clock = clock
        self._tails: dict[str, ChainTail] = {}

    @property
    def terms(self) -> LedgerTerms:
        """Budget, relation and model."""
        return self._terms

    @property
    def budget(self) -> Amount:
        """What each subject may spend."""
        return self._terms.budget

    @property
    def neighbours(self) -> Neighbours:
        """The relation of everything that is spent here."""
        return self._terms.neighbours

    @property
    def model(self) -> TrustModel:
        """The model of everything that is spent here."""
        return self._terms.model

    @abstractmethod
    def subjects(self) -> list[str]:
        """Return the subjects that have an entry, sorted."""

    @abstractmethod
    def contents(self, subject: str, first: int = 0) -> list[bytes]:
        """Return the chained records of a subject as they are stored, without the first ones."""

    @abstractmethod
    def _record_of(self, spend_id: str) -> bytes | None:
        """Return the record of a spend."""

    @abstractmethod
    def _append(self, tail: ChainTail, record: ChainedRecord) -> Appended:
        """Append a record in one atomic step, if this is the end of its subject's chain."""

    def spend(
        self,
        subject: str,
        spend_id: str,
        cost: Guarantee,
        release: str,
        proved: Guarantee | None = None,
        count: int = 1,
        loss: ReleaseLoss | None = None,
    ) -> LedgerEntry:
        """Debit ``count`` times the cost, or refuse and change nothing; see ``Ledger.spend``.

        Every record that the decision rests on was checked by this process: nothing is spent
        after one that is missing, changed or swapped (BrokenChain).
        """
        requested = Spend(subject, spend_id, cost, release, proved, count, loss)
        tail = self._tails.get(subject) or self.tail(subject)
        for _ in range(_MOST_TRIES):
            entry = requested.entry(self._terms, tail.total)
            try:
                granted(self._terms, tail.total, entry)
                record = tail.next(entry, int(self._clock()))
            except (BudgetExceeded, ClockWentBack):
                known = self._record_of(spend_id)  # a retry is free, whatever was spent since
                if known is None:
                    raise
                return self._repeated(known, entry)
            answer = self._append(tail, record)
            if answer.status is AppendStatus.KNOWN:
                return self._repeated(answer.record, entry)
            if answer.status is AppendStatus.APPENDED:
                tail = self._tails[subject] = ChainTail.after(record)
                self._note(subject, tail, spend_id)
                return entry
            tail = self.tail(subject)
        raise BrokenChain(f"Ledger of {subject}: its end changes with every look.")

    def append_unchecked(self, entry: LedgerEntry) -> bool:
        """Book an entry that was spent elsewhere, whatever the budget; False if it is known.

        BadSnapshot if it cannot follow the end of the chain: what is carried over comes first.
        """
        for _ in range(_MOST_TRIES):
            tail = self.tail(entry.subject)
            if self._record_of(entry.spend_id) is None:
                followed(self._terms, tail.total, entry)
            record = tail.next(entry, max(tail.at, int(self._clock())))
            answer = self._append(tail, record)
            if answer.status is AppendStatus.KNOWN:
                if self._repeated(answer.record, entry) != entry:
                    raise SpendConflict(conflict(entry.spend_id))
                return False
            if answer.status is AppendStatus.APPENDED:
                self._tails[entry.subject] = ChainTail.after(record)
                return True
        raise BrokenChain(f"Ledger of {entry.subject}: its end changes with every look.")

    def would_spend(
        self, subject: str, cost: Guarantee, count: int = 1, loss: ReleaseLoss | None = None
    ) -> SpendPreview:
        """Return what a new spend would do; nothing is spent."""
        requested = Spend(subject, "new", cost, "new", None, count, loss)
        before = self.total(subject)
        left = self._terms.spent(before).left_of(self.budget)
        debited = Amount.cost(cost, count) if cost.is_finite else None
        try:
            total = granted(self._terms, before, requested.entry(self._terms, before))
        except BudgetExceeded as refused:
            why = "; ".join(map(str, refused.short)) or "more was spent than it holds"
            return SpendPreview(False, debited, left, left, why)
        return SpendPreview(True, debited, left, self._terms.spent(total).left_of(self.budget))

    def can_spend(
        self, subject: str, cost: Guarantee, count: int = 1, loss: ReleaseLoss | None = None
    ) -> bool:
        """Tell whether a new spend would be accepted; nothing is spent."""
        return self.would_spend(subject, cost, count, loss).is_allowed

    def receipt(self, subject: str, spend_id: str) -> SpendReceipt:
        """Return what was written down of a spend; KeyError if nothing was."""
        record = self.record(spend_id)
        if record is None or record.entry.subject != subject:
            raise KeyError(spend_id)
        guarantee = self._terms.guarantee(record.total)
        return SpendReceipt(
            record.position, record.digest, record.time, record.entry.debited, guarantee
        )

    def record(self, spend_id: str) -> ChainedRecord | None:
        """Return the chained record of a spend, or None."""
        content = self._record_of(check_text(spend_id, "spend_id"))
        return None if content is None else _read(content)

    def entry(self, spend_id: str) -> LedgerEntry | None:
        """Return what was spent under an id, or None."""
        record = self.record(spend_id)
        return None if record is None else record.entry

    def tail(self, subject: str) -> ChainTail:
        """Return the end of a subject's chain, and check the records that are new here."""
        known = self._tails.get(check_text(subject, "subject"))
        if known is not None and known.position:
            found = self.contents(subject, known.position - 1)
            if found and ChainTail.after(_read(found[0])) == known:
                self._tails[subject] = tail = replay(self._terms, subject, found[1:], known)[1]
                return tail
        return self.verify(subject)[1]  # the first look, or the log was restored meanwhile

    def total(self, subject: str) -> LossTotal:
        """Return what a subject has spent, by every count of the filter."""
        return self.tail(subject).total

    def debited(self, subject: str) -> Amount:
        """Return the plain sums of what was debited, which may lie above the budget."""
        return self.total(subject).spent

    def spent(self, subject: str) -> Amount:
        """Return the smallest (epsilon, delta) that is proved of all debits: it decides."""
        return self._terms.spent(self.total(subject))

    def left(self, subject: str) -> Amount:
        """Return what is left, never below zero."""
        return self.spent(subject).left_of(self.budget)

    def verify(self, subject: str) -> tuple[list[ChainedRecord], ChainTail]:
        """Read the chain of a subject and check every link, or raise BrokenChain."""
        records, tail = replay(self._terms, subject, self.contents(subject))
        self._tails[subject] = tail
        return records, tail

    def account(self, subject: str) -> Ledger:
        """Return a ledger in memory with the entries of one subject; the chain is checked."""
        ledger = Ledger.under(self._terms)
        ledger.write_all(record.entry for record in self.verify(subject)[0])
        return ledger

    def entries(self, subject: str) -> list[LedgerEntry]:
        """Return the entries of one subject, sorted by spend id."""
        return self.account(subject).entries(subject)

    def proved(self, subject: str) -> Guarantee:
        """Return the sum of what was proved of each spend; infinite if a part is."""
        return self.account(subject).proved(subject)

    def what_spent(self, subject: str) -> list[StatementLine]:
        """List what the budget went into, by release, the most expensive first."""
        return self.account(subject).what_spent(subject)

    def why(self, subject: str) -> str:
        """Answer "why did this budget run out?" in one paragraph."""
        return self.account(subject).why(subject)

    def snapshot(self) -> bytes:
        """Write the ledger as bytes, the bytes of ``Ledger.snapshot``; releases are not in it."""
        ledger = Ledger.under(self._terms)
        for subject in self.subjects():
            ledger.write_all(record.entry for record in self.verify(subject)[0])
        return ledger.snapshot()

    def _note(self, subject: str, tail: ChainTail, spend_id: str) -> None:  # noqa: B027  # a hook
        """Take note that the log holds a spend, before anything can be released for it."""

    def _repeated(self, content: bytes | None, entry: LedgerEntry) -> LedgerEntry:
        """Return the entry of a retry, or raise SpendConflict if it was another spend."""
        record = _read(content)
        if not is_retry(entry, record.entry):
            raise SpendConflict(conflict(entry.spend_id))
        self._note(entry.subject, ChainTail.after(record), entry.spend_id)
        return record.entry

    def _tail_after(self, subject: str, last: bytes | None) -> ChainTail:
        """Return the end that a last record states; it is not checked."""
        if last is None:
            return ChainTail.start(self._terms, subject)
        return ChainTail.after(_read(last))


def explained(terms: LedgerTerms, record: ChainedRecord) -> str:
    """Say in a paragraph what one entry is: which release, when, and how much by each count."""
    entry, granting = record.entry, terms.filter(record.total)
    parts = [
        f"{entry.spend_id} is entry {record.position} of {entry.subject}, of {record.time}: "
        f"{entry.release}{f', {entry.count} times' if entry.count > 1 else ''}.",
        f"It was charged {entry.debited}.",
    ]
    if entry.is_carried:
        parts.append("It was carried over from format 1 and counts by its plain cost alone.")
    elif entry.order:
        parts.append(
            f"To the filter it costs a Renyi divergence of order {entry.order} of "
            f"{entry.renyi / 1e9:.9f}, of {granting.cap / 1e9:.9f} in all, and "
            f"{Amount(0, entry.failure).delta:.3g} of delta beside it."
        )
    parts.append(f"With it, {terms.spent(record.total)} of {terms.budget} is spent.")
    if entry.reason:
        parts.append(f"Of what is proved: {entry.reason}.")
    return " ".join(parts)


def _read(content: bytes | None) -> ChainedRecord:
    if content is None:
        raise BrokenChain("A record of the ledger is gone.")
    return ChainedRecord.read(content)
