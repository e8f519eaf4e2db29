"""Histograms: three digits, sums over processes, and the bytes of HdrHistogram."""

import math
from fractions import Fraction

import numpy as np
import pytest

from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from noisefloor_services.stress.histogram import (
    CELLS,
    MOST_US,
    LatencyHistogram,
    bucket_of,
    highest_of,
)

# Written by the package hdrhistogram 0.10.8 for 0, 1, 1, 2, 5000 and twice 60,000,000.
OF_SEVEN = "HISTFAAAACl4nJNpmSzMwMDAxQABzFCaEcyZ3M5g/wEiwMTCtNeYqf0mIwsAdsQGAA=="
SEVEN = (0, 1, 1, 2, 5_000, 60_000_000, 60_000_000)


def values(name: str, count: int = 20_000) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    drawn = SeededSource(1, "latencies", name).generator().lognormal(8, 2, count)
    return np.minimum(drawn, MOST_US).astype(np.int64)


def test_every_bucket_ends_where_the_next_one_begins() -> None:
    ends = np.array([highest_of(bucket) for bucket in range(CELLS)])
    inside = ends[ends < MOST_US]
    assert (bucket_of(inside) == np.arange(len(inside))).all()
    assert (bucket_of(inside + 1) == np.arange(len(inside)) + 1).all()


def test_a_bucket_is_no_wider_than_a_thousandth_of_its_values() -> None:
    some = np.unique(values("width"))
    ends = np.array([highest_of(int(bucket)) for bucket in bucket_of(some)])
    assert (ends - some <= some / 1_000).all()
    assert (ends >= some).all()


@pytest.mark.parametrize("percent", [0, 1, 50, 90, 99, 99.9, 99.99, 100])
def test_a_percentile_is_that_of_the_sorted_values_to_three_digits(percent: float) -> None:
    some = values("percentiles")
    rank = math.ceil(Fraction(str(percent)) * len(some) / 100)  # in floats, 99.9 % is one too many
    exact = np.sort(some)[max(rank, 1) - 1]
    assert LatencyHistogram.of(some).percentile_us(percent) == highest_of(int(bucket_of(exact)))


def test_merged_histograms_equal_one_of_all_values() -> None:
    parts = [values(f"process-{at}", 1_000 * (at + 1)) for at in range(4)]
    merged = LatencyHistogram.merged(map(LatencyHistogram.of, parts))
    assert (merged.counts == LatencyHistogram.of(np.concatenate(parts)).counts).all()


def test_averaged_percentiles_would_not_equal_those_of_all_values() -> None:
    parts = [np.full(1_000, 1_000), np.full(10, 500_000)]
    averaged = np.mean([LatencyHistogram.of(part).percentile_us(99) for part in parts])
    merged = LatencyHistogram.merged(map(LatencyHistogram.of, parts)).percentile_us(99)
    assert merged == 1_000
    assert averaged > 250_000


def test_the_encoding_is_that_of_another_implementation() -> None:
    found = LatencyHistogram.of(SEVEN)
    assert found.encoded() == OF_SEVEN
    assert (LatencyHistogram.decoded(OF_SEVEN).counts == found.counts).all()


def test_reading_gives_back_what_was_written() -> None:
    for found in (LatencyHistogram(), LatencyHistogram.of([0]), LatencyHistogram.of(values("x"))):
        assert (LatencyHistogram.decoded(found.encoded()).counts == found.counts).all()


@pytest.mark.parametrize("text", ["", "x", OF_SEVEN[:-8], OF_SEVEN.replace("m", "n")])
def test_a_text_that_is_no_histogram_is_refused(text: str) -> None:
    with pytest.raises(BadParameter, match="histogram"):
        LatencyHistogram.decoded(text)


def test_values_outside_of_the_range_count_at_its_ends() -> None:
    found = LatencyHistogram.of([-5, 90_000_000])
    assert found.percentile_us(1) == 0
    assert found.longest_us == highest_of(int(bucket_of(MOST_US)))


def test_an_empty_histogram_has_no_percentile() -> None:
    assert LatencyHistogram().percentile_us(99) == LatencyHistogram().longest_us == 0
    with pytest.raises(BadParameter, match="percent"):
        LatencyHistogram().percentile_us(101)
