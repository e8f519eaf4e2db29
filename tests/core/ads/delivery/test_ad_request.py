"""Delivery: the exact distribution of every choice, what it costs, and what the device shows."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from noisefloor.ads.delivery.ad_request import (
    DATA_INDEPENDENT,
    SLATES,
    AdDelivery,
    AdSelection,
    utility_of,
)
from noisefloor.adversary.audit.auditor import audit_mechanism
from noisefloor.checks import Array
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import FiniteMechanism, Mechanism, exact_epsilon
from noisefloor.privacy import Claim, Neighbours
from noisefloor.randomness import SeededSource, new_run
from statistics_of_tests import FALSE_ALARM, chi_square_p

ADS = 4
GRID = np.array(list(itertools.product([0.0, 0.5, 1.0], repeat=ADS)))
PRIVATE = [
    choice
    for choice in AdSelection
    if choice not in DATA_INDEPENDENT | {AdSelection.EXACT, AdSelection.PRINTED}
]

over_choices = pytest.mark.parametrize(
    "choice", list(AdSelection), ids=lambda choice: choice.value
)
over_private = pytest.mark.parametrize("choice", PRIVATE, ids=lambda choice: choice.value)


def small(choice: AdSelection, epsilon: float = 2.0) -> AdDelivery:
    return AdDelivery(ADS, epsilon, choice, top=2, slate=2, steps=2)


def distributions(delivery: AdDelivery) -> NDArray[np.float64]:
    """Return the distribution of each row of the grid, one row each."""
    outputs = delivery.outputs()
    return np.exp([delivery.log_likelihood(outputs, row) for row in GRID])


def codes(delivery: AdDelivery, requests: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    """Return the place of each request among the outputs."""
    if not delivery.is_slate:
        return requests.astype(np.int64)
    weights = np.array([ADS, 1])
    known = delivery.outputs() @ weights
    return np.asarray(np.searchsorted(known, requests @ weights))


@over_choices
def test_it_is_a_mechanism_and_every_distribution_sums_to_one(choice: AdSelection) -> None:
    delivery = small(choice)
    assert isinstance(delivery, Mechanism)
    assert isinstance(delivery, FiniteMechanism)
    assert distributions(delivery).sum(axis=1) == pytest.approx(1.0, abs=1e-12)


def sampled_p(drawn: AdDelivery, stated: AdDelivery, seed: int) -> float:
    """Return the p-value of sampled requests of random rows of the grid under a stated
    distribution."""
    source = SeededSource(seed, "delivery", drawn.choice.value)
    places = source.child("rows").generator().integers(len(GRID), size=200_000)
    requests = drawn.request(GRID[places], source.child("coins"))
    distribution = distributions(stated)
    cells = places * distribution.shape[1] + codes(drawn, requests)
    return chi_square_p(
        np.bincount(cells, minlength=distribution.size), distribution.reshape(-1) / len(GRID)
    )


TWINS = {
    AdSelection.RANDOM: AdDelivery(ADS, 0.2, AdSelection.ARGMAX),
    AdSelection.RANDOM_SLATE: AdDelivery(ADS, 0.2, AdSelection.SLATE, slate=2),
    AdSelection.EXACT: AdDelivery(ADS, 8.0, AdSelection.ARGMAX),
}


@pytest.mark.statistical
@over_choices
def test_sampled_requests_follow_the_exact_distribution_and_not_that_of_another_epsilon(
    choice: AdSelection, seed: int
) -> None:
    """n = 200 000, of rows all over the grid; false alarm FALSE_ALARM. The twin is 10 % off."""
    delivery = small(choice)
    twin = TWINS.get(choice) or small(choice, 2.2)
    assert sampled_p(delivery, delivery, seed) > FALSE_ALARM
    with new_run():
        assert sampled_p(delivery, twin, seed) < FALSE_ALARM


def laplace_chances(
    row: NDArray[np.float64], rate: float, audit_mechanism: int = 4000
) -> list[float]:
    """Return the distribution of noisy max by closed forms of discrete Laplace noise, ties to the
    first."""
    noise = np.arange(-audit_mechanism, audit_mechanism + 1)
    step = math.exp(-rate)

    def cdf(k: NDArray[np.int64]) -> NDArray[np.float64]:
        tail = np.exp(-rate * np.abs(k)) / (1 + step)
        return np.where(k < 0, tail, 1 - tail * step)

    pmf = (1 - step) / (1 + step) * np.exp(-rate * np.abs(noise))
    grid = np.rint(row * 2).astype(int)
    result = []
    for place in range(len(row)):
        total = pmf.copy()
        for other in range(len(row)):
            if other != place:
                total *= cdf(noise + grid[place] - grid[other] - (other < place))
        result.append(float(total.sum()))
    return result


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_printed_choice_is_laplace_noise_of_scale_one_over_epsilon(epsilon: float) -> None:
    """Scores in [0, 1] on two steps: noise of scale 2 / epsilon steps."""
    delivery = small(AdSelection.PRINTED, epsilon)
    for row in GRID[::5]:
        assert delivery.chances(row) == pytest.approx(laplace_chances(row, epsilon / 2), abs=1e-9)


# What is claimed, proved and reached.


@over_private
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_corrected_choice_costs_what_it_claims(choice: AdSelection, epsilon: float) -> None:
    delivery = small(choice, epsilon)
    distribution = np.log(distributions(delivery))
    worst = float((distribution.max(axis=0) - distribution.min(axis=0)).max())
    proved = delivery.guarantee().epsilon
    assert worst <= proved + 1e-10
    assert epsilon - 1e-6 <= worst
    assert proved <= epsilon
    assert Claim(delivery.claimed, delivery.guarantee()).verdict == "holds"
    assert exact_epsilon(delivery) == pytest.approx(worst, abs=1e-9)


A5 = [
    (1.0, 2, 0.965),
    (1.0, 5, 1.759),
    (1.0, 10, 1.945),
    (1.0, 50, 2.000),
    (4.0, 2, 3.57),
    (4.0, 5, 5.51),
    (4.0, 10, 6.15),
    (4.0, 50, 7.37),
]
"""Range, ads and the exact epsilon of the paper's noise at epsilon 1, by integration."""


@pytest.mark.parametrize(("span", "ads", "exact"), A5)
@pytest.mark.parametrize("low", [0.0, -1.5])
def test_the_printed_choice_costs_about_twice_its_range(
    span: float, ads: int, exact: float, low: float
) -> None:
    delivery = AdDelivery(ads, 1.0, AdSelection.PRINTED, low=low, high=low + span, steps=1024)
    proved = delivery.guarantee().epsilon
    assert proved == pytest.approx(exact, abs=0.007)
    assert proved <= 2 * span + 1e-9
    verdict = Claim(delivery.claimed, delivery.guarantee()).verdict
    assert verdict == ("overclaimed" if exact > 1 else "holds")


def test_random_choices_are_free_and_the_exact_one_promises_nothing() -> None:
    for choice in DATA_INDEPENDENT:
        for relation in (Neighbours.USER, Neighbours.ITEM):
            assert small(choice).guarantee(relation).epsilon == 0.0
        assert small(choice, 0.0).claimed.epsilon == 0.0
    exact = small(AdSelection.EXACT, 0.0)
    assert not exact.guarantee().is_finite
    assert not exact.claimed.is_finite
    assert math.isinf(exact_epsilon(exact))


@over_choices
def test_the_worst_pair_reaches_what_is_proved(choice: AdSelection) -> None:
    delivery = small(choice)
    one, other = (
        delivery.log_likelihood(delivery.outputs(), row) for row in delivery.worst_pair()
    )
    if choice is AdSelection.EXACT:
        assert (np.isneginf(one) != np.isneginf(other)).any()
        return
    reached = np.abs(one - other).max()
    assert reached == pytest.approx(delivery.guarantee().epsilon, abs=1e-6)


@pytest.mark.statistical
def test_the_audited_printed_choice_passes_its_claim(seed: int) -> None:
    """100 000 runs on each row; the bound is wrong with probability FALSE_ALARM."""
    delivery = AdDelivery(10, 1.0, AdSelection.PRINTED)
    source = SeededSource(seed, "printed")
    bound = audit_mechanism(
        delivery, delivery.worst_pair(), source, trials=100_000, alpha=FALSE_ALARM
    )
    assert delivery.claimed.epsilon < bound.epsilon <= delivery.guarantee().epsilon
    claim = Claim(delivery.claimed, delivery.guarantee(), bound)
    assert claim.verdict == "overclaimed"


@pytest.mark.statistical
@over_private
def test_audited_corrected_choices_stay_within_their_claim(choice: AdSelection, seed: int) -> None:
    """100 000 runs on each row; false alarm FALSE_ALARM. The audit has power: 0.75 is reached."""
    delivery = AdDelivery(5, 1.0, choice, top=2, slate=2)
    source = SeededSource(seed, "corrected", choice.value)
    bound = audit_mechanism(
        delivery, delivery.worst_pair(), source, trials=100_000, alpha=FALSE_ALARM
    )
    assert 0.75 < bound.epsilon <= delivery.guarantee().epsilon <= 1.0


# On the device.


@over_choices
def test_scores_outside_the_range_are_clipped_before_anything_else(choice: AdSelection) -> None:
    delivery = small(choice)
    rows = 3 * SeededSource(5, "rows").generator().random((300, ADS)) - 1
    rows[0, 0], rows[1, 1] = math.inf, -math.inf
    drawn = []
    for some in (rows, np.clip(rows, 0.0, 1.0)):
        with new_run():
            requests = delivery.request(some, SeededSource(5, "coins"))
        drawn.append((requests, delivery.shown(requests, some)))
    assert np.array_equal(drawn[0][0], drawn[1][0])
    assert np.array_equal(drawn[0][1], drawn[1][1])
    assert delivery.chances(rows[3]) == pytest.approx(delivery.chances(np.clip(rows[3], 0, 1)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
@pytest.mark.parametrize(("low", "high"), [(0.7, 0.9), (-0.1, 0.3), (0.1, 1e6)])
def test_clipped_scores_lie_within_the_range_in_every_type(
    dtype: type, low: float, high: float
) -> None:
    """0.7 is not a float32: rounded to nearest, the bound itself would lie outside."""
    delivery = AdDelivery(ADS, 1.0, AdSelection.ARGMAX, low=low, high=high)
    rows: Array = np.array([[-5, 0, 1, 5]]).astype(dtype)
    clipped = delivery.clipped(rows)
    assert clipped.min().item() >= low
    assert clipped.max().item() <= high
    assert len(delivery.request(rows, SeededSource(1, "types"))) == 1


def test_scores_within_the_range_are_not_copied() -> None:
    rows = np.zeros((3, ADS), dtype=np.float32)
    assert small(AdSelection.ARGMAX).clipped(rows) is rows


@over_choices
@pytest.mark.parametrize(
    "bad", [[[math.nan] * ADS], [["a"] * ADS], [[1j] * ADS], [[0.5] * 3], [0]]
)
def test_what_is_no_row_of_scores_is_refused(choice: AdSelection, bad: object) -> None:
    with pytest.raises(OutOfDomain, match="Expected"):
        small(choice).request(bad, SeededSource(5, "refused"))


@over_choices
def test_what_is_shown_was_requested(choice: AdSelection) -> None:
    delivery = small(choice)
    rows = SeededSource(5, "rows").generator().random((1_000, ADS))
    requests = delivery.request(rows, SeededSource(5, "coins"))
    shown = delivery.shown(requests, rows)
    assert shown.shape == (1_000,)
    if choice in SLATES:
        assert requests.shape == (1_000, 2)
        own = np.take_along_axis(rows, requests.astype(np.intp), axis=1)
        assert np.array_equal(rows[np.arange(1_000), shown], own.max(axis=1))
        assert np.array_equal(delivery.ranked(requests, rows, 2)[:, 0], shown)
        assert delivery.tally(requests).sum() == 2_000
    else:
        assert np.array_equal(shown, requests)
        assert np.array_equal(delivery.tally(requests), np.bincount(requests, minlength=ADS))
        with pytest.raises(BadParameter, match="slate"):
            delivery.ranked(requests, rows, 1)


@over_choices
def test_adding_users_moves_nobodys_request(choice: AdSelection) -> None:
    rows = SeededSource(5, "rows").generator().random((1_000, ADS))
    drawn = []
    for n in (300, 1_000):
        with new_run():
            drawn.append(small(choice).request(rows[:n], SeededSource(5, "coins")))
    assert np.array_equal(drawn[0], drawn[1][:300])


# Utility.


@over_choices
def test_utility_is_that_of_the_distribution_of_requests(choice: AdSelection) -> None:
    """Summed over all requests of every row of the grid, shown by the device's own code."""
    delivery = small(choice)
    outputs, distribution = delivery.outputs(), distributions(delivery)
    for place, row in enumerate(GRID):
        shown = delivery.shown(outputs, np.repeat(row[None], len(outputs), axis=0))
        top = distribution[place][shown == row.argmax()].sum()
        assert utility_of(delivery, row[None]).top_one == pytest.approx(top, abs=1e-12)
        score = distribution[place] @ row[shown]
        assert utility_of(delivery, row[None]).expected_score == pytest.approx(score, abs=1e-12)


def test_equal_parameters_make_equal_deliveries() -> None:
    assert small(AdSelection.SLATE) == small(AdSelection.SLATE)
    assert hash(small(AdSelection.SLATE)) == hash(small(AdSelection.SLATE))
    assert small(AdSelection.SLATE) != small(AdSelection.TOP_SET)


@pytest.mark.parametrize("epsilon", [-1.0, math.nan, math.inf, True, "1"])
@over_choices
def test_a_bad_epsilon_is_refused(choice: AdSelection, epsilon: float) -> None:
    with pytest.raises(BadParameter, match="epsilon"):
        AdDelivery(ADS, epsilon, choice)


@over_private
def test_a_private_choice_needs_an_epsilon(choice: AdSelection) -> None:
    with pytest.raises(BadParameter, match="epsilon"):
        small(choice, 0.0)
