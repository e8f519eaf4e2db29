"""Noise has the distribution that the plan says, is finite for every word, and leaves no low
bits."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from noisefloor.publication.private_sgd.subsampled_gaussian import add_noise, grid, snap
from noisefloor.randomness import SeededSource, Source, Words
from statistics_of_tests import FALSE_ALARM, ks_p

SIZE = 20_000


class SameWord(Source):
    """A source that gives the same word for ever."""

    def __init__(self, word: int) -> None:
        self._word = word

    def words(self, count: int) -> Words:
        return np.full(count, self._word, dtype=np.uint64)

    def stage(self, *name: str | int) -> Source:
        return self

    def _spare(self, *name: str | int) -> Source:
        return self


def noise(scale: float, seed: int, *path: str | int) -> NDArray[np.float64]:
    vector = torch.zeros(SIZE)
    add_noise(vector, scale, SeededSource(seed, *path))
    return vector.double().numpy()


def variance_p(sample: NDArray[np.float64], scale: float) -> float:
    """Return the two-sided p-value of a sample's sum of squares, if normal with this scale."""
    statistic = float(np.sum((sample / scale) ** 2))
    below = float(stats.chi2.cdf(statistic, sample.size))
    return 2 * min(below, 1 - below)


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [0.013, 1.0, 700.0])
def test_noise_is_normal_with_the_scale(scale: float, seed: int) -> None:
    """n = 20,000; false alarm 1e-6 each. The grid is a thousandth: KS does not see it."""
    sample = noise(scale, seed, "law", int(1000 * scale))
    assert ks_p(sample / scale, stats.norm.cdf) > FALSE_ALARM
    assert variance_p(sample, scale) > FALSE_ALARM


@pytest.mark.statistical
def test_noise_too_small_by_a_twentieth_is_seen(seed: int) -> None:
    assert variance_p(noise(0.95, seed, "twin"), 1.0) < FALSE_ALARM


@pytest.mark.statistical
def test_coordinates_are_independent(seed: int) -> None:
    """n = 10,000 pairs, at three lags and over the halves of Box and Muller; 1e-6 each."""
    sample = noise(1.0, seed, "lags")
    for lag in (1, 2, 8_192, SIZE // 2):
        correlation = np.corrcoef(sample[:-lag], sample[lag:])[0, 1]
        reach = math.sqrt(SIZE - lag) * abs(correlation)
        assert 2 * stats.norm.sf(reach) > FALSE_ALARM
    twin = sample.copy()
    twin[1:] += 0.1 * sample[:-1]
    assert 2 * stats.norm.sf(math.sqrt(SIZE) * abs(np.corrcoef(twin[:-1], twin[1:])[0, 1])) < 1e-6


@pytest.mark.parametrize("word", [0, (1 << 64) - 1, 1 << 63, (1 << 11) - 1])
def test_every_word_gives_finite_noise(word: int) -> None:
    vector = torch.zeros(100)
    add_noise(vector, 3.0, SameWord(word))
    assert bool(torch.isfinite(vector).all())
    assert float(vector.abs().max()) < 3.0 * 8.7


def test_a_naive_inverse_cdf_is_not_finite_for_every_word() -> None:
    """The twin: uniform float32 numbers reach their ends, and the logarithm there is infinite."""
    uniform = np.array([0.0, 0.5, 1.0 - 2.0**-24], dtype=np.float32)
    with np.errstate(divide="ignore"):
        laplace = np.sign(uniform - 0.5) * -np.log(1 - 2 * np.abs(uniform - np.float32(0.5)))
        normal = stats.norm.ppf(uniform)
    assert not np.isfinite(laplace).all()
    assert not np.isfinite(normal).all()


@given(
    st.floats(min_value=2.0**-30, max_value=2.0**30, width=32),
    st.lists(st.floats(min_value=-(2.0**60), max_value=2.0**60, width=32), min_size=1),
)
def test_results_are_multiples_of_the_grid(scale: float, values: list[float]) -> None:
    for dtype in (torch.float32, torch.float64):
        vector = torch.tensor(values, dtype=dtype)
        step = grid(scale)
        snap(vector, step)
        quotient = vector.double() / step
        assert torch.equal(quotient, quotient.round())
        near = [value for value in values if abs(value) < 2.0**22 * step]
        snapped = vector.double().tolist()
        for value, result in zip(values, snapped, strict=True):
            if value in near:
                assert abs(result - value) <= step / 2
            else:
                assert abs(result - value) <= 2.0**-22 * abs(value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_noise_leaves_no_bits_below_the_grid(dtype: torch.dtype) -> None:
    """Sums with low-order bits of their own, in two blocks and a rest: none of these are left."""
    vector = torch.linspace(-1, 1, 2 * (1 << 14) + 77, dtype=dtype).sin()
    before = vector.clone()
    add_noise(vector, 0.7, SeededSource(1, "bits", str(dtype)))
    step = grid(0.7)
    assert torch.equal(vector, step * (vector / step).round())
    assert not torch.equal(before, step * (before / step).round())
    assert float((vector - before).abs().mean()) > 0.3  # and it is noise, not rounding


@given(st.floats(min_value=1e-9, max_value=1e9))
def test_the_grid_is_a_thousandth_of_the_noise(scale: float) -> None:
    assert scale / 2048 <= grid(scale) <= scale / 1024
    assert math.frexp(grid(scale))[0] == 0.5
