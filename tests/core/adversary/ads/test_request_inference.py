"""Favourites from requests: met closed forms, kept caps, planted leaks, nulls."""

import numpy as np
import pytest

from noisefloor.adversary.ads.request_inference import (
    RequestGame,
    favourite,
    favourite_topic,
    success_bound,
)
from noisefloor.adversary.audit.bayes import posterior
from noisefloor.adversary.audit.outcome import AttackOutcome
from noisefloor.checks import Floats
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import (
    ArgmaxResponse,
    KaryResponse,
    NoisyMax,
    SubsetSelection,
    UnaryEncoding,
)
from noisefloor.mechanisms.base import Mechanism
from noisefloor.mechanisms.faulty import printed_noisy_max
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p

CANARIES = 40_000


def lead_rows(size: int, low: float = 0.0, high: float = 1.0) -> Floats:
    """Row j has ad j ahead of all others by the whole range."""
    return np.where(np.eye(size, dtype=np.bool_), high, low)


def assert_met(outcome: AttackOutcome, wrong: float) -> None:
    """The success is that of the closed form, and not that of a stated other one."""
    assert outcome.closed_form is not None
    assert binomial_p(outcome.right, outcome.n, outcome.closed_form) > FALSE_ALARM
    assert binomial_p(outcome.right, outcome.n, wrong) < FALSE_ALARM
    assert outcome.closed_form <= outcome.bound + 1e-9
    assert outcome.interval[0] <= outcome.bound


GAMES: list[tuple[str, Mechanism, object]] = [
    ("noisy-max", NoisyMax.laplace(5, 4.0), lead_rows(5)),
    ("argmax", ArgmaxResponse(5, 2.0), lead_rows(5)),
    ("kary", KaryResponse(6, 2.0), np.arange(6)),
    ("subset", SubsetSelection(6, 2.0), np.arange(6)),
    ("unary", UnaryEncoding.optimised(5, 2.0), np.eye(5, dtype=np.bool_)),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "mechanism", "rows"), GAMES, ids=[game[0] for game in GAMES])
@pytest.mark.parametrize("requests", [1, 3])
def test_favourites_are_found_as_often_as_the_distribution_says(
    name: str, mechanism: Mechanism, rows: Floats, requests: int, seed: int
) -> None:
    # n = 40,000; false alarm FALSE_ALARM. The twin: a success 3 points off.
    game = RequestGame(mechanism, rows, requests)
    outcome = game.play(CANARIES, SeededSource(seed, "favourite", name, requests))
    assert_met(outcome, (outcome.closed_form or 0.0) + 0.03)
    assert outcome.success > outcome.baseline


@pytest.mark.statistical
def test_a_prior_and_topics_are_used(seed: int) -> None:
    # n = 40,000; false alarm FALSE_ALARM.
    mechanism, prior = KaryResponse(6, 1.0), [0.3, 0.3, 0.1, 0.1, 0.1, 0.1]
    ads = RequestGame(mechanism, np.arange(6), 2, prior)
    topics = RequestGame(mechanism, np.arange(6), 2, prior, topics=[0, 1, 1, 2, 2, 2])
    source = SeededSource(seed, "prior")
    of_ads, of_topics = ads.play(CANARIES, source.child("a")), topics.play(CANARIES, source)
    assert_met(of_ads, (of_ads.closed_form or 0.0) + 0.03)
    assert_met(of_topics, of_ads.success)
    assert of_topics.success > of_ads.success
    assert of_topics.baseline == pytest.approx(0.4)


def test_one_request_to_a_kary_response_reaches_the_cap() -> None:
    mechanism = KaryResponse(6, 2.0)
    game = RequestGame(mechanism, np.arange(6))
    assert game.closed_form == pytest.approx(mechanism.keep / ONE)
    assert game.closed_form == pytest.approx(success_bound(2.0, 1, np.full(6, 1 / 6)))


@pytest.mark.statistical
def test_a_memoised_choice_gives_away_no_more_than_one_request(seed: int) -> None:
    # n = 40,000; false alarm FALSE_ALARM. The twin: what ten fresh requests would give.
    mechanism, source = ArgmaxResponse(5, 2.0), SeededSource(seed, "memo")
    kept = RequestGame(mechanism, lead_rows(5), 10, is_memoised=True)
    fresh = RequestGame(mechanism, lead_rows(5), 10)
    once = RequestGame(mechanism, lead_rows(5))
    assert kept.closed_form == once.closed_form
    outcome = kept.play(CANARIES, source.child("kept"))
    later = fresh.play(CANARIES, source.child("fresh"))
    assert_met(outcome, later.success)
    assert_met(later, outcome.success)
    # Whoever takes the repeats for fresh requests guesses the same, only too sure of it.
    truth, seen = kept.requests_of(CANARIES, source.child("seen"))
    assert (seen == seen[:, :1]).all()
    naive = favourite(mechanism, seen, lead_rows(5)).candidate
    assert (
        binomial_p(int((naive == truth).sum()), CANARIES, outcome.closed_form or 0) > FALSE_ALARM
    )


@pytest.mark.statistical
def test_the_printed_noise_is_found_to_leak_more_than_it_claims(seed: int) -> None:
    # The planted leak: scale 1 / epsilon on scores in [0, 2]. n = 40,000, false alarm FALSE_ALARM.
    claimed = success_bound(1.0, 1, np.full(5, 1 / 5))
    game = RequestGame(printed_noisy_max(5, 1.0, high=2.0), lead_rows(5, high=2.0))
    outcome = game.play(CANARIES, SeededSource(seed, "printed"))
    assert binomial_p(outcome.right, outcome.n, claimed) < FALSE_ALARM
    assert outcome.interval[0] > claimed
    assert_met(outcome, claimed)


@pytest.mark.statistical
def test_equal_rows_cannot_be_distinguished(seed: int) -> None:
    # The null. n = 40,000; false alarm FALSE_ALARM.
    game = RequestGame(NoisyMax.laplace(4, 4.0), np.full((4, 4), 0.5), 5)
    outcome = game.play(CANARIES, SeededSource(seed, "null"))
    assert game.closed_form == pytest.approx(0.25)
    assert binomial_p(outcome.right, outcome.n, 0.25) > FALSE_ALARM


def test_the_posterior_is_that_of_bayes_and_topics_add_up() -> None:
    mechanism, prior = KaryResponse(4, 1.0), np.array([0.4, 0.3, 0.2, 0.1])
    requests = np.array([[0, 0], [3, 3], [1, 2]])
    chances = posterior(mechanism, requests, range(4), prior)
    keep, lie = mechanism.keep / ONE, float(mechanism.lie / ONE)
    seen = np.array([keep**2, lie**2, lie**2, lie**2]) * prior
    assert chances[0] == pytest.approx(seen / seen.sum())
    topics = favourite_topic(mechanism, requests, range(4), [0, 0, 1, 1], prior)
    assert topics.posterior[0] == pytest.approx(chances[0, :2].sum())
    assert topics.candidate.tolist() == [0, 1, 0]


def test_reports_that_nobody_can_give_are_refused() -> None:
    class Exact:
        def log_likelihood(self, reports: Floats, value: int) -> Floats:
            with np.errstate(divide="ignore"):
                return np.asarray(np.log((reports == value).astype(np.float64)))

    with pytest.raises(OutOfDomain, match="some candidate"):
        posterior(Exact(), np.array([[0, 1]]), [0, 1])
    assert favourite(Exact(), np.array([[1, 1]]), [0, 1]).posterior.tolist() == [1.0]
    with pytest.raises(BadParameter, match="reports"):
        posterior(Exact(), np.array([0, 1]), [0, 1])
    with pytest.raises(BadParameter, match="groups"):
        favourite_topic(Exact(), np.array([[1]]), [0, 1], [0])
