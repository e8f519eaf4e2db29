"""Detectors: honest runs seldom alarm, planted fakes do, and evasive ones escape as stated."""

import numpy as np
import pytest

from noisefloor.adversary.ads.detectors import (
    bit_bias_test,
    detection_rates,
    total_test,
    uniformity_test,
)
from noisefloor.adversary.ads.poisoning import (
    concentrated_messages,
    crafted_reports,
    mimic,
    spread_messages,
)
from noisefloor.checks import Floats
from noisefloor.errors import BadParameter, UnresolvedRate
from noisefloor.mechanisms import SampledBit, UnaryEncoding
from noisefloor.mechanisms.base import Reports
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM

RUNS, DEVICES = 1_000, 1_000
ENCODING = UnaryEncoding.optimised(12, 1.0)
TRAINING = SampledBit(12, 0.5)
LEVELS = (0.001, 0.01, 0.1)


def assert_valid(p_values: Floats) -> None:
    """Not more honest runs alarm at a level than a binomial distribution allows, at
    FALSE_ALARM."""
    from scipy.stats import binom

    for level in LEVELS:
        alarms = int((p_values < level).sum())
        assert binom.sf(alarms - 1, p_values.size, level) > FALSE_ALARM


def honest_reports(name: str, seed: int, runs: int = RUNS, devices: int = DEVICES) -> Reports:
    """Return runs, devices, bits: one symbol a person, skewed to the first."""
    source = SeededSource(seed, "honest", name)
    drawn = source.child("symbols").below(24, runs * devices)
    symbols = np.where(drawn < 12, drawn, drawn // 8)
    reports = ENCODING.randomise_values(symbols, source.child("reports"))
    return reports.reshape(runs, devices, ENCODING.size)


def honest_messages(name: str, seed: int, mean: float = 1.0) -> Reports:
    source = SeededSource(seed, "messages", name)
    chosen = TRAINING.choose(RUNS * DEVICES, source.child("choose"))
    # The hardest honest case for a test of bits: the first half at one end of the range.
    values = np.where(chosen < 6, mean, 0.0)
    return TRAINING.answer(chosen, values, source.child("bits")).reshape(RUNS, DEVICES)


def tallies(messages: Reports) -> Reports:
    return np.stack([TRAINING.tally(run) for run in messages])


@pytest.mark.statistical
def test_honest_unary_reports_seldom_alarm(seed: int) -> None:
    # 1,000 runs of 1,000 devices, at levels 0.1 %, 1 %, 10 %; false alarm FALSE_ALARM.
    reports = honest_reports("valid", seed)
    sums = reports.sum(axis=1)
    assert_valid(total_test(ENCODING, sums, DEVICES))
    assert_valid(total_test(ENCODING, sums, DEVICES, total=1.0))
    with pytest.raises(AssertionError):  # the twin: a wrong total
        assert_valid(total_test(ENCODING, sums, DEVICES, total=2.0))


@pytest.mark.statistical
def test_honest_messages_seldom_alarm_even_in_the_worst_population(seed: int) -> None:
    # 1,000 runs of 1,000 devices, at levels 0.1 %, 1 %, 10 %; false alarm FALSE_ALARM.
    counts = tallies(honest_messages("valid", seed))
    assert_valid(uniformity_test(TRAINING, counts))
    assert_valid(bit_bias_test(TRAINING, counts))
    with pytest.raises(AssertionError):  # the twin: a bound on means that does not hold
        assert_valid(bit_bias_test(TRAINING, counts, largest=0.0))


@pytest.mark.statistical
def test_bold_fakes_are_found_by_the_total_and_evasive_ones_are_not(seed: int) -> None:
    # 1,000 runs, 20 % fakes. AUC by chance is 0.5 +- 0.013.
    runs, fakes, target = RUNS, 200, 11
    honest, other = honest_reports("a", seed), honest_reports("b", seed)
    bold = other.copy()
    bold[:, :fakes] = crafted_reports(ENCODING, target, fakes)
    sly = other.copy()
    own = other[:, :fakes].reshape(runs * fakes, -1)
    sly[:, :fakes] = mimic(own, target, SeededSource(seed, "sly")).reshape(runs, fakes, -1)
    # Ten standard deviations if the total is known; moved ones leave the total as it was.
    totals = [
        total_test(ENCODING, some.sum(axis=1), DEVICES, total=1.0) for some in (honest, bold, sly)
    ]
    assert detection_rates(totals[0], totals[1]).rate > 0.95
    assert detection_rates(totals[0], totals[2]).auc < 0.56


@pytest.mark.statistical
def test_crowds_are_found_by_coordinates_and_spread_fakes_by_bits(seed: int) -> None:
    # 1,000 runs; 8 % fakes that crowd (noncentrality 70: power 1), 30 % that spread.
    honest, other = honest_messages("c", seed, 0.2), honest_messages("d", seed, 0.2)
    crowded = other.copy()
    crowded[:, :80] = concentrated_messages(TRAINING, [3], 80)
    sly = other.copy()
    drawn = spread_messages(TRAINING, [3, 4, 5], RUNS * 300, SeededSource(seed, "spread"))
    sly[:, :300] = drawn.reshape(RUNS, 300)
    counts = [tallies(some) for some in (honest, crowded, sly)]
    scores = [uniformity_test(TRAINING, some) for some in counts]
    assert detection_rates(scores[0], scores[1]).rate > 0.9
    assert detection_rates(scores[0], scores[2]).auc < 0.56
    bits = [bit_bias_test(TRAINING, some, largest=0.2) for some in counts]
    assert detection_rates(bits[0], bits[2]).auc > 0.85


def test_the_area_under_the_curve_counts_pairs() -> None:
    honest, attacked = np.arange(1, 1_001) / 1_000, np.arange(0, 1_000) / 2_000
    pairs = (attacked[:, None] < honest).mean() + (attacked[:, None] == honest).mean() / 2
    found = detection_rates(honest, attacked, false_positive_rate=0.1)
    assert found.auc == pytest.approx(pairs)
    assert found.rate == pytest.approx(0.2, abs=0.01)
    assert detection_rates(honest, honest, false_positive_rate=0.1).auc == pytest.approx(0.5)
    with pytest.raises(UnresolvedRate):
        detection_rates(honest[:100], attacked)


def test_no_reports_of_a_coordinate_are_no_alarm_and_wrong_tallies_are_refused() -> None:
    empty = np.zeros(24, dtype=np.int64)
    empty[:2] = 5, 5
    assert bit_bias_test(TRAINING, empty) == 1.0
    with pytest.raises(BadParameter, match="tally"):
        bit_bias_test(TRAINING, np.zeros(5, dtype=np.int64))
    with pytest.raises(BadParameter, match="largest"):
        bit_bias_test(TRAINING, empty, largest=2.0)
