"""Shrinking noisy counts: towards what is expected, by as much as the noise demands."""

import numpy as np
import pytest

from noisefloor.publication.text.ngrams.shrinkage import (
    calibrated,
    magnitude_buckets,
    posterior_means,
)
from noisefloor.randomness import SeededSource

COUNT = 20_000


def noisy_case(width: float, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return true counts, what is expected of them, and noisy ones."""
    draw = SeededSource(1, "case", f"{width:g}", f"{noise:g}").generator()
    expected = np.full(COUNT, 50.0)
    truth = expected + width * draw.standard_normal(COUNT)
    return truth, expected, truth + noise * draw.standard_normal(COUNT)


@pytest.mark.parametrize(("width", "noise"), [(10.0, 10.0), (1.0, 10.0), (10.0, 1.0)])
def test_errors_are_close_to_the_least_possible(width: float, noise: float) -> None:
    truth, expected, noisy = noisy_case(width, noise)
    buckets = np.zeros(COUNT, dtype=np.int64)
    found = posterior_means(noisy, np.full(COUNT, noise**2), expected, buckets)
    least = width**2 * noise**2 / (width**2 + noise**2)
    assert ((found - truth) ** 2).mean() < 1.1 * least


def test_a_few_large_differences_stay_large() -> None:
    truth, expected, noisy = noisy_case(0.5, 5.0)
    noisy[:50] += 300
    found = posterior_means(noisy, np.full(COUNT, 25.0), expected, np.zeros(COUNT, dtype=np.int64))
    assert np.abs(found[:50] - truth[:50] - 300).mean() < 8
    assert np.abs(found[50:] - truth[50:]).mean() < 1


def test_without_noise_nothing_changes() -> None:
    _, expected, noisy = noisy_case(10.0, 3.0)
    buckets = np.zeros(COUNT, dtype=np.int64)
    found = posterior_means(noisy, np.full(COUNT, 1e-12), expected, buckets)
    assert np.allclose(found, noisy, atol=0.1)


def test_buckets_do_not_touch_each_other() -> None:
    _, expected, noisy = noisy_case(3.0, 5.0)
    buckets = np.arange(COUNT) % 2
    found = posterior_means(noisy, np.full(COUNT, 25.0), expected, buckets)
    moved = noisy.copy()
    moved[1::2] += 1000.0
    again = posterior_means(moved, np.full(COUNT, 25.0), expected, buckets)
    assert np.array_equal(found[::2], again[::2])


def test_no_counts_give_none() -> None:
    none = np.zeros(0)
    assert posterior_means(none, none, none, np.zeros(0, dtype=np.int64)).size == 0
    assert calibrated(none, none, np.zeros(0, dtype=np.int64)).size == 0


def test_sums_of_buckets_are_those_of_the_counts() -> None:
    expected = np.array([1.0, 3.0, 100.0, 200.0])
    noisy = np.array([2.0, 6.0, 50.0, 100.0])
    buckets = np.array([0, 0, 1, 1])
    assert calibrated(noisy, expected, buckets).tolist() == [2.0, 6.0, 50.0, 100.0]
    # Sums that noise made negative leave a little.
    assert (calibrated(-noisy, expected, buckets) > 0).all()


def test_buckets_rise_with_what_is_expected() -> None:
    found = magnitude_buckets(np.array([0.0, 1.0, 1.1, 4.0, 1e30]))
    assert (np.diff(found) >= 0).all()
    assert found[1] == found[2] < found[3]
    kinds = magnitude_buckets(np.ones(4), np.arange(4))
    assert len(set(kinds.tolist())) == 4
