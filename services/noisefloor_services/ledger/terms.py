"""Values of the ledger on a server: keys, totals, and errors.

NoisefloorError
├── LedgerBehind            the server was set back: it holds less than the anchor says
├── BadAnchor               the anchor is missing, damaged, or of another ledger
├── ReleaseUnspent          something was to be released without a spend
└── ReleaseSealed           what a restored spend released is not known, and is never redrawn
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from noisefloor.accounting import ChainTail, LossTotal
from noisefloor.errors import BadParameter, NoisefloorError

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}(\.[a-z0-9-]{1,64})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class LedgerKeys:
    """The keys of one ledger, all under one hash tag, so that one script may touch them.

    Attributes:
        name: Of the ledger: lower-case letters, digits and hyphens, at most 64. The ledger of an
            uploaded data set has a dot and the name of the data set after it.
    """

    name: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise BadParameter("name", self.name, f"to match {_NAME.pattern}")

    @property
    def terms(self) -> str:
        """Budget, relation, model and the ledger's own id."""
        return self._key("terms-2")

    @property
    def places(self) -> str:
        """For each spend id the position and the log of its record."""
        return self._key("places")

    @property
    def subjects(self) -> str:
        """The subjects that have an entry."""
        return self._key("subjects")

    @property
    def sealed(self) -> str:
        """Ids of spends that were restored without what they released."""
        return self._key("sealed")

    @property
    def settled(self) -> str:
        """Ids of spends that are never drawn again: they have a release, or are sealed."""
        return self._key("settled")

    @property
    def data_sets(self) -> str:
        """Documents of the uploaded data sets by name, dropped ones included."""
        return self._key("data-sets")

    @property
    def dropped(self) -> str:
        """Names of uploaded data sets that were dropped: each is used up."""
        return self._key("dropped-data-sets")

    @property
    def terms_of_1(self) -> str:
        """Terms of format 1, which had no chain and no filter."""
        return self._key("terms")

    @property
    def entries_of_1(self) -> str:
        """Entries of format 1 by spend id."""
        return self._key("entries")

    def totals_of_1(self, part: str) -> str:
        """Totals of format 1: of ``micro_epsilon`` or ``delta_units``."""
        return self._key({"micro_epsilon": "epsilons", "delta_units": "deltas"}[part])

    def log(self, subject: str) -> str:
        """Chained records of one subject."""
        return self._key(f"log:{subject}")

    def kept(self, spend_id: str) -> str:
        """What was released for one spend."""
        return self._key(f"kept:{spend_id}")

    def _key(self, rest: str) -> str:
        return f"noisefloor:{{ledger-{self.name}}}:{rest}"


@dataclass(frozen=True, slots=True)
class SubjectTotals:
    """What a ledger holds of one data set.

    Attributes:
        position: Of the last record of its chain.
        head: The hash of that record.
        total: What was spent.
        ids: Ids of spends, as far as they are known; the others are only counted. An anchor
            knows every id that anything was released for.
    """

    position: int = 0
    head: str = ""
    total: LossTotal = field(default_factory=LossTotal)
    ids: frozenset[str] = frozenset()

    @classmethod
    def of(cls, tail: ChainTail, *ids: str) -> "SubjectTotals":
        """Return what the end of a chain says."""
        return cls(tail.position, tail.head, tail.total, frozenset(ids))

    @property
    def numbers(self) -> tuple[int, ...]:
        """Position and every count, none of which ever falls."""
        return self.position, *self.total.numbers

    def contradicts(self, other: "SubjectTotals") -> bool:
        """Say whether the two cannot be of one chain: no count of a longer one is smaller."""
        if self.position == other.position:
            return self.head != other.head or self.total != other.total
        less, more = sorted((self, other), key=lambda one: one.position)
        return any(map(int.__gt__, less.numbers, more.numbers))

    def joined(self, other: "SubjectTotals") -> "SubjectTotals":
        """Return the larger of each number, the head of the longer chain, and all ids."""
        position, *counts = map(max, self.numbers, other.numbers)
        head = self.head if self.position > other.position else other.head
        return SubjectTotals(position, head, LossTotal.of(tuple(counts)), self.ids | other.ids)


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
        """Return the totals of a data set; zero for one without entries."""
        return self.subjects.get(subject, SubjectTotals())

    def joined(self, other: "LedgerTotals") -> "LedgerTotals":
        """Return the larger of each number, and all ids; heads of equal chains from the other."""
        names = sorted({*self.subjects, *other.subjects})
        parts = {name: self.of(name).joined(other.of(name)) for name in names}
        return LedgerTotals(parts, max(self.settled, other.settled))

    def contradicts(self, other: "LedgerTotals") -> bool:
        """Say whether the two cannot be of one history."""
        both = self.subjects.keys() & other.subjects.keys()
        return any(self.of(name).contradicts(other.of(name)) for name in both)

    def exceeds(self, other: "LedgerTotals") -> bool:
        """Say whether any number is larger here than there; ids are not compared."""
        has_more = (
            mine > theirs
            for name, totals in self.subjects.items()
            for mine, theirs in zip(totals.numbers, other.of(name).numbers, strict=True)
        )
        return self.settled > other.settled or any(has_more)


BEHIND = (
    "The server holds less of this ledger than its anchor says, or another history: it was set "
    "back or changed. Restore a newer backup, or run restore-ledger; until then nothing is spent "
    "and nothing is released."
)


class LedgerBehind(NoisefloorError):
    """The server holds less than the anchor says: it was set back to a backup, or emptied."""


class BadAnchor(NoisefloorError):
    """The anchor cannot be read or written, or is another ledger's."""


class ReleaseUnspent(NoisefloorError):
    """Nothing was spent under this id: spend first, release afterwards."""


class ReleaseSealed(NoisefloorError):
    """The spend came from a backup without its release; drawing it again would be a second one."""
