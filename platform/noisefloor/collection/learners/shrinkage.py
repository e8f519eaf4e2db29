"""What few and noisy reports leave open, settled: smooth shares, drawn towards everybody's.

Each label's classes are drawn towards those of everybody by ``STRENGTH`` records, and
neighbouring classes of a range share a part of their counts, since a density does not jump.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, check_finite
from noisefloor.collection.encoding import Discretiser
from noisefloor.errors import BadParameter
from noisefloor.tables import Categorical

STRENGTH = 8.0
"""Records of everybody that each label starts from. Set, with ``SHARED``, on synthetic data and
small public tables that are used in no comparison here; 4 to 16 did equally well there."""

SHARED = 0.2
"""Part of a class's count that goes to its neighbours, half to each."""

_EVEN = 0.5
"""Records, even over the classes, that everybody's shares start from."""


@dataclass(frozen=True, slots=True, eq=False)
class Shrinkage:
    """How counts of classes become shares.

    Attributes:
        classes: Of each attribute; those of the first attribute come first.
        strength: Records of everybody that each label starts from, above 0.
        shared: Part of a class's count that goes to its neighbours, in [0, 1).
    """

    classes: Discretiser
    strength: float = STRENGTH
    shared: float = SHARED

    def __post_init__(self) -> None:
        if check_finite(self.strength, "strength") <= 0:
            raise BadParameter("strength", self.strength, "> 0")
        if not 0 <= check_finite(self.shared, "shared") < 1:
            raise BadParameter("shared", self.shared, "in [0, 1)")

    def even(self) -> Floats:
        """Return even shares, a row for each class and a column for each label."""
        sizes = np.repeat(self.classes.sizes, self.classes.sizes)
        return np.repeat(1 / sizes[:, None], 2, axis=1)

    def shares(self, counts: Floats, labels: Floats) -> Floats:
        """Return each label's shares of the classes of each attribute.

        Args:
            counts: A row for each class and a column for each label, not negative.
            labels: The labels' shares.
        """
        below, above = self._neighbours()
        smooth = (1 - self.shared) * counts + self.shared / 2 * (counts[below] + counts[above])
        everybody = smooth.sum(axis=1, keepdims=True) + _EVEN * self.even()[:, :1]
        drawn = smooth + self.strength * labels * everybody / self._totals(everybody)
        return np.asarray(drawn / self._totals(drawn))

    @property
    def _starts(self) -> NDArray[np.int64]:
        sizes = np.array(self.classes.sizes)
        return np.asarray(np.cumsum(sizes) - sizes)

    def _totals(self, counts: Floats) -> Floats:
        """Return each attribute's total, repeated for each of its classes."""
        totals = np.add.reduceat(counts, self._starts, axis=0)
        return np.repeat(totals, self.classes.sizes, axis=0)

    def _neighbours(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the classes below and above each, which for categories are the class itself."""
        sizes, starts = np.array(self.classes.sizes), self._starts
        attributes = self.classes.schema.attributes
        steps = np.repeat([not isinstance(one, Categorical) for one in attributes], sizes)
        places = np.arange(sizes.sum())
        first, last = np.repeat(starts, sizes), np.repeat(starts + sizes - 1, sizes)
        return np.maximum(places - steps, first), np.minimum(places + steps, last)
