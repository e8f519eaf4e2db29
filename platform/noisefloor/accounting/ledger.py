"""A privacy ledger in memory: many subjects, each with the same budget.

It refuses before it spends, counts in whole numbers, takes a retry for what it is, and can say
what a budget went into. Beside what is debited (what was claimed) it keeps what was proved, so
that a faulty claim shows. It does not lock: one thread at a time.
"""

from collections.abc import Iterable
from fractions import Fraction

from noisefloor.accounting.composition import float_up
from noisefloor.accounting.entries import (
    DELTA_UNITS,
    MICRO,
    Amount,
    LedgerEntry,
    StatementLine,
    debit_of,
    entry_of,
)
from noisefloor.accounting.snapshot import LedgerContents, decode_ledger, encode_ledger
from noisefloor.checks import check_finite
from noisefloor.errors import BadParameter, BadSnapshot, BudgetExceeded, SpendConflict
from noisefloor.privacy import Guarantee, Neighbours, TrustModel

LARGEST_BUDGET = 1e9
_NOTHING = Amount(0, 0)


class _Account:
    """What one subject has spent, with the entries that say on what."""

    __slots__ = ("entries", "spent")

    def __init__(self) -> None:
        self.spent = _NOTHING
        self.entries: list[LedgerEntry] = []


class Ledger:
    """Budgets of many subjects under one relation and one model.

    Costs are rounded up and the budget is rounded down, to a millionth of epsilon and to 1e-18 of
    delta, from the number as it is written: ten spends of 0.1 fit in a budget of 1.0.

    Args:
        epsilon: Each subject's budget, in [0, 1e9].
        delta: Each subject's budget of delta.
        neighbours: The relation of everything that is spent here.
        model: The model of everything that is spent here.
    """

    __slots__ = ("_accounts", "_budget", "_entries", "_unit")

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        neighbours: Neighbours,
        model: TrustModel = TrustModel.LOCAL,
    ) -> None:
        if not 0 <= check_finite(epsilon, "epsilon") <= LARGEST_BUDGET:
            raise BadParameter("epsilon", epsilon, f"in [0, {LARGEST_BUDGET:g}]")
        if not 0 <= check_finite(delta, "delta") <= 1:
            raise BadParameter("delta", delta, "in [0, 1]")
        self._budget = Amount.budget(epsilon, delta)
        self._unit = Guarantee(0.0, neighbours, model=model)
        self._accounts: dict[str, _Account] = {}
        self._entries: dict[str, LedgerEntry] = {}

    @property
    def budget(self) -> Amount:
        """What each subject may spend."""
        return self._budget

    @property
    def neighbours(self) -> Neighbours:
        """The relation of everything that is spent here."""
        return self._unit.neighbours

    @property
    def model(self) -> TrustModel:
        """The model of everything that is spent here."""
        return self._unit.model

    def spend(
        self,
        subject: str,
        spend_id: str,
        cost: Guarantee,
        release: str,
        proved: Guarantee | None = None,
        count: int = 1,
    ) -> LedgerEntry:
        """Debit ``count`` times the cost, or refuse and change nothing.

        Args:
            subject: Whose budget.
            spend_id: Names this spend in the whole ledger; a retry comes with the same one.
            cost: What one release is claimed to cost; this is debited.
            release: What the budget goes into.
            proved: What was proved of one release, which may be infinite; ``cost`` if not given.
            count: How many times, at least 1.

        Returns:
            The entry; for a retry the first one, and nothing is debited.

        Raises:
            BudgetExceeded: Too little is left, or the cost is infinite.
            SpendConflict: The id was used for another spend.
            UnlikeNeighbours: Cost or proof is of another relation or model.
        """
        for name, text in (("subject", subject), ("spend_id", spend_id), ("release", release)):
            _check_text(text, name)
        entry = entry_of(self._unit, spend_id, subject, release, cost, proved, count, self.left)
        debited = entry.debited
        if self._is_known(entry):
            return self._entries[spend_id]
        if not (self.spent(subject) + debited).fits(self.budget):
            raise BudgetExceeded(subject, debited.short_of(self.left(subject)))
        self._write(entry)
        return entry

    def can_spend(self, subject: str, cost: Guarantee, count: int = 1) -> bool:
        """Tell whether a new spend would be accepted; nothing is spent."""
        try:
            debited = debit_of(self._unit, _check_text(subject, "subject"), cost, count, self.left)
        except BudgetExceeded:
            return False
        return (self.spent(subject) + debited).fits(self.budget)

    def subjects(self) -> list[str]:
        """Return everybody who has an entry, sorted."""
        return sorted(self._accounts)

    def entries(self, subject: str) -> list[LedgerEntry]:
        """Return the entries of one subject, sorted by spend id."""
        return sorted(self._of(subject).entries, key=lambda entry: entry.spend_id)

    def spent(self, subject: str) -> Amount:
        """Return what was debited; after a merge it may lie above the budget."""
        return self._of(subject).spent

    def left(self, subject: str) -> Amount:
        """Return what is left, never below zero."""
        return self.spent(subject).left_of(self.budget)

    def proved(self, subject: str) -> Guarantee:
        """Return what was proved of all that the subject spent; infinite if a part is."""
        entries = self._of(subject).entries
        reason = "; ".join(sorted({entry.reason for entry in entries if entry.reason}))
        amounts = [entry.proved for entry in entries if entry.proved is not None]
        if len(amounts) < len(entries):
            return Guarantee.none(reason, self.neighbours, self.model)
        total = sum(amounts, _NOTHING)
        epsilon = float_up(Fraction(total.micro_epsilon, MICRO))
        delta = min(1.0, float_up(Fraction(total.delta_units, DELTA_UNITS)))
        return Guarantee(epsilon, self.neighbours, delta=delta, model=self.model, reason=reason)

    def what_spent(self, subject: str) -> list[StatementLine]:
        """List what the budget went into, by release, the most expensive first."""
        counts: dict[str, int] = {}
        amounts: dict[str, Amount] = {}
        for entry in self._of(subject).entries:
            counts[entry.release] = counts.get(entry.release, 0) + entry.count
            amounts[entry.release] = amounts.get(entry.release, _NOTHING) + entry.debited
        whole = max(1, self.spent(subject).micro_epsilon)
        lines = [
            StatementLine(
                name, counts[name], of.micro_epsilon, of.delta_units, of.micro_epsilon / whole
            )
            for name, of in amounts.items()
        ]
        return sorted(lines, key=lambda at: (-at.micro_epsilon, -at.delta_units, at.release))

    def why(self, subject: str) -> str:
        """Answer "why did this budget run out?" in one paragraph."""
        lines = self.what_spent(subject)
        if not lines:
            return f"{subject} has spent nothing: all of {self.budget} is left."
        parts = ", ".join(
            f"{line.release} took {Amount(line.micro_epsilon, line.delta_units)} "
            f"in {line.count} ({line.share:.0%})"
            for line in lines
        )
        proved = self.proved(subject)
        shown = f"epsilon {proved.epsilon:.6f}" if proved.is_finite else "nothing"
        because = f" ({proved.reason})" if proved.reason else ""
        return (
            f"{subject} has spent {self.spent(subject)} of {self.budget}; {self.left(subject)} is "
            f"left. By release: {parts}. Proved of this: {shown}{because}."
        )

    def snapshot(self) -> bytes:
        """Write the ledger as bytes; the same entries give the same bytes in whatever order."""
        entries = tuple(self._entries.values())
        return encode_ledger(LedgerContents(self.budget, self.neighbours, self.model, entries))

    @classmethod
    def restore(cls, data: bytes) -> "Ledger":
        """Read a ledger back; BadSnapshot names the field that is wrong."""
        contents = decode_ledger(data)
        ledger = cls(0.0, neighbours=contents.neighbours, model=contents.model)
        ledger._budget = contents.budget
        ledger._write_all(contents.entries)
        return ledger

    def merge(self, data: bytes) -> None:
        """Take over the entries of another copy of this ledger: the union by spend id.

        What was spent can only grow, and may pass the budget: both copies have spent. A conflict
        or a snapshot of another ledger is refused, and nothing changes.
        """
        theirs = decode_ledger(data)
        for name in ("budget", "neighbours", "model"):
            if getattr(theirs, name) != getattr(self, name):
                raise BadSnapshot(f"Ledger snapshot: {name} is that of another ledger.")
        self._write_all([entry for entry in theirs.entries if not self._is_known(entry)])

    def _is_known(self, entry: LedgerEntry) -> bool:
        known = self._entries.get(entry.spend_id)
        if known is not None and known != entry:
            raise SpendConflict(
                f"Spend {entry.spend_id} was booked before with another subject, release, cost, "
                "proof or count. A retry has to repeat them; a new spend needs a new id."
            )
        return known is not None

    def _of(self, subject: str) -> _Account:
        return self._accounts.get(subject) or _Account()

    def _write_all(self, entries: Iterable[LedgerEntry]) -> None:
        for entry in entries:
            self._write(entry)

    def _write(self, entry: LedgerEntry) -> None:
        account = self._accounts.setdefault(entry.subject, _Account())
        account.entries.append(entry)
        account.spent = account.spent + entry.debited
        self._entries[entry.spend_id] = entry


def _check_text(value: str, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise BadParameter(name, type(value).__name__, "to be a text of at least one sign")
    return value
