"""Reports whose distribution differs from one to the next, as values that are uniform if it fits.

The randomised probability integral transform of a report r is u = P(below r) + V P(r), where V is
uniform and drawn by whoever tests: if r follows its declared distribution, u is uniform, whatever
that distribution is. So reports about different inputs count in the same cells, and every count is
binomial, exactly: of bins and tails of one value, and of pairs of values that share no draw.

Reference: Brockwell 2007, doi 10.1016/j.spl.2007.02.008 (the transform of discrete variables).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.fit.table import FitTable
from noisefloor.checks import Floats

BINS = 16
"""Equal bins of one value."""

DEEPEST = 14
"""Tails are 2**-1 to 2**-DEEPEST wide: deeper ones would be empty in most runs."""

PAIR_TAILS = 2.0 ** -np.arange(2, 9)
"""How far from either end both values of a pair are counted."""

NEAR = 2.0**-6
"""Values of a pair that are closer than this are counted: the same noise gives the same value."""

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]
Single = NDArray[np.float32]
Distribution = Callable[[Floats], Floats]
"""P(u < x) under a fault, for each x."""


def raised_uniforms(is_raised: Flags, chance: Floats | float, draws: Floats) -> Floats:
    """Return the transform of an event with a declared chance; it comes first.

    Args:
        is_raised: Whether it happened.
        chance: How probable it was.
        draws: Uniform, one for each.
    """
    return np.asarray(np.where(is_raised, chance * draws, chance + (1 - chance) * draws))


def raised_fault(chance: float, fault: float) -> Distribution:
    """Return how the transform is distributed if the event has another chance than declared."""

    def below(x: Floats) -> Floats:
        inside = np.minimum(x, chance) / chance if chance > 0 else np.zeros_like(x)
        outside = np.maximum(x - chance, 0) / (1 - chance) if chance < 1 else np.zeros_like(x)
        return np.asarray(fault * inside + (1 - fault) * outside)

    return below


def laplace_fault(times: float) -> Distribution:
    """Return how the transform of Laplace noise is distributed at a multiple of epsilon."""

    def below(x: Floats) -> Floats:
        tail = np.minimum(x, 1 - x)
        low = 0.5 * (2 * tail) ** times
        return np.asarray(np.where(x < 0.5, low, 1 - low))

    return below


@dataclass(frozen=True, slots=True, eq=False)
class SeenUniforms:
    """Transformed reports of one cohort in one frame.

    Attributes:
        cohort: Its number.
        epoch: Day or round.
        size: Users in the cohort.
        count: Reports of the cohort in this epoch, over all frames.
        users: The place of each report's user in the cohort.
        places: The place of each report among the cohort's reports: draws come in this order.
        values: One row per report; columns are independent of each other.
    """

    cohort: int
    epoch: int
    size: int
    count: int
    users: Rows
    places: Rows
    values: Floats


@dataclass(slots=True)
class UniformFit:
    """Tests of one flow whose reports were transformed.

    Epochs and cohorts are compared in pairs that share nothing: epochs 0 and 1, 2 and 3; cohorts
    0 and 1, 2 and 3.

    Attributes:
        table: The tests.
        kept: What came, by cohort and epoch: by the user, and by the place of the report.
    """

    table: FitTable = field(default_factory=FitTable)
    kept: dict[tuple[int, int], tuple[Single, Single]] = field(default_factory=dict)

    def see(self, name: str, values: Floats, fault: Distribution | None = None) -> None:
        """Count values in bins and tails.

        Args:
            name: What they are transformed from, in words.
            values: In [0, 1).
            fault: How they would be distributed under the planted fault, the same at each call.
        """
        flat = np.asarray(values, dtype=np.float64).reshape(-1)
        if not flat.size:
            return
        whole = 1 << DEEPEST
        fine = np.bincount(np.minimum((flat * whole).astype(np.int64), whole - 1), minlength=whole)
        below = np.concatenate([[0], np.cumsum(fine)])
        lows, highs = _CELLS
        hits, name = below[highs] - below[lows], f"{name}, by size of its noise"
        planted = None
        if fault is not None and name not in self.table.cells:
            planted = fault(highs / whole) - fault(lows / whole)
        self.table.add(name, hits, np.full(len(hits), flat.size), _DECLARED, planted)

    def see_pairs(self, name: str, one: Floats | Single, other: Floats | Single) -> None:
        """Count pairs of independent values: both far out, on the same side, next to each other.

        A value that is not a number has no partner.
        """
        one, other = (np.asarray(some, dtype=np.float64).reshape(-1) for some in (one, other))
        apart = np.abs(one - other)
        if np.isnan(apart.sum()):
            has_both = ~np.isnan(apart)
            one, other, apart = one[has_both], other[has_both], apart[has_both]
        if not one.size:
            return
        is_low = one < 0.5, other < 0.5
        ends = [
            np.where(low, some, 1 - some) for low, some in zip(is_low, (one, other), strict=True)
        ]
        # Scaled by a power of two, and so exact.
        far = (np.maximum(*ends) * _PAIR_CELLS).astype(np.int64)
        below = np.cumsum(np.bincount(far, minlength=_PAIR_CELLS))
        hits = np.empty(len(PAIR_TAILS) + 2, dtype=np.int64)
        hits[:-2] = below[_PAIR_ENDS]
        hits[-2] = np.count_nonzero(is_low[0] == is_low[1])
        hits[-1] = np.count_nonzero(apart < NEAR)
        self.table.add(f"noise of {name}", hits, np.full(len(hits), one.size), _DECLARED_PAIRS)

    def see_frame(self, seen: SeenUniforms) -> None:
        """Compare reports of a frame with each other, with another cohort's, and over epochs."""
        values, places, users = seen.values, seen.places, seen.users
        if (places[1:] < places[:-1]).any():
            order = np.argsort(places)
            values, places, users = values[order], places[order], users[order]
        half, wide = len(values) // 2, values.shape[1] // 2
        self.see_pairs("two reports of a frame", values[:half], values[half : 2 * half])
        self.see_pairs("two parts of a report", values[:, :wide], values[:, wide : 2 * wide])
        key = seen.cohort, seen.epoch
        if key not in self.kept:
            shape = values.shape[1]
            by_user, by_place = (
                np.full((rows, shape), np.nan, dtype=np.float32)
                for rows in (seen.size, seen.count)
            )
            self.kept[key] = by_user, by_place
        by_user, by_place = self.kept[key]
        # Of several reports of a user in an epoch the first is compared.
        first = np.flatnonzero(np.r_[True, users[1:] != users[:-1]]) if len(users) else users
        fresh = first[np.isnan(by_user[users[first], 0])]
        by_user[users[fresh]], by_place[places] = values[fresh], values
        other_cohort = self.kept.get((seen.cohort ^ 1, seen.epoch))
        if other_cohort is not None:
            self._by_row("reports of two frames", values, places, other_cohort[1])
        other_epoch = self.kept.get((seen.cohort, seen.epoch ^ 1))
        if other_epoch is not None:
            self._by_row("two reports of a user", values[fresh], users[fresh], other_epoch[0])
            self._by_row("reports of two epochs", values, places, other_epoch[1])

    def _by_row(self, name: str, values: Floats, rows: Rows, kept: Single) -> None:
        """Compare values with those kept in the same rows."""
        has = rows < len(kept)
        self.see_pairs(name, values[has].astype(np.float32), kept[rows[has]])


def _cells() -> tuple[Rows, Rows]:
    """Return where bins and tails begin and end, in units of the deepest tail."""
    whole, tails = 1 << DEEPEST, 1 << np.arange(DEEPEST)
    bins = np.arange(BINS + 1) * (whole // BINS)
    lows = np.concatenate([bins[:-1], np.zeros(DEEPEST, dtype=np.int64), whole - tails])
    highs = np.concatenate([bins[1:], tails, np.full(DEEPEST, whole)])
    return lows, highs


_CELLS = _cells()
_DECLARED = (_CELLS[1] - _CELLS[0]) / (1 << DEEPEST)
_PAIR_CELLS = round(1 / PAIR_TAILS[-1])
_PAIR_ENDS = np.rint(PAIR_TAILS * _PAIR_CELLS).astype(np.int64) - 1
_DECLARED_PAIRS = np.array([*(2 * PAIR_TAILS) ** 2, 0.5, 2 * NEAR - NEAR**2])
