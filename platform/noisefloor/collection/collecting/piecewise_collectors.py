"""PM: the paper's baseline, the piecewise mechanism on values, in the readings of its text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import sequential
from noisefloor.checks import blocks
from noisefloor.collection.collecting.collectors import Collected, check_positive
from noisefloor.collection.encoding import ReportColumns, share_of
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import BinaryResponse, Piecewise
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.tables import Labels, ScaledRecords

LabelBy = Literal["piecewise", "response", "plain", "none"]
"""How PM sends the label: as a number, as a class, as it is, or not at all."""

EPSILON_A_SAMPLE = 2.5
"""Where coordinates are sampled, each has about this much (Wang et al. 2019, section 4)."""

_USER = Neighbours.USER
_AS_IT_IS = "the label is sent as it is"


@dataclass(frozen=True, slots=True)
class PiecewiseCollector:
    """PM: every value by the piecewise mechanism; values and label share the budget equally.

    Attributes:
        epsilon: Of the record.
        label: How the label is sent; ``plain`` takes no budget, and leaves no guarantee;
            ``none``, for questions, needs none.
    """

    epsilon: float
    label: LabelBy = "piecewise"
    name: str = "PM"

    def __post_init__(self) -> None:
        _check_label(self.label)
        check_positive(self.epsilon)

    def response(self, values: int) -> Piecewise:
        """Return what each of n values goes through."""
        return Piecewise(share_of(self.epsilon, values + (self.label not in ("plain", "none"))))

    def symbols(self, attributes: int) -> tuple[int, int]:
        """Return how many cells a line has, and what the label is one of."""
        cells = self.response(attributes).window.cells
        return cells, {"piecewise": cells, "none": 0}.get(self.label, 2)

    def collect(self, records: ScaledRecords, columns: Sequence[int], source: Source) -> Collected:
        """Return debiased values and the reported labels."""
        return self.read(self.report(records, columns, source), columns)

    def report(
        self, records: ScaledRecords, columns: Sequence[int], source: Source
    ) -> ReportColumns:
        """Return cells of the values, and the label as it is sent."""
        values = records.values[:, list(columns)]
        response = self.response(values.shape[1])
        cells = response.randomise(values.reshape(-1), source.child("values"))
        if self.label == "none":
            return ReportColumns(cells.reshape(values.shape).astype(np.int64))
        labels = _labels(records.labels, self.label, response.epsilon, source)
        return ReportColumns(cells.reshape(values.shape).astype(np.int64), labels)

    def possible(self, reported: ReportColumns, columns: Sequence[int]) -> Labels:
        """Return that every row of cells is possible."""
        return np.ones(len(reported), dtype=np.bool_)

    def read(self, reported: ReportColumns, columns: Sequence[int]) -> Collected:
        """Return debiased values, and labels: positive where a number is above 0."""
        response = self.response(len(columns))
        features = response.debias(reported.values.reshape(-1)).reshape(reported.values.shape)
        if reported.labels is None:
            return Collected(features, np.zeros(len(features), np.bool_))
        if self.label == "piecewise":
            return Collected(features, np.asarray(response.debias(reported.labels) > 0))
        return Collected(features, reported.labels == 1)

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return the sum over the values and the label."""
        if self.label == "plain":
            return Guarantee.none(_AS_IT_IS, _USER)
        share = self.response(len(columns)).epsilon
        parts = [Piecewise(share).guarantee()] * len(columns)
        if self.label != "none":
            last = Piecewise(share) if self.label == "piecewise" else BinaryResponse(share)
            parts.append(last.guarantee())
        return sequential(parts)


@dataclass(frozen=True, slots=True)
class SampledPiecewiseCollector:
    """PM on a few coordinates of each record, drawn anew for each owner; the others are 0.

    Of m coordinates, the label among them unless it is ``plain``, each owner draws k = epsilon /
    2.5 (at least 1, at most m) independently of the record, and sends each by the piecewise
    mechanism with epsilon / k, scaled by m / k. A label that was not drawn is tossed: so the cost
    is that of the k answers.
    """

    epsilon: float
    label: LabelBy = "piecewise"
    name: str = "PM, sampled"

    def __post_init__(self) -> None:
        _check_label(self.label)
        check_positive(self.epsilon)
        if self.label in ("response", "none"):
            raise BadParameter("label", self.label, "to be piecewise or plain: it is a coordinate")

    def drawn(self, coordinates: int) -> int:
        """Return how many coordinates each owner sends."""
        return max(1, min(coordinates, int(self.epsilon // EPSILON_A_SAMPLE)))

    def collect(self, records: ScaledRecords, columns: Sequence[int], source: Source) -> Collected:
        """Return scaled values with 0 where nothing was sent, and labels."""
        values = records.values[:, list(columns)]
        if self.label != "plain":
            values = np.column_stack([values, 2.0 * records.labels - 1])
        n, width = values.shape
        count = self.drawn(width)
        chosen = _draws(n, width, count, source)
        response = Piecewise(share_of(self.epsilon, count))
        selected = np.take_along_axis(values, chosen, axis=1).reshape(-1)
        sent = response.debias(response.randomise(selected, source.child("values")))
        features = np.zeros((n, width))
        np.put_along_axis(features, chosen, sent.reshape(n, count) * (width / count), axis=1)
        if self.label == "plain":
            return Collected(features, records.labels)
        draws = source.stage("coins").bernoulli(1 << 63, n)
        reported = features[:, -1]
        return Collected(features[:, :-1], np.where(reported == 0, draws, reported > 0))

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return the sum over the coordinates that are sent."""
        if self.label == "plain":
            return Guarantee.none(_AS_IT_IS, _USER)
        count = self.drawn(len(columns) + 1)
        response = Piecewise(share_of(self.epsilon, count))
        return sequential([response.guarantee()] * count)


def _labels(labels: Labels, by: LabelBy, epsilon: float, source: Source) -> NDArray[np.int64]:
    """Return what is sent of the labels: as they are, flipped, or cells of a line."""
    if by == "plain":
        return labels.astype(np.int64)
    if by == "response":
        return BinaryResponse(epsilon).randomise(labels, source.child("label")).astype(np.int64)
    sent = Piecewise(epsilon).randomise(2.0 * labels - 1, source.child("label"))
    return sent.astype(np.int64)


def _draws(
    n: int, width: int, count: int, source: Source
) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    """Return n different coordinates for each owner."""
    words, chosen = source.stage("which"), np.empty((n, count), dtype=np.intp)
    for rows in blocks(n, width):
        keys = words.words((rows.stop - rows.start) * width).reshape(-1, width)
        chosen[rows] = np.argsort(keys, axis=1)[:, :count]
    return chosen


def _check_label(label: str) -> None:
    if label not in get_args(LabelBy):
        raise BadParameter("label", label, f"to be one of {', '.join(get_args(LabelBy))}")
