"""Geometric noise: its finite parts exactly, the whole by samples."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from enumeration import enumerate_with_cut
from noisefloor.distributions import ONE
from noisefloor.mechanisms.laplace import Geometric, TwoSidedGeometric
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, Floats, chi_square_p

RATES = ("3", "1.5", "0.6", "0.1", "0.01", "0.001")


@pytest.mark.parametrize("rate", RATES)
def test_digits_and_tail_are_the_truncated_distributions(rate: str) -> None:
    distribution, decay = Geometric(Decimal(rate)), float(rate)
    assert 2 <= decay * 2**distribution.bits < 4 or distribution.bits == 0
    assert sum(len(digit).bit_length() - 1 for digit in distribution.digits) == distribution.bits
    for place, digit in enumerate(distribution.digits):
        assert sum(digit.weights) == ONE
        step = decay * 256**place
        ideal = np.exp(-step * np.arange(len(digit)))
        assert np.array(digit.weights) / ONE == pytest.approx(ideal / ideal.sum(), rel=1e-12)
    assert distribution.tail / ONE == pytest.approx(
        math.exp(-decay * 2**distribution.bits), rel=1e-12
    )


@pytest.mark.parametrize("rate", RATES)
def test_the_stated_distribution_is_geometric_and_sums_to_one(rate: str) -> None:
    distribution, decay = Geometric(Decimal(rate)), float(rate)
    counts = np.arange(math.ceil(40 / decay))
    chances = np.exp(distribution.log_pmf(counts))
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    ideal = -math.expm1(-decay) * np.exp(-decay * counts)
    assert chances == pytest.approx(ideal, rel=1e-9)


@pytest.mark.parametrize("rate", ["3", "1.5", "0.6", "0.1"])
@pytest.mark.parametrize("two_sided", [False, True])
def test_the_enumerated_draw_is_the_stated_distribution_up_to_the_cut(
    rate: str, two_sided: bool
) -> None:
    distribution = TwoSidedGeometric(Decimal(rate)) if two_sided else Geometric(Decimal(rate))
    drawn, cut = enumerate_with_cut(lambda source: distribution.sampler(source)(1), 7)
    assert 0 < cut < Fraction(1, 500)
    for number, chance in drawn.items():
        assert isinstance(number, int)
        stated = math.exp(distribution.log_pmf(np.array([number]))[0])
        # Zero of a two-sided draw has a magnitude too, which does not matter: part of it is cut.
        lost = float(cut) if two_sided and number == 0 else 0.0
        assert float(chance) <= stated * (1 + 1e-12)
        assert float(chance) == pytest.approx(stated, rel=1e-12, abs=lost)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("two_sided", [False, True])
def test_the_survival_is_the_sum_of_the_distribution_from_there_on(
    rate: str, two_sided: bool
) -> None:
    distribution = TwoSidedGeometric(Decimal(rate)) if two_sided else Geometric(Decimal(rate))
    far = math.ceil(60 / float(rate))
    numbers = np.arange(-far if two_sided else 0, far)
    chances = np.exp(distribution.log_pmf(numbers))
    sums = np.cumsum(chances[::-1])[::-1]
    near = np.abs(numbers) < far / 4  # what lies beyond the list is nothing there
    assert np.exp(distribution.log_survival(numbers[near])) == pytest.approx(sums[near], rel=1e-9)


@pytest.mark.parametrize("rate", RATES)
def test_first_and_worst_step_are_those_of_the_enumerated_values(rate: str) -> None:
    distribution = Geometric(Decimal(rate))
    counts = np.arange(3 * 2**distribution.bits + 2)
    logs = distribution.log_pmf(counts)
    assert math.log(distribution.first) == pytest.approx(logs[0], abs=1e-12)
    assert math.log(distribution.worst_step) == pytest.approx(
        (logs[:-1] - logs[1:]).max(), abs=1e-12
    )


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("shift", [1, 2, 3, 10])
def test_the_epsilon_of_a_shift_covers_every_ratio(rate: str, shift: int) -> None:
    distribution = TwoSidedGeometric(Decimal(rate))
    noise = np.arange(
        -(3 << distribution.magnitude.bits) - 20, (3 << distribution.magnitude.bits) + 21
    )
    ratios = np.abs(distribution.log_pmf(noise) - distribution.log_pmf(noise - shift))
    assert ratios.max() <= float(distribution.epsilon(shift)) + 1e-11
    assert float(distribution.epsilon(shift)) == pytest.approx(shift * float(rate), rel=1e-9)


@pytest.mark.parametrize("rate", ["1.5", "0.6", "0.1", "0.01"])
def test_the_two_sided_distribution_is_even_sums_to_one_and_has_the_stated_variance(
    rate: str,
) -> None:
    distribution, reach = TwoSidedGeometric(Decimal(rate)), math.ceil(60 / float(rate))
    noise = np.arange(-reach, reach + 1)
    chances = np.exp(distribution.log_pmf(noise))
    assert chances == pytest.approx(chances[::-1], rel=1e-12)
    assert chances.sum() == pytest.approx(1, abs=1e-11)
    assert chances @ noise**2 == pytest.approx(distribution.variance, rel=1e-9)


def test_an_epsilon_that_forgets_the_step_from_zero_is_caught() -> None:
    distribution = TwoSidedGeometric(Decimal("0.6"))
    half, zero, _ = distribution.side.weights
    from noisefloor.distributions import FiniteDistribution

    object.__setattr__(
        distribution,
        "side",
        FiniteDistribution.of([half - (1 << 50), zero + (1 << 51), half - (1 << 50)]),
    )
    noise = np.arange(-40, 41)
    ratios = np.abs(distribution.log_pmf(noise) - distribution.log_pmf(noise - 1))
    assert ratios.max() > float(distribution.magnitude.rate) + 1e-5
    assert ratios.max() <= float(distribution.epsilon(1)) + 1e-11


def expected(rate: float, edge: int, *, two_sided: bool) -> Floats:
    """Return P(k) by the textbook, tails folded into the edges."""
    q = math.exp(-rate)
    if not two_sided:
        distribution = (1 - q) * q ** np.arange(edge + 1)
        distribution[-1] = q**edge
        return np.asarray(distribution)
    distribution = (1 - q) / (1 + q) * q ** np.abs(np.arange(-edge, edge + 1))
    distribution[[0, -1]] = q**edge / (1 + q)
    return np.asarray(distribution)


@pytest.mark.statistical
@pytest.mark.parametrize("rate", ["1.5", "0.05", "0.001"])
@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize(("factor", "passes"), [("1", True), ("1.1", False)])
def test_draws_follow_the_textbook(
    rate: str, two_sided: bool, factor: str, passes: bool, seed: int
) -> None:
    """n = 200 000 in at most 257 groups; false alarm FALSE_ALARM. The twin's scale is 1.1."""
    drawn_rate = Decimal(rate) / Decimal(factor)
    distribution = TwoSidedGeometric(drawn_rate) if two_sided else Geometric(drawn_rate)
    draws = distribution.sampler(SeededSource(seed, rate, factor, f"{two_sided}"))(200_000)
    edge = math.ceil(8 / float(rate))
    cells = np.clip(draws, -edge, edge) + (edge if two_sided else 0)
    probabilities = expected(float(rate), edge, two_sided=two_sided)
    counts = np.bincount(cells, minlength=len(probabilities))
    groups = np.arange(len(counts)) * 256 // max(256, len(counts))
    p = chi_square_p(np.bincount(groups, counts), np.bincount(groups, probabilities))
    assert (p > FALSE_ALARM) is passes


@pytest.mark.statistical
def test_low_bits_of_a_wide_draw_are_even(seed: int) -> None:
    """n = 400 000 draws of scale 1000: low nibbles against their exact distribution;
    FALSE_ALARM."""
    distribution = Geometric(Decimal("0.001"))
    draws = distribution.sampler(SeededSource(seed, "low bits"))(400_000)
    weights = (
        np.array(distribution.digits[0].weights, dtype=np.float64).reshape(-1, 16).sum(axis=0)
        / ONE
    )
    counts = np.bincount(draws & 15, minlength=16)
    assert chi_square_p(counts, weights) > FALSE_ALARM
    tilt = np.linspace(0.95, 1.05, 16) * weights
    assert chi_square_p(counts, tilt / tilt.sum()) < FALSE_ALARM
