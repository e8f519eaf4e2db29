"""What delivery is worth: the distribution for many rows against the distribution for one, and
known figures."""

import numpy as np
import pytest
from numpy.typing import NDArray

from noisefloor.ads.delivery.ad_request import (
    DATA_INDEPENDENT,
    AdDelivery,
    AdSelection,
    Utility,
    utility_of,
)
from noisefloor.ads.delivery.shown_distribution import shown_chances
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import NoisyMax
from noisefloor.randomness import SeededSource

ADS = 20
ONE_AD = [choice for choice in AdSelection if "slate" not in choice.value]


def low_rank_scores(users: int, seed: int) -> NDArray[np.float64]:
    """Return scores 0.5 + bias + taste . factors, of spread 0.1 and 0.2, clipped to [0, 1]."""
    drawn = SeededSource(seed, "scores").generator()
    spread = (0.2 / 3**0.5) ** 0.5
    tastes, factors = drawn.normal(0, spread, (users, 3)), drawn.normal(0, spread, (ADS, 3))
    return np.clip(0.5 + drawn.normal(0, 0.1, ADS) + tastes @ factors.T, 0.0, 1.0)


@pytest.mark.parametrize("choice", ONE_AD, ids=lambda choice: choice.value)
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_the_distribution_for_many_rows_is_the_distribution_of_the_mechanism_for_each(
    choice: AdSelection, epsilon: float
) -> None:
    """Ties among them: scores are rounded."""
    delivery = AdDelivery(7, epsilon, choice, low=-1.0, steps=16)
    rows = np.round(2 * SeededSource(2, "rows").generator().random((40, 7)) - 1, 1)
    chances = delivery.shown_chances(rows)
    for row, chance in zip(rows, chances, strict=True):
        assert chance == pytest.approx(delivery.chances(row), abs=1e-13)


@pytest.mark.parametrize("choice", list(AdSelection), ids=lambda choice: choice.value)
def test_some_ad_is_always_shown(choice: AdSelection) -> None:
    rows = low_rank_scores(30, 1)
    delivery = AdDelivery(ADS, 2.0, choice)
    assert delivery.shown_chances(rows).sum(axis=1) == pytest.approx(1.0, abs=1e-12)


def test_the_distribution_of_one_sided_noise_is_refused() -> None:
    mechanism = NoisyMax.exponential(3, 1.0)
    with pytest.raises(BadParameter, match="two-sided"):
        shown_chances(mechanism, np.zeros((1, 3)))


def table() -> dict[tuple[AdSelection, float], Utility]:
    """Return the utility at each epsilon; where none is used, at what is claimed."""
    rows = np.concatenate([low_rank_scores(40, seed) for seed in range(5)])
    found = {}
    for choice in AdSelection:
        once = choice in DATA_INDEPENDENT or choice is AdSelection.EXACT
        for epsilon in (0.0,) if once else (1.0, 2.0, 4.0):
            delivery = AdDelivery(ADS, epsilon, choice)
            found[choice, delivery.claimed.epsilon] = utility_of(delivery, rows)
    return found


TOP_ONE = {
    AdSelection.NOISY_MAX: (0.06, 0.07, 0.10),
    AdSelection.EXPONENTIAL: (0.06, 0.07, 0.10),
    AdSelection.PERMUTE_AND_FLIP: (0.06, 0.07, 0.10),
    AdSelection.ARGMAX: (0.12, 0.28, 0.74),
    AdSelection.TOP_SET: (0.11, 0.19, 0.31),
    AdSelection.SLATE: (0.48, 0.71, 0.95),
}
"""How often the best of 20 ads is shown in sampled worlds like these, at epsilon 1, 2 and 4."""

LIFT = {
    AdSelection.NOISY_MAX: (0.01, 0.03, 0.07),
    AdSelection.EXPONENTIAL: (0.01, 0.03, 0.07),
    AdSelection.PERMUTE_AND_FLIP: (0.01, 0.03, 0.07),
    AdSelection.ARGMAX: (0.02, 0.08, 0.24),
    AdSelection.TOP_SET: (0.05, 0.13, 0.24),
    AdSelection.SLATE: (0.25, 0.28, 0.32),
}
"""The same for the expected score, less that of a random ad; worlds differ by some 0.04."""


def test_the_figures_are_those_of_sampled_worlds() -> None:
    worth = table()
    chance = worth[AdSelection.RANDOM, 0.0]
    assert chance.top_one == pytest.approx(1 / ADS)
    for choice, known in TOP_ONE.items():
        rows = [worth[choice, epsilon] for epsilon in (1.0, 2.0, 4.0)]
        assert [row.top_one for row in rows] == pytest.approx(known, abs=0.011)
        lifts = [row.expected_score - chance.expected_score for row in rows]
        assert lifts == pytest.approx(LIFT[choice], abs=0.06)
        assert [row.proved for row in rows] == pytest.approx([1, 2, 4], abs=1e-6)
    assert worth[AdSelection.RANDOM_SLATE, 0.0].top_one == pytest.approx(0.25)
    assert worth[AdSelection.EXACT, float("inf")].top_one == pytest.approx(1.0)


def test_noise_on_scores_loses_to_response_and_all_lose_to_a_free_slate() -> None:
    worth = table()
    for epsilon in (1.0, 2.0, 4.0):
        noisy = max(
            worth[choice, epsilon].expected_score
            for choice in (
                AdSelection.NOISY_MAX,
                AdSelection.EXPONENTIAL,
                AdSelection.PERMUTE_AND_FLIP,
            )
        )
        top_set = worth[AdSelection.TOP_SET, epsilon].expected_score
        slate = worth[AdSelection.SLATE, epsilon].expected_score
        assert noisy < top_set < slate
        assert worth[AdSelection.RANDOM_SLATE, 0.0].expected_score < slate
    for epsilon in (1.0, 2.0):
        free = worth[AdSelection.RANDOM_SLATE, 0.0].expected_score
        assert worth[AdSelection.TOP_SET, epsilon].expected_score < free
