"""How likely a report of one of many ads is, or of a set of them, once ads are put in order.

The true ad, or the favourite, comes first. A report of one ad is transformed by its place in that
order. A set is transformed by whether it has the first ad, and by where its first other ad is: of
the others every set is as likely as any other.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.fit import (
    FitTable,
    UniformFit,
    raised_fault,
    raised_uniforms,
)
from noisefloor.checks import Floats
from noisefloor.mechanisms import TwoSidedGeometric

Flags = NDArray[np.bool_]
Places = NDArray[np.int64]


def place_uniforms(chances: Floats, places: Places, draws: Floats) -> Floats:
    """Return the transform of reports by their place.

    Args:
        chances: The probability of each place, one row for all reports or one for each.
        places: Of the reports.
        draws: Uniform, one for each.
    """
    below = np.cumsum(chances, axis=-1) - chances
    if chances.ndim == 1:
        first, mass = below[places], chances[places]
    else:
        each = np.arange(len(places))
        first, mass = below[each, places], chances[each, places]
    return np.clip(first + draws * mass, 0.0, 1 - 2.0**-53)


@dataclass(frozen=True)
class SetReference:
    """Sets of a fixed size, in which the first of all ads is with a declared probability.

    Attributes:
        ads: Ads there are.
        subset: Ads in a set.
        hold: The probability that the first is in it.
        planted: The same with noise a quarter too small, if there is noise.
    """

    ads: int
    subset: int
    hold: float
    planted: float | None

    def see(self, tests: UniformFit, name: str, flags: Flags, draws: Floats) -> Floats:
        """Count sets, and return their transforms.

        Args:
            tests: Where they are counted.
            name: What they are, in words.
            flags: Which ads are in each set, in order.
            draws: Uniform, two for each.
        """
        self._see_members(tests.table, name, flags)
        inputs = raised_uniforms(flags[:, 0], self.hold, draws[:, 0])
        others = self._others(flags, draws[:, 1])
        fault = None if self.planted is None else raised_fault(self.hold, self.planted)
        tests.see(name, inputs, fault)
        tests.see(f"other ads of {name}", others)
        return np.column_stack([inputs, others])

    def _see_members(self, table: FitTable, name: str, flags: Flags) -> None:
        counts, tried = flags.sum(axis=0), np.full(self.ads, len(flags))
        faults = None if self.planted is None else self._members(self.planted)
        table.add(
            f"ads of {name}, by their place", counts, tried, self._members(self.hold), faults
        )

    def _members(self, hold: float) -> Floats:
        chances = np.full(self.ads, (self.subset - hold) / (self.ads - 1))
        chances[0] = hold
        return chances

    def _others(self, flags: Flags, draws: Floats) -> Floats:
        """Transform where the first other ad is, given how many others there are."""
        count = self.subset - flags[:, 0].astype(np.int64)
        first = np.where(count > 0, flags[:, 1:].argmax(axis=1), 0)
        table = self._later[count]
        each = np.arange(len(flags))
        at_least, later = table[each, first], table[each, first + 1]
        found = 1 - at_least + draws * (at_least - later)
        return np.clip(np.where(count > 0, found, draws), 0.0, 1 - 2.0**-53)

    @cached_property
    def _later(self) -> Floats:
        """P(the first of n others is at this place or later), by n and place."""
        places, table = self.ads - 1, np.zeros((self.subset + 1, self.ads))
        for count in range(1, self.subset + 1):
            ways = [math.comb(places - place, count) for place in range(self.ads)]
            table[count] = np.array(ways) / ways[0]
        return table

    def log_ratio(self, has_other: Flags, has_own: Flags) -> Floats:
        """Return ln P(set | other ad first) - ln P(set | inputs ad first).

        Args:
            has_other: Whether the set has the ad that would come first.
            has_own: Whether it has the ad that does.
        """
        inputs = self.hold / math.comb(self.ads - 1, self.subset - 1)
        lacks = (1 - self.hold) / math.comb(self.ads - 1, self.subset)
        logs = np.log([lacks, inputs])
        return np.asarray(logs[has_other.astype(np.intp)] - logs[has_own.astype(np.intp)])


LOWEST, HIGHEST = 6.0, 16.0
"""How many scales of the noise below and above all scores the largest noisy one is looked for."""

NODE = 0.1
"""Distance, in scales of the noise, of the points at which tails are summed."""

MOST_AT_ONCE = 1 << 18
"""Numbers per temporary."""


def noisy_max_chances(noise: TwoSidedGeometric, grid: Places, steps: int) -> Floats:
    """Return the chance of each ad to have the largest noisy score; ties go to the first.

    Summed over the largest noisy score: point by point within the range of scores, by Simpson's
    rule in the tails beyond, where everything is smooth. It is right to 1e-5.

    Args:
        noise: Added to each score.
        grid: Scores in grid steps, one row per user.
        steps: The largest score.
    """
    nodes, weights = _nodes(float(noise.rate), steps)
    # Row g: how far the largest noisy score, which is a node, is above a score of g.
    ahead = nodes - np.arange(steps + 2)[:, None]
    # Single precision is as near as the sum is, and faster.
    below = np.log1p(-np.exp(noise.log_survival(ahead + 1))).astype(np.float32)
    at = (noise.log_pmf(ahead) + np.log(weights)).astype(np.float32)
    chances, each = np.empty(grid.shape), max(1, MOST_AT_ONCE // len(nodes))
    for start in range(0, len(grid), each):
        some = grid[start : start + each]
        others = sum(below[scores] for scores in some.T)
        for place, scores in enumerate(some.T):
            others -= below[scores]
            chances[start : start + each, place] = np.exp(at[scores] + others).sum(axis=1)
            # Those before have to stay one step behind.
            others += below[scores + 1]
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _nodes(rate: float, steps: int) -> tuple[Places, Floats]:
    """Return points and their weights in a sum over all whole numbers."""
    step = max(1, int(NODE / rate))
    low, high = (2 * math.ceil(reach / rate / step / 2) for reach in (LOWEST, HIGHEST))
    middle = np.ones(steps + 1)
    if step == 1:
        nodes = np.arange(-low, steps + high + 1)
        return nodes, np.ones(len(nodes))
    # A sum is the integral and half of what is at both ends (Euler and Maclaurin).
    below, above = (
        step / 3 * np.array([1.0, *([4, 2] * (some // 2 - 1)), 4, 1]) for some in (low, high)
    )
    below[0], above[-1] = below[0] + 0.5, above[-1] + 0.5
    middle[0] += below[-1] - 0.5
    middle[-1] += above[0] - 0.5
    nodes = np.concatenate(
        [step * np.arange(-low, 0), np.arange(steps + 1), steps + step * np.arange(1, high + 1)]
    )
    return nodes, np.concatenate([below[:-1], middle, above[1:]])
