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
)
from noisefloor.accounting.privacy_filter import LossTotal
from noisefloor.accounting.release_loss import ReleaseLoss
from noisefloor.accounting.snapshot import LedgerContents, decode_ledger, encode_ledger
from noisefloor.accounting.spending import (
    LedgerTerms,
    Spend,
    SpendReceipt,
    added,
    check_text,
    followed,
    granted,
    is_retry,
)
from noisefloor.errors import BadSnapshot, BudgetExceeded, SpendConflict
from noisefloor.privacy import Guarantee, Neighbours, TrustModel

_NOTHING = LossTotal()


class _Account:
    """What one subject has spent, with the entries that say on what."""

    __slots__ = ("entries", "total")

    def __init__(self) -> None:
        self.total = _NOTHING
        self.entries: list[LedgerEntry] = []


class Ledger:
    """Budgets of many subjects under one relation and one model.

    Costs are rounded up and the budget is rounded down, to a millionth of epsilon and to 1e-18 of
    delta, from the number as it is written: ten spends of 0.1 fit in a budget of 1.0. What is
    granted beyond the plain sum, ``privacy_filter`` says and proves.

    Args:
        epsilon: Each subject's budget, in [0, 1e9].
        delta: Each subject's budget of delta.
        neighbours: The relation of everything that is spent here.
        model: The model of everything that is spent here.
    """

    __slots__ = ("_accounts", "_entries", "_terms")

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        neighbours: Neighbours,
        model: TrustModel = TrustModel.LOCAL,
    ) -> None:
        self._terms = LedgerTerms.of(epsilon, delta, neighbours=neighbours, model=model)
        self._accounts: dict[str, _Account] = {}
        self._entries: dict[str, LedgerEntry] = {}

    @classmethod
    def under(cls, terms: LedgerTerms) -> "Ledger":
        """Make a ledger of these terms."""
        ledger = cls(0.0, neighbours=terms.neighbours, model=terms.model)
        ledger._terms = terms
        return ledger

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
        """Debit ``count`` times the cost, or refuse and change nothing; see ``Spend``.

        Returns:
            The entry; for a retry the first one, and nothing is debited.

        Raises:
            BudgetExceeded: Too little is left, or the cost is infinite.
            SpendConflict: The id was used for another spend.
            UnlikeNeighbours: Cost or proof is of another relation or model.
        """
        requested = Spend(subject, spend_id, cost, release, proved, count, loss)
        before = self.total(subject)
        entry = requested.entry(self._terms, before)
        known = self._entries.get(spend_id)
        if known is not None:
            if not is_retry(entry, known):
                raise SpendConflict(conflict(spend_id))
            return known
        granted(self._terms, before, entry)
        self._write(entry)
        return entry

    def can_spend(
        self, subject: str, cost: Guarantee, count: int = 1, loss: ReleaseLoss | None = None
    ) -> bool:
        """Tell whether a new spend would be accepted; nothing is spent."""
        requested = Spend(subject, "new", cost, "new", None, count, loss)
        before = self.total(subject)
        try:
            granted(self._terms, before, requested.entry(self._terms, before))
        except BudgetExceeded:
            return False
        return True

    def receipt(self, subject: str, spend_id: str) -> SpendReceipt:
        """Return what was written down of a spend; KeyError if nothing was."""
        total = _NOTHING
        for position, entry in enumerate(self._of(subject).entries, 1):
            total = added(total, entry)
            if entry.spend_id == spend_id:
                guarantee = self._terms.guarantee(total)
                return SpendReceipt(position, "", "", entry.debited, guarantee)
        raise KeyError(spend_id)

    def subjects(self) -> list[str]:
        """Return everybody who has an entry, sorted."""
        return sorted(self._accounts)

    def entries(self, subject: str) -> list[LedgerEntry]:
        """Return the entries of one subject, sorted by spend id."""
        return sorted(self._of(subject).entries, key=lambda entry: entry.spend_id)

    def total(self, subject: str) -> LossTotal:
        """Return what a subject has spent, by every count of the filter."""
        return self._of(check_text(subject, "subject")).total

    def debited(self, subject: str) -> Amount:
        """Return the plain sums of what was debited, which may lie above the budget."""
        return self.total(subject).spent

    def spent(self, subject: str) -> Amount:
        """Return the smallest (epsilon, delta) that is proved of all debits: it decides."""
        return self._terms.spent(self.total(subject))

    def left(self, subject: str) -> Amount:
        """Return what is left, never below zero."""
        return self.spent(subject).left_of(self.budget)

    def proved(self, subject: str) -> Guarantee:
        """Return the sum of what was proved of each spend; infinite if a part is."""
        entries = self._of(subject).entries
        reason = "; ".join(sorted({entry.reason for entry in entries if entry.reason}))
        amounts = [entry.proved for entry in entries if entry.proved is not None]
        if len(amounts) < len(entries):
            return Guarantee.none(reason, self.neighbours, self.model)
        total = sum(amounts, Amount(0))
        epsilon = float_up(Fraction(total.micro_epsilon, MICRO))
        delta = min(1.0, float_up(Fraction(total.delta_units, DELTA_UNITS)))
        return Guarantee(epsilon, self.neighbours, delta=delta, model=self.model, reason=reason)

    def what_spent(self, subject: str) -> list[StatementLine]:
        """List what the budget went into, by release, the most expensive first."""
        counts: dict[str, int] = {}
        amounts: dict[str, Amount] = {}
        for entry in self._of(subject).entries:
            counts[entry.release] = counts.get(entry.release, 0) + entry.count
            amounts[entry.release] = amounts.get(entry.release, Amount(0)) + entry.debited
        whole = max(1, self.debited(subject).micro_epsilon)
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
        spent, debited = self.spent(subject), self.debited(subject)
        sums = f" (the plain sum is {debited})" if spent != debited else ""
        proved = self.proved(subject)
        shown = f"epsilon {proved.epsilon:.6f}" if proved.is_finite else "nothing"
        because = f" ({proved.reason})" if proved.reason else ""
        return (
            f"{subject} has spent {spent} of {self.budget}{sums}; {self.left(subject)} is "
            f"left. By release: {parts}. Proved of each, added up: {shown}{because}."
        )

    def snapshot(self) -> bytes:
        """Write the ledger as bytes; the same entries give the same bytes in whatever order."""
        entries = tuple(self._entries.values())
        return encode_ledger(LedgerContents(self.budget, self.neighbours, self.model, entries))

    @classmethod
    def restore(cls, data: bytes) -> "Ledger":
        """Read a ledger back; BadSnapshot names the field that is wrong."""
        contents = decode_ledger(data)
        ledger = cls.under(LedgerTerms(contents.budget, contents.neighbours, contents.model))
        ledger.write_all(contents.entries)
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
        self.write_all([entry for entry in theirs.entries if not self._is_known(entry)])

    def write_all(self, entries: Iterable[LedgerEntry]) -> None:
        """Take entries over as they are, all or none; no budget is looked at.

        What is carried over is written first; BadSnapshot if an entry cannot follow the others.
        """
        ordered = sorted(entries, key=lambda entry: not entry.is_carried)
        totals: dict[str, LossTotal] = {}
        for entry in ordered:
            before = totals.get(entry.subject) or self._of(entry.subject).total
            totals[entry.subject] = followed(self._terms, before, entry)
        for entry in ordered:
            self._write(entry)

    def _is_known(self, entry: LedgerEntry) -> bool:
        known = self._entries.get(entry.spend_id)
        if known is not None and known != entry:
            raise SpendConflict(conflict(entry.spend_id))
        return known is not None

    def _of(self, subject: str) -> _Account:
        return self._accounts.get(subject) or _Account()

    def _write(self, entry: LedgerEntry) -> None:
        account = self._accounts.setdefault(entry.subject, _Account())
        account.entries.append(entry)
        account.total = added(account.total, entry)
        self._entries[entry.spend_id] = entry


def conflict(spend_id: str) -> str:
    """Say that an id stands for another spend."""
    return (
        f"Spend {spend_id} was booked before with another subject, release, cost, proof, loss, "
        "count or content. A retry has to repeat them; a new spend needs a new id."
    )
