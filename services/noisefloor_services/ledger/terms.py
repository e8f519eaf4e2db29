"""Values of the ledger on a server: terms, keys, totals, the answer of a dry run, and errors.

NoisefloorError
├── LedgerAbsent            there is no ledger of that name, or it is not the one that was opened
├── LedgerBehind            the server was set back: it holds less than the anchor says
├── BadAnchor               the anchor is missing, damaged, or of another ledger
├── UnlikeTerms             the ledger has another budget, relation or model
├── ReleaseUnspent          something was to be released without a spend
└── ReleaseSealed           what a restored spend released is not known, and is never redrawn
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from noisefloor.accounting import LARGEST_BUDGET, Amount
from noisefloor.checks import check_finite
from noisefloor.errors import BadParameter, NoisefloorError
from noisefloor.privacy import Neighbours, TrustModel

EXACT = 1 << 53
"""Below this the server's scripts count exactly."""

MOST_TEXT_BYTES = 1024
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}(\.[a-z0-9-]{1,64})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class LedgerTerms:
    """Each subject's budget, and the relation and model of everything that is spent from it.

    Attributes:
        budget: In whole units, each part below 2**53 (a delta of 0.009).
        neighbours: The relation.
        model: The model.
    """

    budget: Amount
    neighbours: Neighbours
    model: TrustModel = TrustModel.LOCAL

    def __post_init__(self) -> None:
        for name in ("micro_epsilon", "delta_units"):
            if not 0 <= getattr(self.budget, name) < EXACT:
                raise BadParameter(name, getattr(self.budget, name), "in [0, 2**53)")

    @classmethod
    def of(
        cls,
        epsilon: float,
        delta: float = 0.0,
        *,
        neighbours: Neighbours,
        model: TrustModel = TrustModel.LOCAL,
    ) -> "LedgerTerms":
        """Take the arguments of ``accounting.Ledger``; the budget is rounded down."""
        if not 0 <= check_finite(epsilon, "epsilon") <= LARGEST_BUDGET:
            raise BadParameter("epsilon", epsilon, f"in [0, {LARGEST_BUDGET:g}]")
        if not 0 <= check_finite(delta, "delta") <= 1:
            raise BadParameter("delta", delta, "in [0, 1]")
        return cls(Amount.budget(epsilon, delta), neighbours, model)

    @classmethod
    def read(cls, content: str) -> "LedgerTerms":
        """Read what ``content`` wrote; ValueError, TypeError or BadParameter for anything else."""
        _, budget, neighbours, model = json.loads(content)
        return cls(Amount(*budget), Neighbours(neighbours), TrustModel(model))

    @property
    def content(self) -> bytes:
        """The terms as bytes: the same bytes for the same terms."""
        budget = [self.budget.micro_epsilon, self.budget.delta_units]
        return json.dumps([1, budget, self.neighbours.value, self.model.value]).encode("ascii")


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
        return self._key("terms")

    @property
    def entries(self) -> str:
        """Entries by spend id."""
        return self._key("entries")

    @property
    def epsilons(self) -> str:
        """What each subject has spent of epsilon."""
        return self._key("epsilons")

    @property
    def deltas(self) -> str:
        """What each subject has spent of delta."""
        return self._key("deltas")

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

    def ids(self, subject: str) -> str:
        """Spend ids of one subject."""
        return self._key(f"ids:{subject}")

    def kept(self, spend_id: str) -> str:
        """What was released for one spend."""
        return self._key(f"kept:{spend_id}")

    def _key(self, rest: str) -> str:
        return f"noisefloor:{{ledger-{self.name}}}:{rest}"


@dataclass(frozen=True, slots=True)
class SpendPreview:
    """What a spend would do, had it been one.

    Attributes:
        is_allowed: Whether it would be accepted.
        requested: What it would debit; None for an infinite cost.
        left: What is left now.
    """

    is_allowed: bool
    requested: Amount | None
    left: Amount

    def __str__(self) -> str:
        requested = "an infinite epsilon" if self.requested is None else str(self.requested)
        if self.is_allowed or self.requested is None:
            verdict = "accepted" if self.is_allowed else "refused"
            rest = f"{self.left} is left"
        else:
            verdict, rest = "refused", "; ".join(map(str, self.requested.short_of(self.left)))
        return f"Dry run, nothing was spent: {requested} would be {verdict}; {rest}."


def check_text(value: str, name: str) -> str:
    """Return a text of at least one sign that a server can keep; it is never shown."""
    if not isinstance(value, str) or not value:
        raise BadParameter(name, type(value).__name__, "to be a text of at least one sign")
    try:
        is_short = len(value.encode()) <= MOST_TEXT_BYTES
    except UnicodeEncodeError:
        is_short = False
    if not is_short:
        raise BadParameter(name, "<text>", f"to be at most {MOST_TEXT_BYTES} bytes of UTF-8")
    return value


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
        """Entries, epsilon and delta, as they are sent to the server."""
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
        """Return the totals of a data set; zero for one without entries."""
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
            for name, totals in self.subjects.items()
            for mine, theirs in zip(totals.numbers, other.of(name).numbers, strict=True)
        )
        return self.settled > other.settled or any(has_more)


BEHIND = (
    "The server holds less of this ledger than its anchor says: it was set back. Restore a newer "
    "backup, or run restore-ledger; until then nothing is spent and nothing is released."
)


class LedgerAbsent(NoisefloorError):
    """The server holds no such ledger; an empty server must not pass for an unspent budget."""


class LedgerBehind(NoisefloorError):
    """The server holds less than the anchor says: it was set back to a backup, or emptied."""


class BadAnchor(NoisefloorError):
    """The anchor cannot be read or written, or is another ledger's."""


class UnlikeTerms(NoisefloorError):
    """The ledger on the server has another budget, relation or model."""


class ReleaseUnspent(NoisefloorError):
    """Nothing was spent under this id: spend first, release afterwards."""


class ReleaseSealed(NoisefloorError):
    """The spend came from a backup without its release; drawing it again would be a second one."""
