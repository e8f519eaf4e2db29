"""Collectors: what the server reads is what was sent, and costs what is stated."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from collection_worlds import classes, records, schema
from noisefloor.collection.collecting.collectors import (
    Collector,
    JointCollector,
    PrintedCollector,
    RawCollector,
    UnifiedCollector,
    WeakCollector,
)
from noisefloor.collection.collecting.piecewise_collectors import (
    PiecewiseCollector,
    SampledPiecewiseCollector,
)
from noisefloor.collection.encoding.discretisation import Discretiser, PrintedDiscretiser
from noisefloor.collection.encoding.report_columns import ReportColumns
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Piecewise
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables.scaled_records import ScaledRecords
from statistics_of_tests import FALSE_ALARM, binomial_p

COLUMNS = (4, 0, 2)
EVERY: dict[str, Callable[[], Collector]] = {
    "raw": RawCollector,
    "weak": lambda: WeakCollector(classes(4)),
    "unified": lambda: UnifiedCollector(classes(4), 100.0),
    "unified without label": lambda: UnifiedCollector(classes(4), 75.0, with_label=False),
    "joint": lambda: JointCollector(classes(4), 35.0),
    "joint without label": lambda: JointCollector(classes(4), 35.0, with_label=False),
    "printed": lambda: PrintedCollector(PrintedDiscretiser(schema(), 4), 100.0),
    "piecewise": lambda: PiecewiseCollector(140.0),
    "piecewise, response": lambda: PiecewiseCollector(140.0, "response"),
    "piecewise, plain": lambda: PiecewiseCollector(110.0, "plain"),
    "sampled": lambda: SampledPiecewiseCollector(140.0),
    "sampled, plain": lambda: SampledPiecewiseCollector(110.0, "plain"),
}


@pytest.mark.parametrize("name", EVERY)
def test_with_hardly_any_noise_the_server_reads_the_record(name: str) -> None:
    """At 25 and more for each value a lie has probability 1e-10 or the window is a cell."""
    world, collector = records(500), EVERY[name]()
    assert isinstance(collector, Collector)
    read = collector.collect(world, COLUMNS, SeededSource(1, name))
    coarse = 0.0 if name == "raw" else 0.26
    assert np.abs(read.features - world.values[:, list(COLUMNS)]).max() <= coarse
    if "without label" not in name:
        assert np.array_equal(read.labels, world.labels)
    else:
        assert not read.labels.any()


@pytest.mark.parametrize("name", EVERY)
def test_the_same_draws_give_the_same_reports(name: str) -> None:
    read = []
    for _ in range(2):
        with new_run():
            read.append(EVERY[name]().collect(records(50), COLUMNS, SeededSource(1, "again")))
    assert np.array_equal(read[0].features, read[1].features)
    assert np.array_equal(read[0].labels, read[1].labels)


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 10.0])
def test_a_protected_record_costs_its_budget(epsilon: float) -> None:
    for collector in (
        UnifiedCollector(classes(4), epsilon),
        UnifiedCollector(classes(4), epsilon, with_label=False),
        PiecewiseCollector(epsilon),
        PiecewiseCollector(epsilon, "response"),
        SampledPiecewiseCollector(epsilon),
    ):
        cost = collector.guarantee(COLUMNS).epsilon
        assert epsilon - 1e-5 <= cost <= epsilon


@pytest.mark.parametrize(
    ("collector", "reason"),
    [
        (RawCollector(), "as they are"),
        (WeakCollector(classes()), "without noise"),
        (PrintedCollector(PrintedDiscretiser(schema(), 4), 1.0), "class 0"),
        (PiecewiseCollector(1.0, "plain"), "label"),
        (SampledPiecewiseCollector(1.0, "plain"), "label"),
    ],
)
def test_what_shows_something_beyond_doubt_has_no_guarantee(
    collector: Collector, reason: str
) -> None:
    promised = collector.guarantee(COLUMNS)
    assert math.isinf(promised.epsilon)
    assert reason in promised.reason


def test_printed_lies_from_the_symbols_cost_more_than_is_claimed() -> None:
    collector = PrintedCollector(PrintedDiscretiser(schema(), 4), 1.0, "symbols")
    expected = 1 + 4 * math.log(4 / 3)
    assert collector.guarantee(COLUMNS).epsilon == pytest.approx(expected, abs=1e-6)


def test_without_the_label_each_attribute_has_more() -> None:
    with_label = UnifiedCollector(classes(4), 6.0).response(COLUMNS)
    without = UnifiedCollector(classes(4), 6.0, with_label=False).response(COLUMNS)
    assert with_label.responses[0].epsilon == pytest.approx(1.5)
    assert without.responses[0].epsilon == pytest.approx(2.0)


@pytest.mark.parametrize(("epsilon", "drawn"), [(1.0, 1), (5.0, 2), (10.0, 4), (50.0, 4)])
def test_owners_send_as_many_coordinates_as_the_budget_carries(epsilon: float, drawn: int) -> None:
    collector = SampledPiecewiseCollector(epsilon)
    assert collector.drawn(len(COLUMNS) + 1) == drawn
    read = collector.collect(records(400), COLUMNS, SeededSource(1, "drawn"))
    sent = np.count_nonzero(read.features, axis=1)
    assert sent.max() <= min(drawn, 3)
    assert read.labels.any()


@pytest.mark.statistical
def test_a_label_that_was_not_drawn_is_a_fair_bit(seed: int) -> None:
    """One of 7 coordinates is drawn, and each label is positive. False alarm FALSE_ALARM.

    n = 20,000. The twin tells the label of the other six sevenths as it is.
    """
    n, response = 20_000, Piecewise(1.0)
    records = ScaledRecords(np.zeros((n, 6)), np.ones(n, np.bool_))
    collected = SampledPiecewiseCollector(1.0).collect(
        records, range(6), SeededSource(seed, "coin")
    )
    cells = response.outputs()
    chances = np.exp(response.log_likelihood(cells, 1.0))
    reported = float(chances[response.debias(cells) > 0].sum())
    positive = int(collected.labels.sum())
    assert binomial_p(positive, n, 6 / 7 * 0.5 + reported / 7) > FALSE_ALARM
    assert binomial_p(positive, n, 6 / 7 + reported / 7) < FALSE_ALARM


def test_reports_of_sampled_coordinates_are_unbiased() -> None:
    """n = 100,000; standard error of each mean below 0.03; six of them."""
    world = records(100_000)
    read = SampledPiecewiseCollector(5.0, "plain").collect(world, COLUMNS, SeededSource(3, "mean"))
    gap = read.features[world.labels].mean(axis=0) - world.values[world.labels][:, COLUMNS].mean(
        axis=0
    )
    assert np.abs(gap).max() < 0.18


def test_a_row_with_a_class_that_its_attribute_does_not_have_is_left_out() -> None:
    collector = WeakCollector(Discretiser(schema(3, categories=2), 4))
    reported = ReportColumns(
        np.array([[3, 3, 1], [3, 3, 2], [4, 0, 0], [0, 4, 0]]), np.array([1, 0, 1, 1])
    )
    assert collector.possible(reported, range(3)).tolist() == [True, False, False, False]
    assert collector.read(reported, range(3)).labels.tolist() == [True]


@pytest.mark.parametrize(
    "make",
    [
        lambda: UnifiedCollector(classes(), 0.0),
        lambda: UnifiedCollector(classes(), math.nan),
        lambda: PrintedCollector(PrintedDiscretiser(schema(), 2), -1.0),
        lambda: PiecewiseCollector(-1.0),
        lambda: PiecewiseCollector(1.0, "shouted"),  # type: ignore[arg-type]
        lambda: SampledPiecewiseCollector(math.inf),
        lambda: SampledPiecewiseCollector(1.0, "response"),
    ],
)
def test_bad_parameters_are_refused(make: Callable[[], Collector]) -> None:
    with pytest.raises(BadParameter):
        make()


@pytest.mark.parametrize("make", [lambda e: UnifiedCollector(classes(), e), PiecewiseCollector])
def test_an_epsilon_too_small_to_be_shared_is_refused(make: Callable[[float], Collector]) -> None:
    with pytest.raises(BadParameter, match="64-bit"):
        make(2e-9).collect(records(10), COLUMNS, SeededSource(1, "tiny"))


def test_a_category_keeps_its_two_classes_however_many_others_have() -> None:
    collector = UnifiedCollector(Discretiser(schema(3, categories=2), 5), 3.0)
    assert collector.response((0, 2)).sizes == (5, 2, 2)
