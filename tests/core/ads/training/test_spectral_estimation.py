"""From noisy moments to a model: closed forms, and matrices whose answer is known."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from noisefloor.ads.training.spectral_estimation import (
    factors_of,
    for_ridge,
    low_rank,
    mean_share,
    pair_share,
    plausible_rates,
    rated_counts,
    shrunk,
)
from noisefloor.randomness import SeededSource

Floats = NDArray[np.float64]


def loadings(ads: int, rank: int, explained: float = 0.7) -> Floats:
    drawn = SeededSource(5, "loadings", ads, rank).generator().normal(size=(ads, rank))
    return np.asarray(drawn * math.sqrt(explained / np.mean((drawn**2).sum(axis=1))))


def noise_matrix(size: int, name: str) -> Floats:
    upper = np.triu(SeededSource(5, "noise", name).generator().normal(size=(size, size)), 1)
    return np.asarray(upper + upper.T)


def test_the_number_of_rated_ads_is_binomial_for_equal_rates() -> None:
    distribution = rated_counts(np.full(4, 0.25))
    assert distribution == pytest.approx(
        [math.comb(4, k) * 0.25**k * 0.75 ** (4 - k) for k in range(5)]
    )


def test_shares_are_those_of_the_only_possible_number() -> None:
    """Everybody rated all of 6 ads."""
    everything = np.ones(6)
    assert mean_share(everything) == pytest.approx(1 - 1 / 6)
    assert pair_share(everything, spread=True) == pytest.approx(1 / 8)
    assert pair_share(everything, spread=False) == pytest.approx(1 / math.sqrt(8 * 5))


def test_shares_do_not_vanish_where_nobody_rates() -> None:
    assert mean_share(np.zeros(3)) == 0.5
    assert pair_share(np.zeros(3), spread=True) > 0


def test_noise_is_shrunk_away_and_signal_stays() -> None:
    errors = np.full(100, 1.0)
    noise = SeededSource(5, "shrunk").generator().normal(size=100)
    assert np.abs(shrunk(noise, errors)).mean() < 0.05
    assert shrunk(0.1 * noise, 0.001 * errors) == pytest.approx(0.1 * noise, rel=1e-3)
    assert np.abs(shrunk(1000 * noise, 1000 * errors)).max() < 0.2
    assert np.array_equal(shrunk(np.zeros(3), np.zeros(3)), np.zeros(3))


def test_rates_stay_away_from_zero_and_below_one() -> None:
    rates = plausible_rates(np.array([-0.2, 0.4, 0.4, 1.4]), np.full(4, 0.01))
    assert rates.min() == pytest.approx(0.05)
    assert rates.max() == 1


@pytest.mark.parametrize(("ads", "rank"), [(8, 1), (20, 3), (40, 5)])
def test_a_diagonal_that_is_missing_is_found_again(ads: int, rank: int) -> None:
    known = loadings(ads, rank)
    hollow = known @ known.T
    np.fill_diagonal(hollow, 99.0)
    worth, vectors = low_rank(hollow, rank, 0.0)
    assert (vectors * worth) @ vectors.T == pytest.approx(known @ known.T, abs=1e-4)


@pytest.mark.parametrize("size", [6, 20, 50])
def test_noise_alone_is_worth_little(size: int) -> None:
    """Ten matrices each; the edge is passed now and then, by little."""
    found = [low_rank(noise_matrix(size, f"{size} {i}"), 3, 1.0)[0] for i in range(10)]
    assert sum(worth.max() > 0 for worth in found) <= 2
    assert max(worth.max() for worth in found) < 2 * math.sqrt(size)


def test_an_eigenvalue_is_shrunk_to_what_it_was_before_the_noise() -> None:
    """One of 6 sqrt(size) over noise 1: found 9 % larger, worth 5 % too little at most."""
    size = 60
    vector = np.ones(size) / math.sqrt(size)
    strength = 6 * math.sqrt(size)
    worth, _ = low_rank(strength * np.outer(vector, vector) + noise_matrix(size, "one"), 1, 1.0)
    assert worth[0] == pytest.approx(strength, rel=0.06)


@pytest.mark.parametrize("spread", [True, False])
def test_what_normalising_takes_away_is_added_back(spread: bool) -> None:
    """400 000 people of a known model: after the correction their factors come back.

    Without it, covariances off the diagonal are off by more than twice as much.
    """
    ads, rank, rate, n = 12, 2, 0.4, 400_000
    known = loadings(ads, rank, 0.75)
    generator = SeededSource(5, "people").generator()
    rows = generator.normal(size=(n, rank)) @ known.T + 0.5 * generator.normal(size=(n, ads))
    rows *= generator.random((n, ads)) < rate
    square, fourth = (rows**2).sum(axis=1), (rows**4).sum(axis=1)
    length = square if spread else np.sqrt(np.maximum(square**2 - fourth, 0))
    weight = np.divide(1, length, where=length > 1e-9, out=np.zeros(n))
    moments = (rows * weight[:, None]).T @ rows / n
    rates = np.full(ads, rate)
    found = factors_of(moments, rank, 1e-4, gain=1.0, rates=rates, spread=spread)
    share = pair_share(rates, spread=spread)
    worth, vectors = low_rank(moments, rank, 1e-4)
    plain = (vectors * worth) @ vectors.T / share / rate**2
    off = ~np.eye(ads, dtype=bool)
    truth = (known @ known.T)[off]
    error = np.sqrt(np.mean(((found @ found.T)[off] - truth) ** 2))
    before = np.sqrt(np.mean((plain[off] - truth) ** 2))
    assert error < 0.5 * before
    assert error < 0.08 * np.sqrt(np.mean(truth**2))


def test_factors_are_scaled_for_the_ridge() -> None:
    """Explaining 60 %, the rest is 40 %: squares stand to the ridge as 60 to 40."""
    known, rates = loadings(10, 2, 0.6), np.full(10, 0.3)
    squares = (for_ridge(known, rates, 0.1) ** 2).sum(axis=1).mean()
    assert squares / 0.1 == pytest.approx(0.6 / 0.4)


def test_factors_of_nothing_are_nothing() -> None:
    moments, rates = noise_matrix(12, "nothing") * 1e-3, np.full(12, 0.3)
    found = factors_of(moments, 3, 2e-3, gain=1.0, rates=rates, spread=True)
    assert not found.any()
    assert not for_ridge(found, rates, 0.1).any()
