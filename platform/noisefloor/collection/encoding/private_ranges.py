"""Ranges that are not public: asked for under a budget of their own, or taken from data.

``RangePhase`` asks each owner one question by randomised response, before anything else is
collected. ``schema_of_data`` takes what the data hold, as the paper does: the ends of its ranges
are two people's values, so it is for reproductions and for public data only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, check_count, check_finite, check_probability
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter, BadTable, OutOfDomain
from noisefloor.mechanisms import BinaryResponse
from noisefloor.privacy import Guarantee
from noisefloor.randomness import Source
from noisefloor.tables import Attribute, Categorical, Continuous, Label, ScaledSchema, Table


def doubling_grid(smallest: float, largest: float) -> tuple[float, ...]:
    """Return a public grid of thresholds: 0, and powers of two of both signs."""
    low, high = check_finite(smallest, "smallest"), check_finite(largest, "largest")
    if not 0 < low <= high:
        raise BadParameter("smallest", smallest, f"> 0 and at most largest={largest!r}")
    steps = int(np.ceil(np.log2(high / low)))
    check_count(steps, "steps of the grid", least=0, most=2100)
    powers = [low * 2.0**step for step in range(steps + 1)]
    return (*(-power for power in reversed(powers)), 0.0, *powers)


@dataclass(frozen=True, slots=True)
class RangePhase:
    """Ask each owner whether one value lies above one threshold, by randomised response.

    Each owner is given an attribute and a threshold of the public grid, drawn independently of
    the record, and answers one bit with the whole epsilon. From the debiased shares above each
    threshold, made monotone, a range is read that leaves about ``tail`` of the values at each end.

    Proof of epsilon for the whole phase: which question an owner gets does not depend on the
    record, and given the question the report is the true bit with probability at most
    e^epsilon / (1 + e^epsilon) and its opposite otherwise; so for any two records and any report
    the ratio is at most e^epsilon. Ranges are post-processing. Values that lie outside are moved
    to the ends afterwards, on the device.

    Attributes:
        epsilon: Of each owner's answer, spent before and besides what is collected later.
        grid: Thresholds in rising order, at least two, known to everybody.
        tail: The share that may be left out at each end.
    """

    epsilon: float
    grid: tuple[float, ...]
    tail: float = 0.05

    def __post_init__(self) -> None:
        BinaryResponse(self.epsilon)
        steps = np.diff([check_finite(point, "grid") for point in self.grid])
        if len(self.grid) < 2 or not (steps > 0).all():
            raise BadParameter("grid", f"<{len(self.grid)} thresholds>", "to rise, two at least")
        if check_probability(self.tail, "tail") >= 0.5:
            raise BadParameter("tail", self.tail, "below 0.5")

    def guarantee(self) -> Guarantee:
        """Return what the phase costs an owner."""
        return BinaryResponse(self.epsilon).guarantee()

    def least_owners(self, attributes: int) -> int:
        """Return how many owners it takes: a share's standard error is then half the tail."""
        flip = BinaryResponse(self.epsilon).flip / ONE
        each = (1 / (self.tail * (1 - 2 * flip))) ** 2
        return int(np.ceil(each)) * attributes * len(self.grid)

    def ranges(self, values: Floats, source: Source) -> list[tuple[float, float]]:
        """Return a range for each attribute.

        Args:
            values: As owners hold them, a row each; finite numbers.
            source: Of the questions and of the answers.
        """
        n, attributes = _check_values(values).shape
        if n < self.least_owners(attributes):
            rule = f"at least {self.least_owners(attributes)} for so many questions at this budget"
            raise BadParameter("owners", n, rule)
        requested, reports = self.answers(values, source)
        shares = self._shares(requested, reports, attributes * len(self.grid))
        return [self._range(row) for row in shares.reshape(attributes, -1)]

    def answers(
        self, values: Floats, source: Source
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the question that each owner got, and the protected answer: the device's half.

        Question q is about attribute q // len(grid) and threshold q % len(grid).
        """
        n, attributes = _check_values(values).shape
        requested = source.stage("question").below(attributes * len(self.grid), n).astype(np.int64)
        own_values = values[np.arange(n), requested // len(self.grid)]
        above = own_values > np.array(self.grid)[requested % len(self.grid)]
        return requested, BinaryResponse(self.epsilon).randomise(above, source.child("answer"))

    def _shares(
        self, requested: NDArray[np.int64], reports: NDArray[np.bool_], questions: int
    ) -> Floats:
        """Return the debiased share above each threshold."""
        counts = np.maximum(np.bincount(requested, minlength=questions), 1)
        reported = np.bincount(requested, reports.astype(np.float64), minlength=questions) / counts
        flip = BinaryResponse(self.epsilon).flip / ONE
        return np.asarray((reported - flip) / (1 - 2 * flip))

    def _range(self, above: Floats) -> tuple[float, float]:
        """Return the thresholds between which most values lie; the grid's ends where none is."""
        from scipy.optimize import isotonic_regression  # lazy: scipy is slow to import

        falling = isotonic_regression(above, increasing=False).x
        below = np.flatnonzero(falling >= 1 - self.tail)
        beyond = np.flatnonzero(falling <= self.tail)
        low = int(below[-1]) if below.size else 0
        high = int(beyond[0]) if beyond.size else len(self.grid) - 1
        # Noise can put the ends together: a range has at least one step.
        high = max(high, low + 1) if low + 1 < len(self.grid) else high
        low = min(low, high - 1)
        return self.grid[low], self.grid[high]


def private_schema(
    table: Table, label: Label, phase: RangePhase, source: Source, columns: Sequence[str]
) -> ScaledSchema:
    """Return a schema of continuous attributes whose ranges were asked for privately."""
    values = np.column_stack([_numbers(table, name) for name in columns])
    ranges = phase.ranges(values, source)
    attributes = (Continuous(name, *ends) for name, ends in zip(columns, ranges, strict=True))
    return ScaledSchema(tuple(attributes), label)


def schema_of_data(table: Table, label: Label, where: str = "table") -> ScaledSchema:
    """Return the schema that fits data exactly, as the paper's min-max does. Not private.

    Numbers become ranges from the smallest to the largest, two different numbers or texts become
    categories in sorted order, and columns that are constant are left out: they tell nothing.
    """
    found = (_fitted(name, table[name], where) for name in table if name != label.name)
    return ScaledSchema(tuple(one for one in found if one is not None), label)


def _fitted(name: str, column: NDArray[np.generic], where: str) -> Attribute | None:
    values = np.unique(column)
    if len(values) < 2:
        return None
    if len(values) == 2 or values.dtype.kind not in "iuf":
        return Categorical(name, tuple(_written(value) for value in values.tolist()))
    if not np.isfinite(values).all():
        raise BadTable(where, "Expected finite numbers.", name)
    return Continuous(name, float(values[0]), float(values[-1]))


def _written(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _numbers(table: Table, name: str) -> Floats:
    if name not in table:
        raise BadTable("table", "Expected this column.", name)
    return np.asarray(table[name], dtype=np.float64)


def _check_values(values: Floats) -> Floats:
    if values.ndim != 2 or not np.isfinite(values).all():
        raise OutOfDomain("Expected rows of finite numbers.")
    return values
