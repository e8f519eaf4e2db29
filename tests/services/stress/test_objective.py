"""Objectives: what breaks them, what is not trusted, and what no run can resolve."""

import numpy as np
import pytest

from noisefloor.errors import BadParameter
from noisefloor_services.stress.core import AnswerClass
from noisefloor_services.stress.histogram import LatencyHistogram
from noisefloor_services.stress.objective import Objective, is_trusted, judge
from noisefloor_services.stress.step_record import FROM_DUE, SEND_DELAY, StepRecord


def record(
    latency_ms: float = 10, delay_ms: float = 0.1, n: int = 10_000, **counts: int
) -> StepRecord:
    """Return the record of a step in which all latencies, and all delays, are the same."""
    classes = np.zeros((1, len(AnswerClass)), np.int64)
    for name, count in counts.items():
        classes[0, AnswerClass[name]] = count
    classes[0, AnswerClass.ACCEPTED] = n - sum(counts.values())
    histograms = {
        tag: [LatencyHistogram.of(np.full(n, round(1000 * value)))]
        for tag, value in ((FROM_DUE, latency_ms), (SEND_DELAY, delay_ms))
    }
    return StepRecord(histograms=histograms, classes=classes)


def test_a_step_within_every_rule_meets_the_objective() -> None:
    found = judge(record(), Objective(), 0)
    assert found.is_met
    assert found.is_trusted
    assert found.broken == ()


@pytest.mark.parametrize(
    ("one", "grew", "words"),
    [
        (record(latency_ms=60), 0, "p99 is 60 ms, above 50 ms"),
        (record(REFUSED_WITH_RETRY=11), 0, "0.11% were refused or lost, above 0.10%"),
        (record(TIMED_OUT=11), 0, "refused or lost"),
        (record(LOST=11), 0, "refused or lost"),
        (record(), 501, "501 frames more wait"),
        (record(n=100), 65, "65 frames more wait"),
    ],
)
def test_each_rule_that_is_broken_is_named(one: StepRecord, grew: int, words: str) -> None:
    found = judge(one, Objective(), grew)
    assert not found.is_met
    assert len(found.broken) == 1
    assert words in found.broken[0]


def test_what_is_allowed_breaks_nothing() -> None:
    assert judge(record(REFUSED_WITH_RETRY=10), Objective(), 500).is_met
    assert judge(record(n=100), Objective(), 64).is_met
    assert judge(record(), Objective(lag_grows=True), 10**6).is_met


@pytest.mark.parametrize(
    ("latency_ms", "delay_ms", "trusted"),
    [
        (5, 1.0, True),
        (5, 1.1, False),  # 5 % of 5 ms are less than 1 ms
        (40, 2.0, True),
        (40, 2.1, False),
    ],
)
def test_a_step_is_trusted_within_the_larger_of_1_ms_and_5_percent_of_p99(
    latency_ms: float, delay_ms: float, trusted: bool
) -> None:
    assert is_trusted(record(latency_ms, delay_ms)) is trusted


def test_a_percentile_needs_ten_values_beyond_it() -> None:
    assert Objective().least_requests == 1_000
    assert Objective(percentile=99.9).least_requests == 10_000
    Objective(percentile=99.9).check_resolved(10_000, "load.steps")
    with pytest.raises(BadParameter, match=r"load\.steps=9999 enough for 10,000 requests a step"):
        Objective(percentile=99.9).check_resolved(9_999, "load.steps")
