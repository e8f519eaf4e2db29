"""Subset selection: report a random set of symbols in which the true one is over-represented.

Some of many are raised: the one weight behind every response on a set of fixed size.

``raised`` of ``size`` outcomes share the weight ``hold`` out of 2**64 evenly, the others share the
rest. Which ones are raised may be anything; how many never changes, so the ratio is the same for
all. Subset selection, the response on a top set and leaning signs are all made of it.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, blocks, check_count, check_epsilon, check_integers
from noisefloor.distributions import ONE, epsilon_of, exp, floor64, in_sixty_digits, ratio
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import base
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source


@in_sixty_digits
def raised_weight(epsilon: float, raised: int, size: int) -> int:
    """Return the largest weight of the raised outcomes that keeps epsilon."""
    share = raised * exp(epsilon)
    return floor64(ratio(share, share + Decimal(size - raised)))


def raised_epsilon(hold: int, raised: int, size: int) -> float:
    """Return the log-ratio of a raised outcome to another, never below the exact value."""
    return epsilon_of(hold * (size - raised), (ONE - hold) * raised)


def log_mixture(share: Floats, hold: int, raised: int, size: int) -> Floats:
    """Return ln P of one outcome that is raised in so large a share of equally likely cases."""
    high = np.exp(base.log_of(hold, ONE * raised))
    low = np.exp(base.log_of(ONE - hold, ONE * (size - raised)))
    return np.asarray(np.log(share * high + (1 - share) * low))


_LISTABLE = 1 << 20


@dataclass(frozen=True, slots=True)
class SubsetSelection:
    """Report ``subset`` of ``size`` symbols; the true one is among them with a raised probability.

    Guarantee:  pure DP, epsilon = ln(hold (size - subset) / ((2**64 - hold) subset)), per release.
    Neighbours: item = user: any symbol to any other; one user holds one symbol (local model).
    Domain:     integers in range(size), size >= 2; anything else is refused.
    Reference:  Ye and Barg 2018, arXiv 1702.00610 (subset selection).

    Attributes:
        size: Number of symbols.
        epsilon: As requested.
        subset: Symbols per report; by default the best for estimation, size / (e**epsilon + 1).
        hold: Weight, out of 2**64, with which the true symbol is in the report.
    """

    size: int
    epsilon: float
    subset: int = 0
    hold: int = field(init=False)

    def __post_init__(self) -> None:
        size = check_count(self.size, "size", least=2, most=1 << 16)
        epsilon = check_epsilon(self.epsilon)
        best = max(1, round(size / (math.exp(epsilon) + 1)))
        subset = check_count(self.subset or best, "subset", least=1, most=size - 1)
        object.__setattr__(self, "subset", subset)
        object.__setattr__(self, "hold", raised_weight(epsilon, subset, size))

    def randomise(self, values: object, source: Source) -> NDArray[np.bool_]:
        """Return one row of ``size`` flags per user, ``subset`` of them set."""
        symbols = check_integers(values, 0, self.size - 1)
        holds = source.stage("hold")
        # Floyd's algorithm: the step for j picks one of j + 1 others, or j if that is taken.
        steps = range(self.size - 1 - self.subset, self.size - 1)
        picks = [source.stage("pick", step) for step in steps]
        reports = np.zeros((len(symbols), self.size), dtype=np.bool_)
        for rows in blocks(len(symbols), self.size):
            some, flags = symbols[rows].astype(np.int64), reports[rows]
            is_inside = holds.bernoulli(self.hold, len(some))
            place = np.arange(len(some)) * self.size
            flags.reshape(-1)[place + some] = is_inside
            for step, pick in zip(steps, picks, strict=True):
                # A report that holds the truth has one other fewer: it skips the first step.
                skipped = is_inside if step == steps.start else None
                _add_other(flags.reshape(-1), place, some, step, pick, skipped)
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the weight as rounded."""
        if neighbours not in (Neighbours.ITEM, Neighbours.USER):
            return base.unsupported(self, neighbours)
        return Guarantee(raised_epsilon(self.hold, self.subset, self.size), neighbours)

    def log_likelihood(self, reports: base.Reports, value: Any) -> Floats:
        """Return ln P(set | value): all sets with the value are alike, and all without."""
        with_it = base.log_of(self.hold, ONE * math.comb(self.size - 1, self.subset - 1))
        without = base.log_of(ONE - self.hold, ONE * math.comb(self.size - 1, self.subset))
        return np.where(reports[:, value], with_it, without)

    def tally(self, reports: base.Reports) -> base.Tally:
        """Return in how many reports each symbol is."""
        counts = np.zeros(self.size, dtype=np.int64)
        for rows in blocks(len(reports), self.size):
            counts += reports[rows].sum(axis=0, dtype=np.int64)
        return counts

    def estimate(self, tally: base.Tally, n: int) -> base.Estimate:
        """Return the share of users who hold each symbol."""
        hold = self.hold / ONE
        lack = (self.subset - hold) / (self.size - 1)
        return base.response_estimate(tally, base.check_reports_counted(n), hold=hold, lack=lack)

    def outputs(self) -> base.Reports:
        """Return every set of the right size; refused when there are too many to list."""
        if math.comb(self.size, self.subset) > _LISTABLE:
            raise BadParameter("size", self.size, "small enough for the reports to be listed")
        chosen = np.array(list(itertools.combinations(range(self.size), self.subset)))
        flags = np.zeros((len(chosen), self.size), dtype=np.bool_)
        np.put_along_axis(flags, chosen, True, axis=1)
        return flags

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return one pair: by symmetry all are alike."""
        return [(0, self.size - 1)]


def _add_other(
    flags: NDArray[np.bool_],
    place: NDArray[np.int64],
    symbols: NDArray[np.int64],
    step: int,
    pick: Source,
    skipped: NDArray[np.bool_] | None,
) -> None:
    """Add one of the other symbols to each set; other number o is symbol + 1 + o, cyclically."""
    size = flags.size // max(1, len(place))
    first = pick.below(step + 1, len(place)).astype(np.int64)
    taken = flags[place + (symbols + 1 + first) % size]
    chosen = place + (symbols + 1 + np.where(taken, step, first)) % size
    flags[chosen if skipped is None else chosen[~skipped]] = True
