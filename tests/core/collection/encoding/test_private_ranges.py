"""Ranges: asked for under a budget, or taken from the data, and then not private."""

import numpy as np
import pytest
from numpy.typing import NDArray

from enumeration import Distribution, enumerate_distribution, exact_worst
from noisefloor.collection.encoding.private_ranges import (
    RangePhase,
    doubling_grid,
    private_schema,
    schema_of_data,
)
from noisefloor.errors import BadParameter, BadTable, OutOfDomain
from noisefloor.randomness import SeededSource, Source
from noisefloor.tables.scaled_records import Categorical, Continuous, Label

LABEL = Label("y", "0", "1")


def test_a_grid_doubles_on_both_sides_of_zero() -> None:
    assert doubling_grid(1, 4) == (-4, -2, -1, 0, 1, 2, 4)
    assert doubling_grid(3, 3) == (-3, 0, 3)


def test_the_phase_costs_its_epsilon_and_no_more() -> None:
    """The law of question and answer, over every record of two attributes on the grid."""
    phase = RangePhase(1.0, (-1.0, 0.0, 1.0))
    promised = phase.guarantee().epsilon
    assert 1 - 1e-6 <= promised <= 1

    def law_of(record: list[float]) -> Distribution:
        def report(source: Source) -> NDArray[np.int64]:
            asked, bits = phase.answers(np.array([record]), source)
            return 2 * asked + bits

        return enumerate_distribution(report)

    laws = [law_of([a, b]) for a in (-2.0, 0.5, 2.0) for b in (-2.0, 2.0)]
    worst = float(exact_worst((p, q) for p in laws for q in laws))
    assert promised - 1e-6 <= worst <= promised


def test_most_values_lie_within_the_range_that_is_found() -> None:
    draws = SeededSource(1, "values").generator()
    values = np.column_stack([draws.normal(100, 10, 60_000), draws.uniform(-3, 0, 60_000)])
    phase = RangePhase(2.0, doubling_grid(1, 1024), tail=0.1)
    ranges = phase.ranges(values, SeededSource(1, "phase"))
    assert ranges == [(64.0, 128.0), (-4.0, 0.0)]


def test_values_beyond_the_grid_get_its_end() -> None:
    phase = RangePhase(4.0, doubling_grid(1, 8), tail=0.2)
    n = phase.least_owners(1)
    assert phase.ranges(np.full((n, 1), 50.0), SeededSource(1, "far"))[0] == (4.0, 8.0)
    assert phase.ranges(np.full((n, 1), -50.0), SeededSource(1, "low"))[0] == (-8.0, -4.0)


def test_too_few_owners_are_refused_with_how_many_it_takes() -> None:
    phase = RangePhase(1.0, doubling_grid(1, 8))
    with pytest.raises(BadParameter, match=str(phase.least_owners(2))):
        phase.ranges(np.zeros((100, 2)), SeededSource(1, "few"))


def test_a_private_schema_has_the_ranges_that_were_told() -> None:
    phase = RangePhase(4.0, doubling_grid(1, 8), tail=0.2)
    table = {"a": np.linspace(-1, 3, 20_000), "y": np.zeros(20_000)}
    found = private_schema(table, LABEL, phase, SeededSource(1, "schema"), ["a"])
    # A quarter lies below 0, and none above 4: a tail of a fifth has to be kept on neither side.
    assert found.attributes == (Continuous("a", -1.0, 4.0),)
    with pytest.raises(BadTable):
        private_schema(table, LABEL, phase, SeededSource(2, "schema"), ["b"])


def test_a_schema_of_data_leaves_out_what_is_constant() -> None:
    table = {
        "a": np.array([1.0, 5.0, 3.0]),
        "still": np.zeros(3),
        "two": np.array([0.0, 1.0, 0.0]),
        "text": np.array(["b", "a", "c"]),
        "y": np.array([0, 1, 0]),
    }
    found = schema_of_data(table, LABEL)
    assert found.attributes == (
        Continuous("a", 1, 5),
        Categorical("two", ("0", "1")),
        Categorical("text", ("a", "b", "c")),
    )
    assert found.records(table).values[:, 0].tolist() == [-1, 1, 0]
    with pytest.raises(BadTable, match="finite"):
        schema_of_data(table | {"a": np.array([1.0, 2.0, np.nan])}, LABEL)


@pytest.mark.parametrize(
    ("epsilon", "grid", "tail"),
    [
        (0.0, (0.0, 1.0), 0.1),
        (1.0, (0.0,), 0.1),
        (1.0, (1.0, 0.0), 0.1),
        (1.0, (0.0, np.nan), 0.1),
        (1.0, (0.0, 1.0), 0.5),
        (1.0, (0.0, 1.0), 0.0),
    ],
)
def test_bad_phases_are_refused(epsilon: float, grid: tuple[float, ...], tail: float) -> None:
    with pytest.raises(BadParameter):
        RangePhase(epsilon, grid, tail)


@pytest.mark.parametrize(("smallest", "largest"), [(0, 1), (2, 1), (-1, 1), (1, np.inf)])
def test_bad_grids_are_refused(smallest: float, largest: float) -> None:
    with pytest.raises(BadParameter):
        doubling_grid(smallest, largest)


def test_values_that_are_no_numbers_are_refused() -> None:
    phase = RangePhase(4.0, (0.0, 1.0), tail=0.2)
    for values in (np.full((10_000, 1), np.nan), np.zeros(10_000)):
        with pytest.raises(OutOfDomain):
            phase.ranges(values, SeededSource(1, "nan"))
