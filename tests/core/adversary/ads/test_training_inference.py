"""Training messages: what they tell of a rating, by closed form, attack and bound."""

import math
from decimal import Decimal

import numpy as np
import pytest

from noisefloor.accounting.bounds import binary_success
from noisefloor.ads.training.bit_training import BitTraining
from noisefloor.ads.training.factorisation import Ratings
from noisefloor.ads.training.gradient_noise import GradientBound, GradientReport
from noisefloor.adversary.ads.training_inference import (
    NoisyVector,
    candidate_values,
    guess_profile,
    play_pair,
)
from noisefloor.adversary.audit.observations import success_from
from noisefloor.mechanisms import OneBitMean, SampledBit
from noisefloor.mechanisms.laplace import TwoSidedGeometric
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p
from training_closed_forms import (
    bit_total_variation,
    coordinate_success,
    shift_total_variation,
    shifts_success,
)

CANARIES = 40_000


def one_coordinate(dimension: int, rounds: int, value: float) -> np.ndarray:
    """A profile that differs from nothing at all in the first coordinate only."""
    values = np.zeros((rounds, dimension))
    values[:, 0] = value
    return values


@pytest.mark.parametrize(("first", "second"), [(1.0, -1.0), (0.5, 0.0), (0.25, 0.25)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_one_bit_tells_what_the_total_variation_says(
    first: float, second: float, epsilon: float
) -> None:
    bit = OneBitMean(epsilon)
    success = coordinate_success(bit, first, second, coordinates=1, rounds=1)
    expected = 1 / 2 + bit_total_variation(epsilon, first, second) / 2
    assert success == pytest.approx(expected, abs=1e-9)
    # Spread over coordinates, one round tells in proportion to how often it hits.
    spread = coordinate_success(bit, first, second, coordinates=20, rounds=1)
    assert spread - 1 / 2 == pytest.approx((success - 1 / 2) / 20, abs=1e-9)


@pytest.mark.parametrize("dimension", [1, 3, 60])
@pytest.mark.parametrize("rounds", [1, 4, 10])
def test_mixing_over_hits_is_summing_over_all_messages(dimension: int, rounds: int) -> None:
    mechanism = SampledBit(dimension, 1.5)
    pair = [one_coordinate(dimension, 1, value)[0] for value in (0.9, -0.4)]
    mixed = coordinate_success(mechanism.one_bit, 0.9, -0.4, coordinates=dimension, rounds=rounds)
    assert mixed == pytest.approx(success_from(mechanism, pair, rounds), rel=1e-9)
    assert mixed <= binary_success(rounds * 1.5)


@pytest.mark.statistical
def test_a_rated_ad_is_found_as_often_as_the_mixture_says(seed: int) -> None:
    # n = 40,000; 6 rounds, 4 coordinates; false alarm FALSE_ALARM. The twin: one round only.
    mechanism = SampledBit(4, 1.0)
    expected = coordinate_success(mechanism.one_bit, 1.0, 0.0, coordinates=4, rounds=6)
    once = coordinate_success(mechanism.one_bit, 1.0, 0.0, coordinates=4, rounds=1)
    outcome = play_pair(
        mechanism,
        (one_coordinate(4, 6, 1.0), one_coordinate(4, 6, 0.0)),
        CANARIES,
        SeededSource(seed, "rated"),
        epsilon=6 * mechanism.guarantee().epsilon,
        closed_form=expected,
    )
    assert binomial_p(outcome.right, outcome.n, expected) > FALSE_ALARM
    assert binomial_p(outcome.right, outcome.n, once) < FALSE_ALARM
    assert outcome.closed_form is not None
    assert outcome.closed_form < outcome.bound


@pytest.mark.statistical
def test_without_noise_one_bit_gives_the_sign_away_and_equal_profiles_never(seed: int) -> None:
    # The planted leak (epsilon 30, one coordinate), and the null. n = 40,000, FALSE_ALARM.
    ends = (np.ones((1, 1)), -np.ones((1, 1)))
    source = SeededSource(seed, "ends")
    leak = play_pair(SampledBit(1, 30.0), ends, CANARIES, source.child("leak"), epsilon=30.0)
    assert leak.interval[0] > 0.999
    same = (np.full((3, 2), 0.5), np.full((3, 2), 0.5))
    null = play_pair(SampledBit(2, 1.0), same, CANARIES, source.child("null"), epsilon=3.0)
    assert binomial_p(null.right, null.n, 0.5) > FALSE_ALARM


@pytest.mark.parametrize("shift", [0, 1, 2, 5, 8])
@pytest.mark.parametrize("rate", [0.05, 0.7])
def test_a_noisy_coordinate_tells_a_shift_as_its_formula_says(rate: float, shift: int) -> None:
    noise = TwoSidedGeometric(Decimal(rate))
    points = np.arange(-2000, 2001)
    gap = np.exp(noise.log_pmf(points)) - np.exp(noise.log_pmf(points - shift))
    assert shift_total_variation(rate, shift) == pytest.approx(np.abs(gap).sum() / 2, abs=1e-9)
    if shift % 2 == 0:  # the continuous distribution's, with delta / sigma = rate * shift
        assert shift_total_variation(rate, shift) == pytest.approx(1 - math.exp(-rate * shift / 2))


@pytest.mark.statistical
def test_noise_on_one_coordinate_is_seen_through_as_often_as_the_formula_says(seed: int) -> None:
    # n = 40,000; false alarm FALSE_ALARM. The twin: noise of half the rate.
    distribution = NoisyVector(TwoSidedGeometric(Decimal("0.2")))
    pair = (np.full((1, 1), 3), np.full((1, 1), -1))
    expected = (1 + shift_total_variation(0.2, 4)) / 2
    outcome = play_pair(
        distribution, pair, CANARIES, SeededSource(seed, "one"), epsilon=0.8, closed_form=expected
    )
    assert binomial_p(outcome.right, outcome.n, expected) > FALSE_ALARM
    assert (
        binomial_p(outcome.right, outcome.n, (1 + shift_total_variation(0.1, 4)) / 2) < FALSE_ALARM
    )
    assert expected <= outcome.bound


@pytest.mark.statistical
def test_many_noisy_coordinates_add_up_to_a_gaussian(seed: int) -> None:
    # 150 coordinates, 2 rounds. n = 20,000; the approximation is good to 2 points.
    noise, shifts = TwoSidedGeometric(Decimal("0.02")), np.arange(150) % 9 - 4
    pair = (np.stack([shifts, shifts]), np.zeros((2, 150), dtype=np.int64))
    expected = shifts_success(noise, np.concatenate([shifts, shifts]))
    outcome = play_pair(NoisyVector(noise), pair, 20_000, SeededSource(seed, "many"), epsilon=50.0)
    low, high = outcome.interval
    assert low - 0.02 < expected < high + 0.02
    # For small shifts, d' is the root of the sum of squares.
    d_prime = 0.02 * math.sqrt(2 * float((shifts**2).sum()))
    assert expected == pytest.approx(0.5 * math.erfc(-d_prime / 2 / math.sqrt(2)), abs=5e-3)
    assert shifts_success(noise, np.zeros(5, dtype=np.int64)) == 0.5


def test_noise_that_is_too_small_for_its_shift_gives_the_profile_away(seed: int) -> None:
    # The planted leak: 40 rates of shift. And the null: no shift.
    distribution, source = (
        NoisyVector(TwoSidedGeometric(Decimal("2.0"))),
        SeededSource(seed, "thin"),
    )
    far = (np.full((1, 2), 10), np.full((1, 2), -10))
    assert play_pair(distribution, far, 2_000, source.child("far"), epsilon=80.0).success > 0.99
    near = (np.zeros((1, 2), dtype=np.int64),) * 2
    null = play_pair(distribution, near, CANARIES, source.child("near"), epsilon=1.0)
    assert binomial_p(null.right, null.n, 0.5) > FALSE_ALARM


@pytest.mark.statistical
def test_which_rating_is_guessed_from_the_messages_of_real_training(seed: int) -> None:
    # Three profiles of one device: first ad not rated, rated low, rated high. n = 5,000 each way.
    training = BitTraining(2, 2, 24.0, 3, clip=0.5)
    profiles = Ratings(
        np.array([[False, True], [True, True], [True, True]]),
        np.array([[0, 1], [0, 1], [1, 1]], dtype=np.float32),
    )
    models = [training.start().model] * 3
    tastes = np.zeros((3, 2), dtype=np.float32)
    values = candidate_values(training, models, tastes, profiles)
    assert values.shape == (3, 3, training.cells)
    assert np.abs(values).max() <= 1 and not values[0, :, : training.width].any()
    source = SeededSource(seed, "training")
    truth = source.child("truth").below(3, 5_000).astype(np.intp)
    messages = []
    for number in range(3):
        sent = training.report(
            number,
            training.start(),
            np.zeros((5_000, 2), dtype=np.float32),
            profiles[truth],
            source.child(number),
        )
        messages.append(sent.reports)
    guessed = guess_profile(training.bit, np.stack(messages, axis=1), values).candidate
    right = int((guessed == truth).sum())
    expected = success_from(training.bit, values[:, 0], 3)
    assert expected is not None
    assert binomial_p(right, 5_000, expected) > FALSE_ALARM
    assert binomial_p(right, 5_000, 1 / 3) < FALSE_ALARM


@pytest.mark.statistical
def test_the_reports_of_noisy_training_are_seen_through_as_the_formula_says(seed: int) -> None:
    # Two ads, one factor: one gradient differs by the whole range. n = 40,000, FALSE_ALARM.
    report = GradientReport(2, 1, 1, 1.0, 8.0, GradientBound.COORDINATE)
    pair = np.array([[[[1.0, 1.0], [1.0, 0.0]]], [[[1.0, -1.0], [1.0, 0.0]]]])
    expected = (1 + shift_total_variation(float(report.distribution.rate), 2 * report.steps)) / 2
    outcome = play_pair(
        report,
        (pair[0], pair[1]),
        CANARIES,
        SeededSource(seed, "noisy"),
        epsilon=report.guarantee().epsilon,
        closed_form=expected,
    )
    # Half of epsilon is for the other ad's gradient: the shift is worth 4.
    assert expected == pytest.approx(1 - math.exp(-2) / 2, abs=1e-6)
    assert binomial_p(outcome.right, outcome.n, expected) > FALSE_ALARM
    assert binomial_p(outcome.right, outcome.n, expected - 0.03) < FALSE_ALARM
    assert expected < outcome.bound
