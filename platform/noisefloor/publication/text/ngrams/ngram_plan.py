"""What is counted of labelled documents, with how much noise, before any of them is looked at.

Three tables, one after the other. **Lengths** by label tell how many pieces there are. **Pieces**:
how often each is there in all, and by how much more under each label. **Pairs** of a piece and the
one before it, in all labels together: those that are frequent in public or would be if pieces were
independent, and for each piece all other pairs in one cell. Which pieces and pairs are worth a
count follows from public frequencies, from tables that were released before, and from the noise.
"""

import functools
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import (
    GaussianNoise,
    ReleaseLoss,
    continuous_multiplier_for,
    continuous_part,
    integer_guarantee,
    integer_sigma,
)
from noisefloor.checks import check_count
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import GaussianTable
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.publication.cell_noise import LEAST_DELTA
from noisefloor.publication.text.ngrams.noisy_counts import (
    MOST_SIGMA,
    CountingBound,
    NoisyCounting,
    counting_loss,
)
from noisefloor.publication.text.ngrams.table_rounding import TableRounding

Floats = NDArray[np.float64]
Exponents = NDArray[np.int8]

MOST_CLASSES = 32
MOST_BINS = 64
GRID = 16
"""In how many steps a document's multiplier falls."""

_TOP = 12
"""The largest exponent of two of a squared scale: 64 times the noise of a rare cell."""

_SHAPE = 0.6
"""Squared scales rise with this power of what is expected of a cell."""

POOLED_SHIFT = 3
"""A piece's count in all weighs this many halvings less than differences between labels."""

_NORM_SQUARED = 8
"""Of a document in the tables of pieces and pairs: most reach it, so that all count alike."""

_LENGTH_SHARE = 0.03
_ROUNDING_DELTA = 1e-3
"""Of a release's delta that its loss takes for rounding; a ledger has a hundredth of its own."""

_MOST_SHARE = 0.25
"""Of a release's divergence that rounding may cost beside that; else variation is charged."""

_HAIR = 1 - 1e-12
"""A hair less noise than there is, for the rounding of floats."""

_STEPS = MappingProxyType(
    {name: GRID * math.sqrt(_NORM_SQUARED) for name in ("pieces", "pairs")} | {"lengths": 1.0}
)
"""How far a document moves a table, in units of its grid, where noise is least."""


@dataclass(frozen=True, slots=True)
class NgramPlan:
    """Noisy n-gram counts of documents.

    Guarantee:  that of Gaussian noise of a multiplier for each table, one after the other, of
                which the integer noise that is drawn is a rounding. Per release.
    Neighbours: one document added or removed, or one substituted.
    Domain:     documents of at most ``longest`` pieces of a public vocabulary.

    Attributes:
        cost: What all tables together may cost; needs a delta.
        classes: Of the label.
        longest: Of a document, in pieces.
        vocabulary: How many pieces there are.
        multipliers: Of the noise, by table.
    """

    cost: Guarantee
    classes: int
    longest: int
    vocabulary: int
    multipliers: Mapping[str, float]

    @classmethod
    def of(
        cls,
        cost: Guarantee,
        classes: int,
        longest: int,
        vocabulary: int,
        *,
        has_pairs: bool = True,
    ) -> "NgramPlan":
        """Divide a cost among the tables, or refuse it; without pairs, all of theirs is of pieces.

        The less may be spent, the less of it goes to pairs: differences between labels are what a
        classifier learns from, and pairs of little noise are what makes a text look like one.
        """
        check_count(classes, "classes", least=1, most=MOST_CLASSES)
        check_count(longest, "text", most=4096)
        if cost.delta < LEAST_DELTA:
            rule = f"at least {LEAST_DELTA:g}: the noise is Gaussian"
            raise BadParameter("delta", cost.delta, rule)
        shares = _table_shares(cost.epsilon, has_pairs=has_pairs)

        def within(delta: float) -> "NgramPlan":
            whole = continuous_multiplier_for(cost.epsilon, delta, len(shares), cost.neighbours)
            return cls(cost, classes, longest, vocabulary, _multipliers(whole, shares))

        first = within(cost.delta)
        # More noise has wider tables; what this one needs of delta grows by far less than half.
        left = cost.delta - 1.5 * first.cut_off
        if left < cost.delta / 2:
            rule = f"at least {3 * first.cut_off:.1g}: integer noise is cut at its tails"
            raise BadParameter("delta", cost.delta, f"{rule} at epsilon {cost.epsilon:g}")
        return within(left)

    @property
    def guarantee(self) -> Guarantee:
        """What is proved of all tables together."""
        left = self.cost.delta - self.cut_off
        found = integer_guarantee(list(self.continuous.values()), left, self.cost.neighbours)
        return replace(found, delta=self.cost.delta)

    @property
    def continuous(self) -> Mapping[str, GaussianNoise]:
        """The continuous noise that the noise of each table is a rounding of."""
        return {
            name: continuous_part(multiplier * _STEPS[name], _STEPS[name])
            for name, multiplier in self.multipliers.items()
        }

    @property
    def cut_off(self) -> float:
        """What cut tails take of delta: on one side, and e**epsilon times on the other."""
        return self.variation * (1 + math.exp(self.cost.epsilon))

    @property
    def variation(self) -> float:
        """Total variation between the tables that are drawn from and unrounded noise."""
        return math.fsum(part.variation for part in self._parts)

    @property
    def loss(self) -> ReleaseLoss:
        """What is known of the loss of all tables.

        Rounding is charged as a little less noise and a delta of its own. By total variation it
        would take e**epsilon of the ledger's whole budget times as much; that is what is left
        where a release's own delta is too small.
        """
        rounding = functools.reduce(operator.add, map(self._rounding, self.multipliers))
        delta = _ROUNDING_DELTA * self.cost.delta
        whole = math.fsum(1 / one**2 for one in self.multipliers.values())
        share = rounding.cost(delta) / whole
        if share > _MOST_SHARE:
            events = tuple(event for part in self._parts for event in part.events)
            return ReleaseLoss(events, variation=self.variation)
        # Of order a, less noise costs a / 2 times ``share * whole`` more, and a is 2 at least.
        less = _HAIR / math.sqrt(1 + share)
        noise = (GaussianNoise(one * less) for one in self.multipliers.values())
        return ReleaseLoss(tuple(noise), delta=delta)

    @property
    def _parts(self) -> list[ReleaseLoss]:
        return [
            counting_loss(multiplier, self.bound(name), self._most_cells(name))
            for name, multiplier in self.multipliers.items()
        ]

    def _most_cells(self, name: str) -> int:
        """Return how many cells of a table a document has at most, whatever its norm."""
        cells = {"lengths": 1, "pieces": (self.classes + 1) * self.longest, "pairs": self.longest}
        return cells[name]

    def _rounding(self, name: str) -> TableRounding:
        """Return what rounding costs in a table: of two documents, where one may be another."""
        moved = 2 if self.cost.neighbours is Neighbours.RECORD_SUBSTITUTE else 1
        bound, multiplier = self.bound(name), self.multipliers[name]
        least, widest = (bound.sigma(multiplier, level) for level in (0, bound.top))
        return TableRounding.of(least, widest, moved * self._most_cells(name), moved / multiplier)

    def bound(self, name: str) -> CountingBound:
        """Return how far a document can move a table, and how that is measured."""
        if name == "lengths":
            return CountingBound(1, 1, 0)
        base = self.multipliers[name] * GRID * math.sqrt(_NORM_SQUARED)
        if base > MOST_SIGMA:
            rule = f"large enough for noise of at most {MOST_SIGMA / GRID:g} documents"
            raise BadParameter("epsilon", self.cost.epsilon, rule)
        widest = math.floor(2 * math.log2(MOST_SIGMA / base))
        return CountingBound(_NORM_SQUARED, GRID, min(_TOP, widest))

    @property
    def bin_width(self) -> int:
        """How many lengths are counted as one."""
        return -(-self.longest // MOST_BINS)

    @property
    def bins(self) -> int:
        """How many cells of lengths each label has."""
        return -(-self.longest // self.bin_width)

    def counting(self, name: str, exponents: Exponents) -> NoisyCounting:
        """Return the counting of a table, once its cells are known."""
        return NoisyCounting(exponents, self.multipliers[name], self.bound(name))

    def deviation(self, name: str) -> float:
        """Return the standard deviation of the noise of a cell of scale 1, in counts."""
        return self.multipliers[name] * math.sqrt(self.bound(name).norm_squared)

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Return what a card says of the tables."""
        return {
            name: {
                "noise_multiplier": multiplier,
                "largest_squared_norm": self.bound(name).norm_squared,
            }
            for name, multiplier in self.multipliers.items()
        }


def _table_shares(epsilon: float, *, has_pairs: bool) -> dict[str, float]:
    """Return what part of a cost each table has; they add up to 1."""
    if not has_pairs:
        return {"lengths": _LENGTH_SHARE, "pieces": 1 - _LENGTH_SHARE}
    pairs = min(0.47, max(0.1, 0.12 + 0.12 * math.log2(epsilon)))
    return {"lengths": _LENGTH_SHARE, "pieces": 1 - pairs - _LENGTH_SHARE, "pairs": pairs}


def _multipliers(whole: float, shares: Mapping[str, float]) -> Mapping[str, float]:
    """Divide noise among tables: what they cost together is what it costs, rounding included."""
    made = {}
    for name, share in shares.items():
        step = _STEPS[name]
        made[name] = integer_sigma(whole / math.sqrt(share) * step) / step
    return MappingProxyType(made)


def noise_of(plan: NgramPlan, name: str) -> tuple[GaussianTable, int]:
    """Return the noise of a cell of scale 1 and by how much a document moves it at most.

    Both are in units of the grid; the ratio of the two is that of every other cell as well.
    """
    bound = plan.bound(name)
    step = math.isqrt(bound.grid**2 * bound.norm_squared)
    return GaussianTable(bound.sigma(plan.multipliers[name], 0)), step


def scale_exponents(expected: Floats, least: float, shift: int, top: int) -> Exponents:
    """Return exponents of squared scales: the least for rare cells, more for frequent ones.

    Args:
        expected: Of each cell, in any unit.
        least: What the rarest cells that are counted are expected to be.
        shift: The least exponent.
        top: The largest exponent.
    """
    rising = _SHAPE * np.log2(np.maximum(expected, least) / least)
    return np.clip(np.round(rising) + shift, 0, top).astype(np.int8)
