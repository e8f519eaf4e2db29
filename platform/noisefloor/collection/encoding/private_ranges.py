"""Ranges that are learnt from owners' reports, under a budget of their own.

Declared ranges may be much wider than the data. Before anything else is collected each owner tells
of one number, drawn independently of the record, in which of a few equal parts of its declared
range it lies, by randomised response. From the debiased shares the ends at which almost nobody is
are cut off. Later reports are about values within what is left; a value outside is moved to the
nearest end, on the device. Ranges are a function of the reports (post-processing).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from noisefloor.checks import Array, Floats
from noisefloor.collection.encoding.discretisation import Discretiser
from noisefloor.collection.encoding.joint_response import JointResponse
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee
from noisefloor.randomness import Source
from noisefloor.tables import Continuous, ScaledRecords, ScaledSchema
from noisefloor.wire import Kind, Symbols, record_kind

RANGE_ROWS = "range-rows"
"""The kind's name."""

STEPS = 8
"""Parts of a declared range; a range that was learnt consists of some of them, side by side."""

TAIL = 0.1
"""Of the values, what may lie beyond either end of a range that was learnt."""

Ranges: TypeAlias = tuple[tuple[float, float], ...]
"""The ends of each attribute in [-1, 1], the whole of it for a list of categories."""


def range_rows_kind(attributes: int, steps: int) -> Kind:
    """Make the kind of reports to the range phase: the attribute that was drawn, and the part."""
    return record_kind(RANGE_ROWS, {"attribute_1": Symbols(attributes), "class_1": Symbols(steps)})


@dataclass(frozen=True, slots=True)
class RangePhase:
    """Learn the ranges of the numbers of a schema; its lists of categories stay as they are.

    Attributes:
        schema: Of the records, with declared ranges.
        epsilon: Of each owner's report, spent besides what is collected later.
        numbers: The places of the numbers among all attributes.
        response: What a report goes through: its proof is that of ``JointResponse``.
    """

    schema: ScaledSchema
    epsilon: float
    numbers: tuple[int, ...] = field(init=False)
    classes: Discretiser = field(init=False)
    response: JointResponse = field(init=False)

    def __post_init__(self) -> None:
        kinds = enumerate(self.schema.attributes)
        numbers = tuple(place for place, one in kinds if isinstance(one, Continuous))
        if not numbers:
            raise BadParameter("ranges", "private", "declared: no attribute is a number")
        chosen = tuple(self.schema.attributes[place] for place in numbers)
        classes = Discretiser(ScaledSchema(chosen, self.schema.label), STEPS)
        response = JointResponse(classes.sizes, 1, self.epsilon, labelled=False)
        object.__setattr__(self, "numbers", numbers)
        object.__setattr__(self, "classes", classes)
        object.__setattr__(self, "response", response)

    @property
    def kind(self) -> Kind:
        """The kind of frame that carries reports."""
        return range_rows_kind(len(self.numbers), STEPS)

    def report(self, records: ScaledRecords, source: Source) -> dict[str, Array]:
        """Return what owners send: the devices' half."""
        codes = self.classes.codes(records.values[:, list(self.numbers)])
        drawn, parts = self.response.randomise(codes, source).T
        return {"attribute_1": drawn, "class_1": parts}

    def ranges(self, rows: Mapping[str, Array]) -> Ranges:
        """Return the range of each attribute: the server's half.

        An end is cut off where the share beyond it, and its standard error on top, are at most
        ``TAIL``. So few reports cut nothing off: the range stays as it was declared.
        """
        found = [(-1.0, 1.0)] * len(self.schema)
        if not rows:
            return tuple(found)
        reports = np.column_stack([rows["attribute_1"], rows["class_1"]])
        tally = self.response.tally(reports)
        shares = self.response.estimate(tally, len(reports)).value
        shares = np.maximum(shares, 0.0).reshape(len(self.numbers), STEPS)
        # The error of even shares: a part that nobody told of by chance is not known any better.
        reported = np.maximum(np.bincount(reports[:, 0], minlength=len(shares)), 1)[:, None]
        even = math.sqrt((1 - 1 / STEPS) / STEPS) / float(self.response.kept_shares[0])
        errors = np.broadcast_to(even / np.sqrt(reported), shares.shape)
        low, high = _cut(shares, errors), _cut(shares[:, ::-1], errors[:, ::-1])
        edges = np.linspace(-1.0, 1.0, STEPS + 1)
        for place, below, above in zip(self.numbers, low, high, strict=True):
            # Noise can make both ends meet: one part is always left.
            found[place] = (float(edges[below]), float(edges[max(STEPS - above, below + 1)]))
        return tuple(found)

    def guarantee(self) -> Guarantee:
        """Return what the phase costs an owner."""
        return self.response.guarantee()


def _cut(shares: Floats, errors: Floats) -> list[int]:
    """Return how many parts, from the first, hold too few values to be kept; never all."""
    beyond, error = shares.cumsum(axis=1), np.sqrt((errors**2).cumsum(axis=1))
    is_cut = np.logical_and.accumulate(beyond + error <= TAIL, axis=1)
    return [min(int(count), STEPS - 1) for count in is_cut.sum(axis=1)]


def within_ranges(records: ScaledRecords, ranges: Sequence[Sequence[float]]) -> ScaledRecords:
    """Return records whose values are scaled to ranges that were learnt, all in [-1, 1]."""
    lows, highs = np.array(ranges, dtype=np.float64).T
    scaled = (records.values - lows) * (2 / (highs - lows)) - 1
    return ScaledRecords(np.clip(scaled, -1.0, 1.0), records.labels)
