"""Ranges learnt from protected reports: what is cut off, and what a report costs."""

import itertools
import math

import numpy as np
import pytest

from enumeration import enumerate_distribution
from noisefloor.collection.encoding.private_ranges import (
    STEPS,
    TAIL,
    RangePhase,
    within_ranges,
)
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from noisefloor.roles.kind_registry import kind_description, kinds_from_sizes
from noisefloor.tables.scaled_records import Categorical, ScaledRecords, ScaledSchema
from record_worlds import LABEL, mixed_schema, ranges


def records_of(values: object) -> ScaledRecords:
    rows = np.asarray(values, dtype=np.float64)
    return ScaledRecords(rows, np.zeros(len(rows), dtype=np.bool_))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_reports_of_any_two_records_differ_by_epsilon_at_most(epsilon: float) -> None:
    phase = RangePhase(ranges(2), epsilon)
    worst, distributions = 0.0, []
    for pair in itertools.product((-1.0, 0.1, 1.0), repeat=2):

        def report(source: SeededSource, pair: tuple[float, ...] = pair) -> object:
            found = phase.report(records_of([pair]), source)
            return np.column_stack([found["attribute_1"], found["class_1"]])

        distributions.append(enumerate_distribution(report))  # type: ignore[arg-type]
    for one, other in itertools.combinations(distributions, 2):
        assert set(one) == set(other)
        worst = max(worst, *(abs(math.log(one[key] / other[key])) for key in one))
    assert epsilon - 1e-6 <= worst <= phase.guarantee().epsilon + 1e-9 <= epsilon + 2e-9


def test_empty_ends_are_cut_off_and_few_reports_cut_nothing() -> None:
    schema = mixed_schema()  # numbers are the first and the last
    phase = RangePhase(schema, 8.0)
    draw = SeededSource(3, "values").generator()
    values = np.zeros((4000, 4))
    values[:, 0] = draw.uniform(-0.95, -0.55, 4000)  # the first two parts of eight
    values[:, 3] = draw.uniform(-1, 1, 4000)
    values[:, 1], values[:, 2] = 1.0, 0.0
    records = records_of(values)
    found = phase.ranges(phase.report(records, SeededSource(3, "reports")))
    assert found == ((-1.0, -0.5), (-1.0, 1.0), (-1.0, 1.0), (-1.0, 1.0))
    few = records[slice(0, 20)]
    weak = RangePhase(schema, 0.5)
    assert weak.ranges(weak.report(few, SeededSource(3, "few"))) == ((-1.0, 1.0),) * 4
    assert phase.ranges({}) == ((-1.0, 1.0),) * 4
    scaled = within_ranges(records, found)
    assert np.allclose(scaled.values[:, 0], (values[:, 0] + 1) * 4 - 1)
    assert np.allclose(scaled.values[:, 1:], values[:, 1:])
    assert TAIL < 0.5 < STEPS


def test_the_kind_is_listed_and_lists_alone_have_no_range() -> None:
    kind = RangePhase(ranges(3), 1.0).kind
    assert kinds_from_sizes({kind.name: kind_description(kind)})[kind.name] == kind
    assert kinds_from_sizes({kind.name: {"attributes": 3, "steps": STEPS}})[kind.name] == kind
    with pytest.raises(BadParameter, match="ranges"):
        RangePhase(ScaledSchema((Categorical("c", ("a", "b")),), LABEL), 1.0)
