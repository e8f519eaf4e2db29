"""Protected impressions: the response of least variance, its distribution, and its estimate."""

import math

import numpy as np
import pytest

from noisefloor.ads.clicks.impression_report import ImpressionReport, variance
from noisefloor.ads.clicks.rates import interval
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import (
    KaryResponse,
    Mechanism,
    SubsetSelection,
    UnaryEncoding,
    exact_epsilon,
)
from noisefloor.randomness import SeededSource
from noisefloor.roles import kinds_from_sizes
from statistics_of_tests import FALSE_ALARM, binomial_p

SIZES = [(2, 1.0), (4, 4.0), (5, 0.5), (8, 1.0)]


@pytest.mark.parametrize("ads", [2, 3, 10, 20, 50, 300])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0, 8.0])
def test_no_response_has_less_variance(ads: int, epsilon: float) -> None:
    """Against every size of sets, k-ary response (sets of one) and the optimised encoding."""
    response = ImpressionReport(ads, epsilon).response
    size = response.subset if isinstance(response, SubsetSelection) else 1
    chosen = variance(SubsetSelection(ads, epsilon, size))
    others = [variance(SubsetSelection(ads, epsilon, other)) for other in range(1, ads)]
    assert chosen == pytest.approx(min(others), rel=1e-12)
    rise, share = 1 / (1 + math.exp(epsilon)), 1 / ads
    unary = (share / 4 + (1 - share) * rise * (1 - rise)) / (0.5 - rise) ** 2
    assert UnaryEncoding.optimised(ads, epsilon).rise / 2**64 == pytest.approx(rise)
    assert chosen <= unary


def test_few_ads_are_named_and_many_are_sent_in_sets() -> None:
    few, many = ImpressionReport(20, 4.0), ImpressionReport(20, 1.0)
    assert isinstance(few.response, KaryResponse)
    assert isinstance(many.response, SubsetSelection)
    assert few.kind == kinds_from_sizes({"shown-ads": {"size": 20}})["shown-ads"]
    assert many.kind == kinds_from_sizes({"shown-ad-sets": {"size": 20}})["shown-ad-sets"]


@pytest.mark.parametrize(("ads", "epsilon"), SIZES)
def test_it_costs_what_is_requested(ads: int, epsilon: float) -> None:
    report = ImpressionReport(ads, epsilon)
    assert isinstance(report, Mechanism)
    proved = report.guarantee().epsilon
    assert epsilon - 1e-6 <= proved <= epsilon == report.claimed.epsilon
    assert exact_epsilon(report) == pytest.approx(proved, abs=1e-10)


@pytest.mark.parametrize(("ads", "epsilon"), SIZES)
def test_the_estimate_is_unbiased(ads: int, epsilon: float) -> None:
    """From the exact distribution: the mean of what each report alone would say."""
    report = ImpressionReport(ads, epsilon)
    outputs = report.outputs()
    singles = np.array(
        [
            report.impressions(report.tally(outputs[i : i + 1]), 1).value
            for i in range(len(outputs))
        ]
    )
    for shown in range(ads):
        distribution = np.exp(report.log_likelihood(outputs, shown))
        assert distribution @ singles == pytest.approx(np.eye(ads)[shown], abs=1e-9)


@pytest.mark.parametrize(("ads", "epsilon"), SIZES)
def test_reports_fit_their_kind_of_frame(ads: int, epsilon: float) -> None:
    report = ImpressionReport(ads, epsilon)
    reports = report.randomise(np.arange(1_000) % ads, SeededSource(4, "frame"))
    batch = report.kind.encode(reports)
    assert np.array_equal(report.kind.tally(batch), report.tally(reports))


@pytest.mark.statistical
@pytest.mark.parametrize(("ads", "epsilon"), [(20, 1.0), (20, 4.0)])
def test_intervals_cover_the_impressions(ads: int, epsilon: float, seed: int) -> None:
    """200 runs of 5 000 users; false alarm FALSE_ALARM. Half as wide they cover too little."""
    report = ImpressionReport(ads, epsilon)
    shown = np.minimum(SeededSource(6, "shown").generator().geometric(0.2, 5_000), ads) - 1
    true = np.bincount(shown, minlength=ads)[1]
    hits = half = 0
    for run in range(200):
        reports = report.randomise(shown, SeededSource(seed, "cover", ads, int(epsilon), run))
        estimate = report.impressions(report.tally(reports), len(shown))
        low, high = interval(estimate)
        hits += int(low[1] <= true <= high[1])
        half += int(abs(estimate.value[1] - true) <= (high[1] - low[1]) / 4)
    assert binomial_p(hits, 200, 0.95) > FALSE_ALARM
    assert binomial_p(half, 200, 0.95) < FALSE_ALARM


def test_bad_input_is_refused() -> None:
    with pytest.raises(BadParameter, match="epsilon"):
        ImpressionReport(5, 0.0)
    with pytest.raises(BadParameter, match="size"):
        ImpressionReport(1, 1.0)
    with pytest.raises(OutOfDomain, match="Expected"):
        ImpressionReport(5, 1.0).randomise([5], SeededSource(1, "bad"))
