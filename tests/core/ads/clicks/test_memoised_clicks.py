"""Memoised clicks: averaging stops at the permanent answer, and change is not covered."""

import itertools
import math

import numpy as np
import pytest

from noisefloor.ads.clicks.memoised_clicks import MemoisedClicks
from noisefloor.adversary.audit.bayes import bayes_guess
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource, new_run
from statistics_of_tests import FALSE_ALARM, binomial_p


def all_reports(days: int, ads: int) -> np.ndarray[tuple[int, int, int], np.dtype[np.bool_]]:
    rows = list(itertools.product([False, True], repeat=days * ads))
    return np.array(rows).reshape(-1, days, ads)


def test_the_worst_ratio_over_steady_vectors_is_what_is_proved() -> None:
    clicks = MemoisedClicks(2, 2.0, 1.0, days=4)
    reports = all_reports(4, 2)
    logs = [
        clicks.log_likelihood(reports, np.array(row))
        for row in itertools.product([0, 1], repeat=2)
    ]
    assert all(np.exp(some).sum() == pytest.approx(1.0) for some in logs)
    worst = float((np.max(logs, axis=0) - np.min(logs, axis=0)).max())
    proved = clicks.guarantee().epsilon
    assert worst <= proved + 1e-12
    assert proved == pytest.approx(worst, abs=1e-9)
    assert 1.0 < proved < 2.0


def test_more_days_never_pass_the_permanent_epsilon() -> None:
    proved = [MemoisedClicks(2, 2.0, 1.0, days=days).guarantee().epsilon for days in (1, 7, 365)]
    assert proved == sorted(proved)
    assert proved[0] == pytest.approx(1.0, abs=1e-6)
    assert proved[-1] <= 2.0
    assert proved[-1] == pytest.approx(2.0, abs=1e-6)


def test_a_zero_and_a_one_have_permanent_answers_of_their_own() -> None:
    """Fresh draws flip next to nothing if the first report may reveal nearly all of epsilon."""
    clicks = MemoisedClicks(2, 2.0, 2.0 * (1 - 1e-12))
    # The first ad's zero is flipped and its one is not; the second's the other way round.
    memory = np.array([[[True, False], [False, True]]])
    for bits in itertools.product([0, 1], repeat=2):
        with new_run():
            report = clicks.report(np.array([bits]), memory, SeededSource(1, "own answers"))
        assert report.tolist() == [[True, False]]


def test_the_guarantee_of_changing_clicks_is_that_of_all_fresh_draws() -> None:
    clicks = MemoisedClicks(3, 2.0, 1.0, days=4)
    fresh = clicks.response.instant / ONE
    closed = 4 * 3 * math.log((1 - fresh) / fresh)
    assert clicks.guarantee_changing().epsilon == pytest.approx(closed, rel=1e-9)


def test_changing_clicks_are_not_covered_by_the_permanent_answer() -> None:
    # One ad, two days: 0 then 1 against 0 then 0. Enumerated over permanent and fresh draws.
    clicks = MemoisedClicks(2, 2.0, 1.0, days=2)
    flip, fresh = clicks.response.permanent / ONE, clicks.response.instant / ONE

    def distribution(values: tuple[int, ...], reports: tuple[int, ...]) -> float:
        total = 0.0
        for zero, one in itertools.product([0, 1], repeat=2):
            chance = (flip if zero else 1 - flip) * (flip if one else 1 - flip)
            for value, report in zip(values, reports, strict=True):
                answer = value ^ (one if value else zero)
                chance *= fresh if answer != report else 1 - fresh
            total += chance
        return total

    outcomes = list(itertools.product([0, 1], repeat=2))
    vectors = outcomes
    worst = max(
        abs(np.log(distribution(one, seen) / distribution(other, seen)))
        for one in vectors
        for other in vectors
        for seen in outcomes
    )
    per_ad = clicks.guarantee_changing().epsilon / clicks.ads
    assert worst <= per_ad + 1e-12
    assert clicks.guarantee_changing().epsilon > clicks.guarantee().epsilon


@pytest.mark.statistical
def test_averaging_over_days_stops_where_the_closed_form_says(seed: int) -> None:
    # 20,000 users, 30 days; false alarm FALSE_ALARM. The twin: ten per cent more epsilon.
    clicks, n = MemoisedClicks(2, 2.0, 1.0, days=30), 20_000
    source = SeededSource(seed, "memory")
    truth = source.child("truth").bernoulli(ONE // 2, n)
    vectors = np.stack([truth, np.zeros(n, dtype=np.bool_)], axis=1)
    memory = clicks.memorise(n, source.child("memory"))
    days = [clicks.report(vectors, memory, source.child("day", day)) for day in range(30)]
    candidates = [np.array([False, False]), np.array([True, False])]
    found = bayes_guess(clicks, [np.stack(days, axis=1)], candidates).candidate
    right = int(np.count_nonzero(found == truth))
    assert binomial_p(right, n, clicks.bit_success()) > FALSE_ALARM
    more = MemoisedClicks(2, 2.4, 1.0, days=30)
    assert binomial_p(right, n, more.bit_success()) < FALSE_ALARM
    # Fresh responses of the same first report would have given the bit away nearly always.
    assert clicks.bit_success() < 0.74


@pytest.mark.statistical
def test_estimates_are_unbiased_over_all_draws(seed: int) -> None:
    # 100,000 users; five standard errors of the draws, false alarm 6e-7.
    clicks, n = MemoisedClicks(4, 8.0, 4.0), 100_000
    source = SeededSource(seed, "estimate")
    bits = np.arange(n)[:, None] % np.array([2, 3, 5, 7]) == 0
    memory = clicks.memorise(n, source.child("memory"))
    reports = clicks.report(bits, memory, source.child("day"))
    estimate = clicks.estimate(clicks.tally(reports), n)
    assert np.all(np.abs(estimate.value - bits.mean(axis=0)) < 5 * estimate.standard_error)


def test_permanent_answers_are_kept_per_value() -> None:
    clicks = MemoisedClicks(3, 3.0, 1.5)
    memory = clicks.memorise(1_000, SeededSource(1, "m"))
    assert memory.shape == (1_000, 3, 2)
    assert clicks.guarantee(Neighbours.USER).epsilon <= 1.5 + 1e-9


def test_a_first_report_that_reveals_more_than_all_is_refused() -> None:
    with pytest.raises(BadParameter, match="epsilon_first"):
        MemoisedClicks(3, 1.0, 2.0)
