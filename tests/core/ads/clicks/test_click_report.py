"""Click reports: what each form guards, what it costs, and what it gives up."""

import itertools
import math
from functools import partial

import numpy as np
import pytest

from enumeration import enumerate_distribution, likelihoods
from noisefloor.ads.clicks.click_report import ClickEncoding, ClickReport
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Mechanism, UnaryEncoding, exact_epsilon
from noisefloor.privacy import Claim, Neighbours
from noisefloor.randomness import SeededSource, new_run
from statistics_of_tests import FALSE_ALARM, chi_square_p

CORRECTED = [
    ClickReport(3, 1.0, ClickEncoding.SPLIT),
    ClickReport(3, 1.0, ClickEncoding.CAPPED, most_clicks=1),
    ClickReport(4, 1.0, ClickEncoding.CAPPED, most_clicks=2),
    ClickReport(3, 1.0, ClickEncoding.ONE_CLICK),
    ClickReport(3, 1.0, ClickEncoding.PAD_AND_SAMPLE, most_clicks=1),
    ClickReport(4, 1.0, ClickEncoding.PAD_AND_SAMPLE, most_clicks=2),
]
FORMS = [ClickReport(3, 1.0, ClickEncoding.PER_BIT), *CORRECTED]


def every_row(ads: int) -> list[np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    return [np.array(row, dtype=np.bool_) for row in itertools.product([False, True], repeat=ads)]


def label(report: ClickReport) -> str:
    return f"{report.form.value}-{report.ads}-{report.most_clicks}"


@pytest.mark.parametrize("report", FORMS, ids=label)
def test_the_distribution_of_every_vector_sums_to_one(report: ClickReport) -> None:
    assert isinstance(report, Mechanism)
    for row in every_row(report.ads):
        assert np.exp(report.log_likelihood(report.outputs(), row)).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("report", [FORMS[0], FORMS[1], *FORMS[-2:]], ids=label)
def test_the_enumerated_distribution_of_every_vector_is_the_stated_one(
    report: ClickReport,
) -> None:
    """Of the forms whose draws can be listed; dummies and surplus clicks are among the rows."""
    for row in every_row(report.ads):
        distribution = enumerate_distribution(partial(report.randomise, row[None]))
        stated = likelihoods(report, report.outputs(), row)
        assert distribution.keys() == stated.keys()
        assert all(abs(math.log(distribution[key]) - stated[key]) < 1e-11 for key in distribution)


@pytest.mark.parametrize("report", CORRECTED, ids=label)
def test_no_two_vectors_are_distinguished_by_more_than_the_user_level_guarantee(
    report: ClickReport,
) -> None:
    outputs = report.outputs()
    logs = np.array([report.log_likelihood(outputs, row) for row in every_row(report.ads)])
    worst = float((logs.max(axis=0) - logs.min(axis=0)).max())
    proved = report.guarantee(Neighbours.USER).epsilon
    assert worst <= proved + 1e-12
    assert proved <= report.epsilon
    assert proved == pytest.approx(report.epsilon, abs=1e-6)
    assert exact_epsilon(report) <= proved + 1e-12


@pytest.mark.parametrize("report", CORRECTED[1:], ids=label)
@pytest.mark.parametrize("relation", [Neighbours.BIT, Neighbours.ITEM, Neighbours.MOVE_ONE])
def test_under_a_cap_nothing_less_than_the_whole_vector_is_proved(
    report: ClickReport, relation: Neighbours
) -> None:
    whole = report.guarantee(Neighbours.USER).epsilon
    assert report.guarantee(relation).epsilon == whole


def test_the_papers_form_is_overclaimed_by_the_number_of_ads() -> None:
    report = ClickReport(3, 1.0, ClickEncoding.PER_BIT)
    proved = report.guarantee(Neighbours.USER)
    assert proved.epsilon == pytest.approx(3.0)
    assert report.guarantee(Neighbours.BIT).epsilon == pytest.approx(1.0)
    assert report.guarantee(Neighbours.MOVE_ONE).epsilon == pytest.approx(2.0)
    assert exact_epsilon(report) == pytest.approx(3.0)
    assert Claim(report.claimed, proved).verdict == "overclaimed"


@pytest.mark.statistical
@pytest.mark.parametrize("report", FORMS, ids=label)
def test_sampled_reports_follow_the_stated_distribution_and_not_one_ten_per_cent_off(
    report: ClickReport, seed: int
) -> None:
    # n = 200,000; false alarm FALSE_ALARM for each form.
    row = np.arange(report.ads) < report.most_clicks
    values = np.repeat(row[None], 200_000, axis=0)
    rows = report.randomise(values, SeededSource(seed, label(report)))
    codes = rows @ (1 << np.arange(report.width))
    counts = np.bincount(codes, minlength=1 << report.width)
    distribution = np.exp(report.log_likelihood(report.outputs(), row))
    assert chi_square_p(counts, distribution) > FALSE_ALARM
    off = ClickReport(report.ads, 1.1 * report.epsilon, report.form, report.most_clicks)
    twin = np.exp(off.log_likelihood(report.outputs(), row))
    assert chi_square_p(counts, twin) < FALSE_ALARM


@pytest.mark.parametrize("report", FORMS, ids=label)
def test_adding_users_moves_nobodys_report(report: ClickReport) -> None:
    bits = SeededSource(3, "clicks").generator().random((3_000, report.ads)) < 0.4
    with new_run():
        few = report.randomise(bits[:1_000], SeededSource(4, "coins"))
    with new_run():
        many = report.randomise(bits, SeededSource(4, "coins"))
    np.testing.assert_array_equal(few, many[:1_000])


@pytest.mark.parametrize("report", FORMS, ids=label)
def test_the_estimate_is_unbiased_where_nothing_is_dropped(report: ClickReport) -> None:
    # One click a user: within every cap. The expected tally comes from the exact distribution.
    for place in range(report.ads):
        row = np.arange(report.ads) == place
        distribution = np.exp(report.log_likelihood(report.outputs(), row))
        expected = distribution @ report.outputs().astype(np.float64)
        scaled = np.rint(expected * 10**12).astype(np.int64)
        estimate = report.estimate(scaled, 10**12)
        np.testing.assert_allclose(estimate.value, row.astype(float), atol=1e-9)


def test_the_error_of_the_papers_form_is_the_closed_one() -> None:
    report = ClickReport(20, 1.0, ClickEncoding.PER_BIT)
    n = 10_000
    error = report.estimate(np.full(20, n // 4), n).standard_error[0] * n
    assert error == pytest.approx(math.sqrt(n * math.e) / (math.e - 1))


def test_what_is_sampled_of_a_padded_set_errs_by_as_much_more_as_it_stands_for() -> None:
    n, tally = 10_000, np.full(6, 2_500)
    padded = ClickReport(4, 1.0, ClickEncoding.PAD_AND_SAMPLE, most_clicks=2).estimate(tally, n)
    alone = UnaryEncoding.optimised(6, 1.0).estimate(tally, n)
    assert padded.value == pytest.approx(2 * alone.value[:4])
    assert padded.standard_error == pytest.approx(2 * alone.standard_error[:4])


def test_variances_at_equal_epsilon_are_those_of_the_literature() -> None:
    # m = 20, eps = 1, per user: split 400, capped at one 3.92, optimised 3.68, paper 0.92.
    def variance(report: ClickReport) -> float:
        stay, rise = report.encoding.stay / ONE, report.encoding.rise / ONE
        return rise * (1 - rise) / (stay - rise) ** 2

    assert variance(ClickReport(20, 1.0, ClickEncoding.SPLIT)) == pytest.approx(400, rel=0.01)
    assert variance(ClickReport(20, 1.0, ClickEncoding.CAPPED)) == pytest.approx(3.92, abs=0.01)
    assert variance(ClickReport(20, 1.0, ClickEncoding.ONE_CLICK)) == pytest.approx(3.68, abs=0.01)
    assert variance(ClickReport(20, 1.0, ClickEncoding.PER_BIT)) == pytest.approx(0.92, abs=0.01)


def test_a_cap_that_the_form_has_no_use_for_is_refused() -> None:
    with pytest.raises(BadParameter, match="most_clicks"):
        ClickReport(5, 1.0, ClickEncoding.SPLIT, most_clicks=2)
    with pytest.raises(BadParameter, match="epsilon"):
        ClickReport(5, math.nan, ClickEncoding.ONE_CLICK)
    with pytest.raises(BadParameter, match="ads"):
        ClickReport(1, 1.0, ClickEncoding.ONE_CLICK)


def test_too_many_clicks_are_dropped_evenly() -> None:
    report = ClickReport(4, 1.0, ClickEncoding.CAPPED, most_clicks=2)
    clicked = np.ones((60_000, 4), dtype=np.bool_)
    kept = report.keep(clicked, SeededSource(5, "cap"))
    assert np.all(kept.sum(axis=1) == 2)
    pairs = np.bincount(kept @ (1 << np.arange(4)), minlength=16)
    expected = np.array([bin(code).count("1") == 2 for code in range(16)]) / 6
    assert np.all(pairs[expected == 0] == 0)
    # n = 60,000; false alarm FALSE_ALARM.
    assert chi_square_p(pairs[expected > 0], expected[expected > 0]) > FALSE_ALARM
