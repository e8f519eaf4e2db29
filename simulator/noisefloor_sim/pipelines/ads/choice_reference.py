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
        held = raised_uniforms(flags[:, 0], self.hold, draws[:, 0])
        others = self._others(flags, draws[:, 1])
        fault = None if self.planted is None else raised_fault(self.hold, self.planted)
        tests.see(name, held, fault)
        tests.see(f"other ads of {name}", others)
        return np.column_stack([held, others])

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
        """P(the first of so many others is at this place or later), by number and place."""
        places, table = self.ads - 1, np.zeros((self.subset + 1, self.ads))
        for count in range(1, self.subset + 1):
            ways = [math.comb(places - place, count) for place in range(self.ads)]
            table[count] = np.array(ways) / ways[0]
        return table

    def log_ratio(self, has_other: Flags, has_held: Flags) -> Floats:
        """Return ln P(set | other ad first) - ln P(set | held ad first).

        Args:
            has_other: Whether the set has the ad that would come first.
            has_held: Whether it has the ad that does.
        """
        held = self.hold / math.comb(self.ads - 1, self.subset - 1)
        lacks = (1 - self.hold) / math.comb(self.ads - 1, self.subset)
        logs = np.log([lacks, held])
        return np.asarray(logs[has_other.astype(np.intp)] - logs[has_held.astype(np.intp)])
