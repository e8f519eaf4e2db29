"""Normal numbers: finite for every word, and of the right distribution."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from both_directions import BOTH_DIRECTIONS
from noisefloor.distributions import ONE
from noisefloor.randomness import SeededSource, Source
from scripted_source import Scripted
from statistics_of_tests import FALSE_ALARM, ks_p

N = 200_000
EXTREMES = [0, 1, 1 << 10, 1 << 11, 1 << 63, ONE - (1 << 11), ONE - 1]


def single_precision(source: Source) -> NDArray[np.float32]:
    """Return a pair by the same formula in single precision: the twin, with its log(0)."""
    uniform = (source.words(1) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    angle = source.halves_of(1)[:1].astype(np.float32) * np.float32(2 * np.pi / 2**32)
    with np.errstate(divide="ignore", invalid="ignore"):
        radius = np.sqrt(np.float32(-2) * np.log(uniform))
        return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])


@pytest.mark.parametrize("word", EXTREMES, ids=hex)
def test_every_word_gives_finite_numbers(word: int) -> None:
    for turn in EXTREMES:
        drawn = Scripted([word, turn]).normals(2)
        assert drawn.dtype == np.float32
        assert np.isfinite(drawn).all()
        assert np.abs(drawn).max() <= 8.66


def test_the_twin_in_single_precision_hits_the_logarithm_of_zero() -> None:
    assert not np.isfinite(single_precision(Scripted([0, 0]))).all()
    # It does so for every word whose top 24 bits are zero: once in 16 million draws.
    assert not np.isfinite(single_precision(Scripted([(1 << 40) - 1, 0]))).all()
    assert np.isfinite(Scripted([(1 << 40) - 1, 0]).normals(2)).all()


def test_the_radius_and_the_angle_are_those_of_the_words() -> None:
    word, half = 0x0123_4567_89AB_CDEF, 1 << 30  # a quarter of a turn
    first, second = Scripted([word, half]).normals(2)
    radius = math.sqrt(-2 * math.log(((word >> 11) + 0.5) / 2**53))
    assert first == pytest.approx(0.0, abs=1e-6)
    assert second == pytest.approx(radius, rel=1e-6)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 1000])
def test_as_many_are_drawn_as_were_requested(count: int) -> None:
    drawn = SeededSource(7, "normals").normals(count)
    assert drawn.shape == (count,)
    assert drawn.flags.writeable


@pytest.mark.statistical
@BOTH_DIRECTIONS
def test_normal_numbers_have_the_normal_distribution(
    seed: int, factor: float, passes: bool
) -> None:
    """n = 200 000; Kolmogorov-Smirnov; false alarm FALSE_ALARM."""
    drawn = SeededSource(seed, "law").normals(N).astype(np.float64)
    assert (ks_p(factor * drawn, stats.norm.cdf) > FALSE_ALARM) is passes


@pytest.mark.statistical
@BOTH_DIRECTIONS
def test_normal_numbers_have_variance_one(seed: int, factor: float, passes: bool) -> None:
    """n = 200 000; the sum of squares is chi-square with n degrees; false alarm FALSE_ALARM."""
    squares = float((SeededSource(seed, "variance").normals(N).astype(np.float64) ** 2).sum())
    p = 2 * min(stats.chi2.sf(factor * squares, N), stats.chi2.cdf(factor * squares, N))
    assert bool(p > FALSE_ALARM) is passes


@pytest.mark.statistical
@pytest.mark.parametrize("power", [1, 2], ids=["values", "squares"])
def test_the_two_numbers_of_a_pair_are_independent(seed: int, power: int) -> None:
    """100 000 pairs; the correlation is normal; false alarm FALSE_ALARM.

    The twin: all radii alike, so that the squares of a pair sum to a constant; and all angles
    alike, so that its values are multiples of each other.
    """
    first, second = SeededSource(seed, "pairs").normals(N).astype(np.float64).reshape(2, -1)

    def p_of(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
        score = np.corrcoef(one**power, two**power)[0, 1] * math.sqrt(len(one))
        return float(2 * stats.norm.sf(abs(score)))

    assert p_of(first, second) > FALSE_ALARM
    radius = np.hypot(first, second)
    alike = (first / radius, second / radius) if power == 2 else (0.6 * radius, 0.8 * radius)
    assert p_of(*alike) < FALSE_ALARM


@pytest.mark.statistical
@BOTH_DIRECTIONS
def test_normal_numbers_have_mean_zero(seed: int, factor: float, passes: bool) -> None:
    """n = 200 000; the mean is normal; false alarm FALSE_ALARM. The twins are moved by 0.1."""
    mean = float(SeededSource(seed, "mean").normals(N).mean(dtype=np.float64)) + factor - 1
    p = float(2 * stats.norm.sf(abs(mean) * math.sqrt(N)))
    assert (p > FALSE_ALARM) is passes
