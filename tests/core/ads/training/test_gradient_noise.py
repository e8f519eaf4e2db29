"""Noisy gradients: the reach of a gradient, the exact cost of a report, and its wire column."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import stats

from noisefloor.ads.training.columns import LIMIT, GradientRows, gradient_noise_kind
from noisefloor.ads.training.gradient_noise import (
    GradientBound,
    GradientReport,
    farthest_gradients,
    gradient_sensitivity,
)
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import Mechanism
from noisefloor.privacy import Claim, Neighbours
from noisefloor.randomness import SeededSource, new_run
from noisefloor.wire.frames import decode_frame, encode_frame
from statistics_of_tests import FALSE_ALARM, chi_square_p, tilted

CLIPPED = [
    GradientReport(1, 1, 1, 0.5, 1.0, GradientBound.COORDINATE, clip=0.3),
    GradientReport(2, 1, 3, 0.5, 4.0, GradientBound.COORDINATE),
    GradientReport(1, 2, 2, 1.0, 2.0, GradientBound.COORDINATE),
    GradientReport(1, 1, 1, 0.5, 8.0, GradientBound.BLOCK, clip=0.3),
    GradientReport(2, 2, 2, 1.0, 6.0, GradientBound.BLOCK),
]
PRINTED = [GradientReport(2, d, 2, 1.0, 3.0, GradientBound.PRINTED) for d in (1, 2, 5)]


def label(report: GradientReport) -> str:
    return f"{report.form.value}-{report.ads}-{report.dimension}-{report.rounds}"


def worst_loss(report: GradientReport, first: object, second: object) -> float:
    """Return the largest log-ratio over all reports: the sum of each number's own largest.

    The numbers of a report are independent; for each, every integer around both inputs is tried.
    """
    one, other = (np.asarray(value, dtype=np.float64)[None] for value in (first, second))
    lie = report.response.flip / ONE
    loss = float(np.count_nonzero(one[0, :, 0] != other[0, :, 0])) * math.log((1 - lie) / lie)
    starts, ends = (report.grid(value[:, :, 1:]).reshape(-1) for value in (one, other))
    for start, end in zip(starts, ends, strict=True):
        reach = abs(int(end - start)) + 600
        around = np.arange(min(start, end) - reach, max(start, end) + reach + 1)
        gap = report.distribution.log_pmf(around - start) - report.distribution.log_pmf(
            around - end
        )
        loss += float(np.abs(gap).max())
    return loss


def rows_of(report: GradientReport, values: list[float]) -> list[NDArray[np.float64]]:
    """Return every row whose bits are 0 or 1 and whose gradients are among the values."""
    numbers = report.ads * report.dimension
    found = []
    for bits in itertools.product([0.0, 1.0], repeat=report.ads):
        for some in itertools.product(values, repeat=numbers):
            row = np.empty((report.ads, 1 + report.dimension))
            row[:, 0], row[:, 1:] = bits, np.reshape(some, (report.ads, report.dimension))
            found.append(row)
    return found


@pytest.mark.parametrize("report", CLIPPED, ids=label)
def test_clipped_gradients_cost_what_was_requested_and_no_two_cost_more(
    report: GradientReport,
) -> None:
    requested = (report.epsilon_bits + report.epsilon_values) / report.rounds
    proved = report.guarantee(Neighbours.USER).epsilon
    assert requested - 1e-6 <= proved <= requested
    assert worst_loss(report, *report.worst_pairs()[0]) == pytest.approx(proved, abs=1e-6)
    rows = rows_of(report, [-9.0, -0.1, 0.05, 9.0])
    draw = SeededSource(7, "pairs").generator()
    for first, second in draw.integers(len(rows), size=(20, 2)):
        assert worst_loss(report, rows[first], rows[second]) <= proved + 1e-9


def test_a_clip_that_is_not_made_would_cost_more() -> None:
    report = CLIPPED[0]
    thin = replace(report, epsilon_values=2 * report.epsilon_values)
    loss = worst_loss(thin, *thin.worst_pairs()[0])
    assert loss > report.guarantee().epsilon + 0.9


@pytest.mark.parametrize("report", PRINTED, ids=label)
def test_the_printed_noise_costs_its_reach_and_not_its_claim(report: GradientReport) -> None:
    proved = report.guarantee(Neighbours.USER).epsilon
    bits = report.epsilon_bits / report.rounds
    reach = gradient_sensitivity(report.dimension) / report.dimension
    expected = bits + report.epsilon_values / report.rounds * reach
    assert proved == pytest.approx(expected, rel=0.01)
    reached = worst_loss(report, *report.worst_pairs()[0])
    assert 0.99 * proved < reached <= proved
    assert Claim(report.claimed, report.guarantee()).verdict == "overclaimed"


def test_in_many_dimensions_the_printed_noise_happens_to_suffice() -> None:
    report = GradientReport(2, 40, 1, 1.0, 1.0, GradientBound.PRINTED)
    assert report.guarantee().epsilon < report.claimed.epsilon


def test_without_bounds_nothing_is_promised() -> None:
    report = GradientReport(2, 3, 1, 1.0, 1.0, GradientBound.PRINTED, bounded=False)
    proved = report.guarantee()
    assert not proved.is_finite and "bounds" in proved.reason
    far = np.full((1, 2, 4), 1e9)
    far[:, :, 0] = 1
    assert report.randomise(far, SeededSource(1, "far"))[0, 0, 1] > LIMIT // 2


@pytest.mark.parametrize("spread", [0.5, 0.8, 1.0])
@pytest.mark.parametrize("dimension", [1, 2, 3, 7])
def test_no_two_users_gradients_lie_farther_apart(dimension: int, spread: float) -> None:
    """Search at random: what is found comes close to the reach and never beyond it."""
    draw = SeededSource(8, "reach", dimension, int(10 * spread)).generator()
    reach, best = gradient_sensitivity(dimension, spread), 0.0
    near = farthest_gradients(dimension, spread)
    centre = 1 - spread

    def ball(point: NDArray[np.float64]) -> NDArray[np.float64]:
        norm = np.linalg.norm(point, axis=1, keepdims=True)
        return np.asarray(point / np.maximum(norm, 1))

    for scale in (0.3, 1.0, 3.0):
        tastes = [ball(scale * draw.normal(size=(40_000, dimension))) for _ in range(3)]
        for one, two in itertools.product((-centre, spread), repeat=2):
            first, second, factors = tastes
            left = -2 * first * (one - (first * factors).sum(axis=1))[:, None]
            right = -2 * second * (two - (second * factors).sum(axis=1))[:, None]
            best = max(best, float(np.abs(left - right).sum(axis=1).max()))
    assert best <= reach + 1e-9
    assert best > (0.97 if dimension < 3 else 0.6) * reach
    assert np.abs(near[0] - near[1]).sum() == pytest.approx(reach)
    assert reach <= 3 * math.sqrt(3 * dimension) + 1e-9


def test_the_farthest_gradients_belong_to_tastes_and_factors_in_the_ball() -> None:
    sine = 0.5
    along, across = np.full(2, math.sqrt(0.5)), np.array([math.sqrt(0.5), -math.sqrt(0.5)])
    taste = math.sqrt(1 - sine**2) * along + sine * across
    other = -(math.sqrt(1 - sine**2) * along - sine * across)
    gradients = [-2 * u * (1 - u @ -across) for u in (taste, other)]
    np.testing.assert_allclose(gradients, farthest_gradients(2), atol=1e-12)
    assert gradient_sensitivity(2) == pytest.approx(3 * math.sqrt(6))


@pytest.mark.statistical
def test_reports_follow_their_distribution(seed: int) -> None:
    # n = 100,000 reports of one bit and one number, 50 numbers a cell; the twin is 10 % off.
    report = GradientReport(1, 1, 1, 1.0, 40.0, GradientBound.COORDINATE)
    value = np.array([[1.0, 0.25]])
    reports = report.randomise(np.tile(value, (100_000, 1, 1)), SeededSource(seed, "law"))
    numbers = np.arange(-5_000, 5_000) + report.grid(value[None, :, 1:]).item()
    outputs = np.array([[[bit, number]] for bit in (0, 1) for number in numbers])
    distribution = np.exp(report.log_likelihood(outputs, value))
    assert distribution.sum() == pytest.approx(1.0, abs=1e-9)
    places = (reports[:, 0, 0] * len(numbers)) + reports[:, 0, 1] - numbers[0]
    counts = np.bincount(places, minlength=len(distribution)).reshape(-1, 50).sum(axis=1)
    cells = distribution.reshape(-1, 50).sum(axis=1) / distribution.sum()
    assert chi_square_p(counts, cells) > FALSE_ALARM
    assert chi_square_p(counts, tilted(cells, 1.1)) < FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize(
    "form", [GradientBound.COORDINATE, GradientBound.BLOCK, GradientBound.PRINTED]
)
def test_the_estimate_is_the_mean_of_rated_gradients(seed: int, form: GradientBound) -> None:
    # n = 100,000; four numbers, whose squared deviations add up to a chi-square.
    report = GradientReport(2, 2, 1, 6.0, 16.0, form, clip=2.0)
    draw = SeededSource(2, "gradients").generator()
    rows = np.empty((100_000, 2, 3))
    rows[:, :, 0] = draw.random((100_000, 2)) < 0.7
    rows[:, :, 1:] = draw.uniform(0.1, 0.4, (100_000, 2, 2))
    reports = report.randomise(rows, SeededSource(seed, "unbiased", form.value))
    estimate = report.estimate(report.tally(reports), len(reports))
    truth = (rows[:, :, :1] * rows[:, :, 1:]).mean(axis=0).reshape(-1)
    lie = report.response.flip / ONE
    each = (reports[:, :, :1] - lie) / (1 - 2 * lie) * reports[:, :, 1:] * report.resolution
    error = each.reshape(len(each), -1).std(axis=0) / math.sqrt(len(each))
    statistic = (((estimate.value - truth) / error) ** 2).sum()
    assert stats.chi2.sf(statistic, 4) > FALSE_ALARM
    undebiased = reports[:, :, :1] * reports[:, :, 1:] * report.resolution
    wrong = (((undebiased.mean(axis=0).reshape(-1) - 0.7 * truth) / error) ** 2).sum()
    assert stats.chi2.sf(wrong, 4) < FALSE_ALARM


def test_the_closed_form_of_the_noise_is_the_known_one() -> None:
    report = GradientReport(50, 10, 10, 1.0, 1.0, GradientBound.PRINTED)
    closed = (10 * 50 / 1.0) * math.sqrt(2) * (10 * 10 * 50 / 1.0)
    assert report.deviation(1) == pytest.approx(closed, rel=1e-3)
    assert report.deviation(100) == pytest.approx(closed / 10, rel=1e-3)
    coordinate = GradientReport(50, 10, 10, 1.0, 1.0, GradientBound.COORDINATE, clip=0.5)
    assert coordinate.deviation(1) == pytest.approx(closed, rel=1e-3)
    block = GradientReport(50, 10, 10, 1.0, 1.0, GradientBound.BLOCK, clip=1.0)
    assert block.deviation(1) == pytest.approx(closed * 2 / 500, rel=1e-3)


def test_a_block_is_never_longer_than_its_clip() -> None:
    report = GradientReport(3, 4, 1, 1.0, 1.0, GradientBound.BLOCK, clip=0.7)
    draw = SeededSource(4, "blocks").generator()
    rows = draw.normal(size=(2_000, 3, 4)) * draw.exponential(2.0, size=(2_000, 1, 1))
    length = np.abs(report.grid(rows)).sum(axis=(1, 2))
    assert length.max() <= report.steps
    assert 2 * length.max() <= report.distance


def test_adding_users_moves_no_draws_of_others_and_tallies_add_up() -> None:
    report = CLIPPED[1]
    rows = np.zeros((300_000, 2, 2))
    with new_run():
        some = report.randomise(rows[:200_000], SeededSource(3, "coins"))
    with new_run():
        all_ = report.randomise(rows, SeededSource(3, "coins"))
    assert np.array_equal(all_[: len(some)], some)
    parts = report.tally(all_[:1_000]) + report.tally(all_[1_000:])
    assert np.array_equal(report.tally(all_), parts)
    assert isinstance(report, Mechanism)


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((3, 2)),
        np.zeros((3, 2, 3)),
        np.full((3, 2, 2), 0.5),
        np.full((3, 2, 2), np.nan),
        np.zeros((3, 2, 2), dtype=np.complex128),
    ],
)
def test_rows_outside_the_domain_are_refused(rows: object) -> None:
    with pytest.raises(OutOfDomain):
        CLIPPED[1].randomise(rows, SeededSource(1, "refused"))


def test_the_printed_form_refuses_what_no_bounded_taste_gives() -> None:
    rows = np.zeros((1, 2, 3))
    rows[0, 1, 1:] = 2.9
    with pytest.raises(OutOfDomain, match="unit balls") as caught:
        PRINTED[1].randomise(rows, SeededSource(1, "beyond"))
    assert "2.9" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ads", 0),
        ("rounds", 0),
        ("epsilon_bits", 0.0),
        ("epsilon_values", -1.0),
        ("epsilon_values", 1e-7),
        ("clip", 0.0),
        ("spread", 0.2),
    ],
)
def test_impossible_settings_are_refused(name: str, value: object) -> None:
    settings: dict[str, object] = {
        "ads": 50,
        "dimension": 10,
        "rounds": 10,
        "epsilon_bits": 1.0,
        "epsilon_values": 1.0,
        "form": GradientBound.COORDINATE,
    }
    with pytest.raises(BadParameter, match=name):
        GradientReport(**{**settings, name: value})  # type: ignore[arg-type]  # the fault


def wire_rows(count: int, ads: int, dimension: int) -> NDArray[np.int32]:
    draw = SeededSource(6, "rows", count).generator()
    rows = draw.integers(-LIMIT, LIMIT, (count, ads, 1 + dimension), endpoint=True)
    rows[:, :, 0] = draw.integers(0, 2, (count, ads))
    return rows.astype(np.int32)


@pytest.mark.parametrize("ads", [1, 7, 8, 9])
def test_the_column_gives_back_what_it_was_given(ads: int) -> None:
    column, rows = GradientRows(ads, 3), wire_rows(500, ads, 3)
    array = column.encode(rows)
    assert array.type == column.type
    assert column.broken_rule(array) == ""
    assert np.array_equal(column.decode(array), rows)
    assert np.array_equal(column.decode(array.slice(100, 50)), rows[100:150])
    wide = rows.astype(np.int64)
    sums = [wide[:, :, 1:].sum(axis=0), (wide[:, :, :1] * wide[:, :, 1:]).sum(axis=0)]
    assert np.array_equal(column.tally(array), np.stack(sums).reshape(-1))
    assert len(column.tally(array)) == column.cells
    assert column.decode(array.slice(0, 0)).shape == (0, ads, 4)


def test_the_tally_of_the_column_is_that_of_the_mechanism() -> None:
    report = CLIPPED[4]
    reports = report.randomise(np.zeros((100, 2, 3)), SeededSource(1, "tally"))
    column = GradientRows(2, 2)
    assert np.array_equal(column.tally(column.encode(reports)), report.tally(reports))


def test_a_frame_of_noisy_gradients_is_read_as_it_was_written() -> None:
    kind, rows = gradient_noise_kind(3, 2), wire_rows(20, 3, 2)
    data = encode_frame(kind, 4, rows, SeededSource(1, "frame"))
    frame = decode_frame(data, {kind.name: kind})
    got = kind.rows(frame.batch)
    assert sorted(map(bytes, got)) == sorted(map(bytes, rows))


def test_hostile_rows_are_refused_by_their_rule() -> None:
    column = GradientRows(3, 1)

    def array(bits: int, number: int) -> pa.Array:
        row = bytes([bits]) + b"".join(
            one.to_bytes(4, "little", signed=True) for one in (0, number, 0)
        )
        return pa.array([row], column.type)

    assert column.broken_rule(array(0b111, LIMIT)) == ""
    assert "padding" in column.broken_rule(array(0b1000, 0))
    assert "outside" in column.broken_rule(array(0, -LIMIT - 1))


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((2, 3), np.int32),
        np.zeros((2, 3, 3), np.int32),
        np.zeros((2, 3, 2)),
        np.full((2, 3, 2), 2, np.int32),
        np.full((2, 3, 2), [[[1, LIMIT + 1]]], np.int64),
    ],
)
def test_the_column_refuses_what_is_no_report(values: object) -> None:
    with pytest.raises(OutOfDomain):
        GradientRows(3, 1).encode(values)
