"""The client's core in virtual time: nothing is omitted, and repeats are those of a device."""

from collections import Counter

import numpy as np
import pytest

from noisefloor_services.stress.core import (
    MOST_REPEATS,
    AnswerClass,
    LoadCore,
    Sending,
    answer_class,
)
from noisefloor_services.stress.histogram import LatencyHistogram, bucket_of, highest_of
from noisefloor_services.stress.plan import Phase, RequestMix, make_plan
from virtual_time import Answer, closed_latencies_us, computed_latencies_us, run_open

SERVICE_US, PAUSE_US, PAUSED_AT = 1_000, 1_000_000, 5_000


def one_pause(number: int) -> int:
    """Return how long a request takes: a millisecond, and one of them a second more."""
    return SERVICE_US + (PAUSE_US if number == PAUSED_AT else 0)


def core_of(due_us: list[int], *, timeout_us: int = 10**9, until_us: int = 10**9) -> LoadCore:
    return LoadCore(due_us, timeout_us=timeout_us, retry_until_us=until_us)


def to_three_digits(values_us: object, percent: float) -> int:
    exact = np.percentile(np.asarray(values_us), percent, method="inverted_cdf")
    return highest_of(int(bucket_of(int(exact))))


@pytest.fixture(scope="module")
def due_us() -> list[int]:
    """Return the times of about 12,000 requests: 200 a second for a minute."""
    plan = make_plan([Phase(200, 200, 60)], RequestMix((1,), (1.0,)), 1)
    return plan.due_us.tolist()  # type: ignore[no-any-return]  # numpy says Any


@pytest.mark.parametrize("connections", [1, 4, 1_000])
def test_a_pause_of_the_service_is_in_the_percentiles_from_due_time(
    due_us: list[int], connections: int
) -> None:
    """However few connections there are: what waited for one is late, and counts as late."""
    core = core_of(due_us)
    run_open(core, one_pause, connections=connections)
    found = LatencyHistogram.of(np.array(core.done_us) - np.array(due_us))
    computed = computed_latencies_us(due_us, one_pause)
    assert found.total == len(due_us)
    for percent in (50, 99, 99.9, 100):
        assert found.percentile_us(percent) == to_three_digits(computed, percent)


def test_a_closed_loop_omits_the_pause(due_us: list[int]) -> None:
    """The twin: the same service, and p99 and p99.9 that say nothing of its pause."""
    closed = LatencyHistogram.of(closed_latencies_us(one_pause, len(due_us)))
    computed = computed_latencies_us(due_us, one_pause)
    assert closed.percentile_us(99) == closed.percentile_us(99.9) == SERVICE_US
    assert to_three_digits(computed, 99) > 300 * SERVICE_US
    assert to_three_digits(computed, 99.9) > 900 * SERVICE_US


def test_latency_from_send_time_leaves_out_what_waited_in_the_client(due_us: list[int]) -> None:
    core = core_of(due_us)
    run_open(core, one_pause, connections=1)
    from_send = LatencyHistogram.of(np.array(core.done_us) - np.array(core.sent_us))
    assert from_send.percentile_us(99.9) == SERVICE_US
    delay = LatencyHistogram.of(np.array(core.sent_us) - np.array(due_us))
    assert delay.percentile_us(99) > 300 * SERVICE_US


def test_every_request_is_sent_once_in_its_order_and_never_early(due_us: list[int]) -> None:
    core = core_of(due_us)
    run_open(core, one_pause, connections=3)
    sent = np.array(core.sent_us)
    assert (sent >= due_us).all()
    assert (np.diff(sent) >= 0).all()
    assert set(core.classes) == {AnswerClass.ACCEPTED}
    assert all(core.taken)


def test_a_refusal_with_retry_after_is_repeated_so_many_seconds_later() -> None:
    sent: list[tuple[int, int, int]] = []

    def refuse_once(sending: Sending) -> Answer:
        sent.append((sending.place, sending.attempt, sending.sent_us))
        return (429, 2.0) if sending.place == 1 and not sending.attempt else (202, None)

    core = core_of([0, 1_000, 2_000])
    run_open(core, lambda _: 100, answer=refuse_once)
    assert sent == [(0, 0, 0), (1, 0, 1_000), (2, 0, 2_000), (1, 1, 2_001_100)]
    assert core.classes[1] == AnswerClass.REFUSED_WITH_RETRY
    assert core.done_us[1] == 1_100  # a repeat changes nothing of the first send
    assert core.repeats == Counter({AnswerClass.ACCEPTED: 1})
    assert list(core.taken) == [1, 1, 1]
    assert core.given_up == 0


def test_a_refusal_without_retry_after_is_not_repeated() -> None:
    core = core_of([0])
    run_open(core, lambda _: 100, answer=lambda _: (503, None))
    assert list(core.classes) == [AnswerClass.REFUSED_WITHOUT_RETRY]
    assert not core.repeats
    assert list(core.taken) == [0]


def test_repeats_are_bounded_in_number_and_in_time() -> None:
    core = core_of([0])
    run_open(core, lambda _: 100, answer=lambda _: (503, 1.0))
    assert core.repeats == Counter({AnswerClass.REFUSED_WITH_RETRY: MOST_REPEATS})
    assert core.given_up == 1
    core = core_of([0], until_us=2_500_000)
    run_open(core, lambda _: 100, answer=lambda _: (503, 1.0))
    assert core.repeats.total() == 2
    assert core.given_up == 1


def test_what_gets_no_answer_is_timed_out_and_what_loses_its_connection_is_lost() -> None:
    core = core_of([0, 10], timeout_us=500)
    first, second = core.pop(0), core.pop(20)
    assert not core.is_late(first, 499)
    assert core.is_late(first, 500)
    core.timed_out(first, 510)
    core.lost(second, 520)
    assert list(core.classes) == [AnswerClass.TIMED_OUT, AnswerClass.LOST]
    assert list(core.done_us) == [510, 520]
    assert core.is_done


@pytest.mark.parametrize(
    ("status", "retry_s", "found"),
    [
        (200, None, AnswerClass.ACCEPTED),
        (202, None, AnswerClass.ACCEPTED),
        (429, 1.0, AnswerClass.REFUSED_WITH_RETRY),
        (503, 0.0, AnswerClass.REFUSED_WITH_RETRY),
        (503, None, AnswerClass.REFUSED_WITHOUT_RETRY),
        (410, 1.0, AnswerClass.REFUSED_FOR_GOOD),
        (500, None, AnswerClass.REFUSED_FOR_GOOD),
    ],
)
def test_answers_fall_into_classes(status: int, retry_s: float | None, found: AnswerClass) -> None:
    assert answer_class(status, retry_s) is found
