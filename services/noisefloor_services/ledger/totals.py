"""What a ledger holds, in numbers that can only grow: entries, what they cost, what is settled."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from noisefloor.accounting import Amount

_NOTHING = Amount(0)


@dataclass(frozen=True, slots=True)
class SubjectTotals:
    """What a ledger holds of one data set.

    Attributes:
        entries: How many spends.
        spent: What they cost together.
        ids: Ids of spends, as far as they are known; the others are only counted. An anchor
            knows every id that anything was released for.
    """

    entries: int = 0
    spent: Amount = _NOTHING
    ids: frozenset[str] = frozenset()

    @classmethod
    def of(cls, entries: bytes, micro_epsilon: bytes, delta_units: bytes) -> "SubjectTotals":
        """Read the server's three numbers."""
        return cls(int(entries), Amount(int(micro_epsilon), int(delta_units)))

    @property
    def numbers(self) -> tuple[int, int, int]:
        """Entries, epsilon and delta, as the server is told them."""
        return self.entries, self.spent.micro_epsilon, self.spent.delta_units

    def joined(self, other: "SubjectTotals") -> "SubjectTotals":
        """Return the larger of each number, and all ids."""
        entries, *spent = map(max, self.numbers, other.numbers)
        return SubjectTotals(entries, Amount(*spent), self.ids | other.ids)


@dataclass(frozen=True, slots=True)
class LedgerTotals:
    """What a ledger holds.

    Attributes:
        subjects: Of each data set.
        settled: How many spends have a release, or are sealed: these are never drawn again.
    """

    subjects: Mapping[str, SubjectTotals] = field(default_factory=dict)
    settled: int = 0

    def of(self, subject: str) -> SubjectTotals:
        """Return what is held of a data set; nothing of one that is not known."""
        return self.subjects.get(subject, SubjectTotals())

    def joined(self, other: "LedgerTotals") -> "LedgerTotals":
        """Return the larger of each number, and all ids."""
        names = sorted({*self.subjects, *other.subjects})
        parts = {name: self.of(name).joined(other.of(name)) for name in names}
        return LedgerTotals(parts, max(self.settled, other.settled))

    def exceeds(self, other: "LedgerTotals") -> bool:
        """Say whether any number is larger here than there; ids are not compared."""
        has_more = (
            mine > theirs
            for name, held in self.subjects.items()
            for mine, theirs in zip(held.numbers, other.of(name).numbers, strict=True)
        )
        return self.settled > other.settled or any(has_more)
