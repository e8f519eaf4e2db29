"""Ranges hold for every record if corrected, and do not as printed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from network_cases import random_network
from noisefloor.publication.networks.anonymised_learning import (
    CertifiedRanges,
    PrintedRanges,
    Ranges,
)
from noisefloor.publication.networks.dense import (
    DenseNetwork,
    Floats,
    NetworkPass,
    NetworkShape,
    TrainingBatch,
)
from noisefloor.randomness import SeededSource
from statistics_of_tests import Floats as Doubles

ROUNDING = 1e-4


def reach_of(ranges: Ranges, shape: NetworkShape) -> Floats:
    reach = np.empty(shape.count, np.float32)
    ranges.into(shape.views(reach))
    return reach


def batch_of(shape: NetworkShape, seed: int, *, corners: bool, count: int = 64) -> TrainingBatch:
    draw = SeededSource(seed, "batch").generator()
    inputs = np.ones((count, shape.widths[0] + 1), np.float32)
    inputs[:, :-1] = draw.random((count, shape.widths[0]))
    if corners:
        inputs = np.rint(inputs)
    targets = np.eye(shape.widths[-1], dtype=np.float32)
    return TrainingBatch(inputs, targets[draw.integers(shape.widths[-1], size=count)])


def increments_of(network: DenseNetwork, batch: TrainingBatch) -> Floats:
    both = NetworkPass(network.shape, len(batch))
    both.run(network, batch)
    return both.each()


@given(
    st.lists(st.integers(1, 6), min_size=0, max_size=3),
    st.integers(2, 4),
    st.integers(0, 1 << 30),
    st.floats(0.1, 4.0),
    st.booleans(),
)
def test_every_record_lies_in_the_certified_ranges(
    hidden: list[int], classes: int, seed: int, size: float, corners: bool
) -> None:
    shape = NetworkShape((3, *hidden, classes))
    network = random_network(shape, seed, size)
    reach = reach_of(CertifiedRanges(shape)(network), shape)
    found = np.abs(increments_of(network, batch_of(shape, seed, corners=corners)))
    assert (found <= reach * (1 + ROUNDING) + ROUNDING).all()


def test_certified_ranges_are_tighter_than_the_printed_ones_where_those_hold() -> None:
    shape = NetworkShape((14, 16, 16, 16, 2))
    network = random_network(shape, 3, 0.3)
    for block in network.blocks:
        block[-1] = 0.1  # no signal is always off: then (21) does no harm
    ours = reach_of(CertifiedRanges(shape)(network), shape)
    printed = reach_of(PrintedRanges(network.shape)(network), shape)
    assert (ours <= printed * (1 + ROUNDING)).all()
    assert ours.sum() < 0.9 * printed.sum()
    found = np.abs(increments_of(network, batch_of(shape, 1, corners=False, count=2_000)))
    assert (found <= printed * (1 + ROUNDING)).all()


def test_a_range_is_reached_in_a_network_of_one_layer() -> None:
    """Softmax comes as near to (22) as one likes, so no smaller range would do."""
    shape = NetworkShape((1, 2))
    network = DenseNetwork(shape, np.array([0, 0, 30, 0], np.float32))
    batch = TrainingBatch(np.ones((1, 2), np.float32), np.array([[0, 1]], np.float32))
    reach = reach_of(CertifiedRanges(shape)(network), shape)
    assert np.abs(increments_of(network, batch))[0] == pytest.approx(reach)


def test_ranges_are_made_anew_at_each_call() -> None:
    shape = NetworkShape((3, 4, 2))
    ranges = CertifiedRanges(shape)
    first = reach_of(ranges(random_network(shape, 1)), shape)
    ranges(random_network(shape, 2))
    assert np.array_equal(reach_of(ranges(random_network(shape, 1)), shape), first)


def printed_errors(network: DenseNetwork) -> list[tuple[Doubles, Doubles]]:
    """Return (22) and (23), literally."""
    ends = [(-np.ones(network.shape.widths[-1]), np.ones(network.shape.widths[-1]))]
    for block in network.blocks[:0:-1]:
        low, high = ends[0]
        w = block[:-1].astype(np.float64)
        least = np.where(w < 0, w * high, w * low).sum(axis=1)
        most = np.where(w > 0, w * high, w * low).sum(axis=1)
        ends.insert(0, (least, most))
    return ends


def test_the_printed_ranges_of_errors_are_symmetric() -> None:
    network = random_network(NetworkShape((3, 5, 4, 3)), 5)
    sizes = PrintedRanges(network.shape)(network).errors
    for (least, most), size in zip(printed_errors(network), sizes, strict=True):
        assert most == pytest.approx(size, rel=1e-5)
        assert least == pytest.approx(-size, rel=1e-5)


def test_as_printed_a_very_negative_bias_turns_a_range_over() -> None:
    """With b = -5 and w = 1 the largest x is -4, and (21) calls that the largest y."""
    shape = NetworkShape((1, 1, 2))
    network = DenseNetwork(shape, np.array([1, -5, 0, 0, 0, 0], np.float32))
    assert PrintedRanges(network.shape)(network).signals[1][0] == -4
    assert reach_of(PrintedRanges(network.shape)(network), shape)[2] < 0
    assert CertifiedRanges(shape)(network).signals[1][0] == 0


def test_as_printed_records_get_outside_of_the_ranges_after_it() -> None:
    """The signal -4 that cannot be pulls down the range of the next layer, which is 2 in truth."""
    shape = NetworkShape((1, 1, 1, 2))
    network = DenseNetwork(shape, np.array([1, -5, 1, 2, 1, -1, 0, 0], np.float32))
    found = np.abs(increments_of(network, batch_of(shape, 1, corners=True)))
    printed = reach_of(PrintedRanges(network.shape)(network), shape)
    certified = reach_of(CertifiedRanges(shape)(network), shape)
    assert (found.max(axis=0) > np.maximum(printed, 0) + 0.5).any()
    assert (found <= certified * (1 + ROUNDING) + ROUNDING).all()
