"""What a ledger on a server is agreed upon: its terms, its keys, and the answer of a dry run."""

import json
import re
from dataclasses import dataclass

from noisefloor.accounting import LARGEST_BUDGET, Amount
from noisefloor.checks import check_finite
from noisefloor.errors import BadParameter
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
        asked: What it would debit; None for an infinite cost.
        left: What is left now.
    """

    is_allowed: bool
    asked: Amount | None
    left: Amount

    def __str__(self) -> str:
        asked = "an infinite epsilon" if self.asked is None else str(self.asked)
        if self.is_allowed or self.asked is None:
            verdict = "accepted" if self.is_allowed else "refused"
            rest = f"{self.left} is left"
        else:
            verdict, rest = "refused", "; ".join(map(str, self.asked.short_of(self.left)))
        return f"Dry run, nothing was spent: {asked} would be {verdict}; {rest}."


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
