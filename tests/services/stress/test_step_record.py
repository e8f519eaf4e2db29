"""Records of steps: by second and class, added up over processes bucket by bucket."""

import numpy as np
import pytest

from noisefloor_services.stress.core import AnswerClass, LoadCore, Sending
from noisefloor_services.stress.plan import Phase, RequestMix, SendPlan, make_plan
from noisefloor_services.stress.step_record import (
    FROM_DUE,
    FROM_SEND,
    SEND_DELAY,
    TAGS,
    StepRecord,
    merged,
    record_of,
)
from virtual_time import Answer, run_open

PHASES = (Phase(100, 100, 1, is_measured=False), Phase(100, 100, 3))
PLAN = make_plan(PHASES, RequestMix((2,), (1.0,), 0.2), 1)


def record(process: int, of: int, plan: SendPlan = PLAN) -> StepRecord:
    """Return what a process records whose service takes a time that follows from the request."""
    numbers = plan.share(process, of)
    core = LoadCore(plan.due_us[numbers].tolist(), timeout_us=10**9, retry_until_us=0)
    while (due_us := core.next_due_us()) is not None:
        sending = core.pop(due_us + 5)
        took_us = 100 + int(numbers[sending.place])  # below 2 ms buckets are exact
        core.answered(sending, 202, None, due_us + 5 + took_us)
    return record_of(core, plan, numbers)


@pytest.mark.parametrize("processes", [2, 3])
def test_the_records_of_several_processes_add_up_to_that_of_one(processes: int) -> None:
    one = record(0, 1)
    several = merged(record(at, processes) for at in range(processes))
    for tag in TAGS:
        assert len(one.histograms[tag]) == 3
        for own, other in zip(one.histograms[tag], several.histograms[tag], strict=True):
            assert (own.counts == other.counts).all()
    assert (one.classes == several.classes).all()
    assert sorted(several.taken) == one.taken.tolist()
    assert several.warm == one.warm
    assert several.sent_in_time == one.sent_in_time


def test_only_what_is_measured_is_in_histograms_and_every_request_is_counted_once() -> None:
    one = record(0, 1)
    measured = int((PLAN.due_us >= PLAN.measured_from_us).sum())
    assert one.whole(FROM_DUE).total == one.count() == measured
    assert one.warm.total() == len(PLAN) - measured > 0
    assert one.everywhere(AnswerClass.ACCEPTED) == len(PLAN) == len(one.taken)
    by_second = np.bincount((PLAN.due_us[PLAN.due_us >= 1_000_000] - 1_000_000) // 1_000_000)
    assert one.classes.sum(axis=1).tolist() == by_second.tolist()


def test_latency_from_due_time_is_that_from_send_time_and_the_delay() -> None:
    one = record(0, 1)
    assert one.whole(SEND_DELAY).percentile_us(100) == 5
    assert one.whole(FROM_DUE).percentile_us(0) == one.whole(FROM_SEND).percentile_us(0) + 5


def refuse_half(sending: Sending) -> Answer:
    return (202, None) if sending.place % 2 else (429, None)


def test_refusals_have_no_latency_and_time_outs_have_one() -> None:
    numbers = PLAN.share(0, 1)
    core = LoadCore(PLAN.due_us.tolist(), timeout_us=10**9, retry_until_us=0)
    run_open(core, lambda _: 10, answer=refuse_half)
    one = record_of(core, PLAN, numbers)
    accepted = one.count(AnswerClass.ACCEPTED)
    assert one.whole(FROM_DUE).total == accepted < one.count()
    core = LoadCore(PLAN.due_us.tolist(), timeout_us=1, retry_until_us=0)
    for due_us in PLAN.due_us.tolist():
        core.timed_out(core.pop(due_us), due_us + 2_000_000)
    late = record_of(core, PLAN, numbers)
    assert late.whole(FROM_DUE).total == late.count(AnswerClass.TIMED_OUT) == late.count()
    assert len(late.taken) == 0


def test_what_is_sent_after_the_end_is_not_achieved() -> None:
    numbers = PLAN.share(0, 1)
    core = LoadCore(PLAN.due_us.tolist(), timeout_us=10**9, retry_until_us=0)
    run_open(core, lambda _: 20_000, connections=1)  # half of what is asked for
    late = record_of(core, PLAN, numbers)
    assert 0 < late.sent_in_time < late.count()
    assert record(0, 1).sent_in_time == late.count()
