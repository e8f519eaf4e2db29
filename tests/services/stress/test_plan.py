"""Send plans: seeded, Poisson, the same for any number of processes, and bounded."""

import numpy as np
import pytest
from scipy import stats

from noisefloor.errors import BadParameter
from noisefloor_services.stress.plan import (
    MOST_PLANNED,
    ORIGINAL,
    RECENT,
    Phase,
    RequestMix,
    SendPlan,
    check_plannable,
    make_plan,
)

FALSE_ALARM = 1e-6
MIX = RequestMix((5, 3), (0.75, 0.25), duplicates=0.1)
PHASES = (Phase(50, 50, 1, is_measured=False), Phase(200, 200, 5), Phase(200, 800, 5))


def plan(seed: int = 1, mix: RequestMix = MIX) -> SendPlan:
    return make_plan(PHASES, mix, seed, 7)


def sent(one: SendPlan, numbers: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> set[object]:
    return {
        (int(one.due_us[n]), int(one.templates[n]), one.batch_id(int(n))) for n in numbers.tolist()
    }


@pytest.mark.parametrize("processes", [1, 2, 3, 7])
def test_several_processes_send_exactly_the_plan_of_one(processes: int) -> None:
    whole = plan()
    shares = [plan().share(at, processes) for at in range(processes)]
    assert sorted(np.concatenate(shares).tolist()) == list(range(len(whole)))
    together = set().union(*(sent(plan(), share) for share in shares))
    assert together == sent(whole, whole.share(0, 1))


def test_another_seed_or_step_is_another_plan() -> None:
    assert plan(1).due_us.tolist() == plan(1).due_us.tolist()
    assert plan(1).due_us.tolist() != plan(2).due_us.tolist()
    other = make_plan(PHASES, MIX, 1, 8)
    assert plan(1).due_us.tolist() != other.due_us.tolist()
    assert plan(1).batch_id(0) != other.batch_id(0)


def test_times_are_in_order_and_within_the_step() -> None:
    one = plan()
    assert (np.diff(one.due_us) >= 0).all()
    assert 0 <= one.due_us[0]
    assert one.due_us[-1] < one.end_us == 11_000_000
    assert one.measured_from_us == 1_000_000


@pytest.mark.statistical
@pytest.mark.parametrize("end_rate", [200.0, 3_000.0, 0.0])
def test_arrivals_are_a_poisson_process_of_the_phase(end_rate: float) -> None:
    """About 20,000 arrivals: by the inverse of their expected number they are uniform."""
    phase = Phase(2_000, end_rate, 15)
    due_s = make_plan([phase], MIX, 3).due_us / 1e6
    slope = (end_rate - 2_000) / 15
    reached = (2_000 * due_s + slope * due_s**2 / 2) / phase.expected
    assert stats.kstest(reached, "uniform").pvalue > FALSE_ALARM
    least, most = stats.poisson.interval(1 - FALSE_ALARM, phase.expected)
    assert least <= len(due_s) <= most


@pytest.mark.statistical
def test_arrivals_at_another_rate_are_rejected() -> None:
    """The twin: the times of a ramp, tested as those of a constant rate, must be rejected."""
    phase = Phase(2_000, 3_000, 15)
    due_s = make_plan([phase], MIX, 3).due_us / 1e6
    assert stats.kstest(due_s / 15, "uniform").pvalue < FALSE_ALARM


def test_duplicates_repeat_the_bytes_of_a_recent_request_that_is_new() -> None:
    one = plan()
    again = np.flatnonzero(one.originals != ORIGINAL)
    first = one.originals[again]
    assert 0 < len(again) < 0.2 * len(one)
    assert (one.originals[first] == ORIGINAL).all()
    assert (first < again).all()
    assert (one.templates[first] == one.templates[again]).all()
    assert all(one.batch_id(int(n)) == one.batch_id(int(one.originals[n])) for n in again)
    assert (again - first).max() <= 2 * RECENT


def test_every_new_request_has_a_batch_id_of_its_own() -> None:
    one = plan()
    fresh = np.flatnonzero(one.originals == ORIGINAL).tolist()
    ids = {one.batch_id(n) for n in fresh}
    assert len(ids) == len(fresh)
    assert all(len(each) == 32 for each in ids)


@pytest.mark.statistical
def test_templates_follow_the_shares() -> None:
    """3,600 draws of 8 templates in shares 0.15 and 0.0833; and the twin: even shares."""
    one = plan(mix=RequestMix((5, 3), (0.75, 0.25)))
    counts = np.bincount(one.templates, minlength=8)
    shares = np.array([0.75 / 5] * 5 + [0.25 / 3] * 3)
    assert stats.chisquare(counts, shares * len(one)).pvalue > FALSE_ALARM
    assert stats.chisquare(counts, np.full(8, len(one) / 8)).pvalue < FALSE_ALARM


def test_what_has_to_count_is_each_id_once_and_what_has_none_at_each_sending() -> None:
    zeros = np.zeros(4, np.int64)
    originals = np.array([ORIGINAL, 0, ORIGINAL, 2])
    one = SendPlan((1,), zeros, np.array([0, 0, 1, 1]), originals, 0, 1)
    has_id = np.array([True, False])
    assert one.distinct(np.array([0, 1, 2, 3]), has_id).tolist() == [0, 2, 3]
    assert one.distinct(np.array([1]), has_id).tolist() == [0]


def test_a_step_that_no_plan_can_hold_is_refused() -> None:
    check_plannable([Phase(10_000, 10_000, 100)])
    with pytest.raises(BadParameter, match=f"at most {MOST_PLANNED:,} requests"):
        check_plannable([Phase(10_000, 10_000, 1_000)])
    with pytest.raises(BadParameter, match="at least one that is measured"):
        check_plannable([Phase(1, 1, 1, is_measured=False)])


@pytest.mark.parametrize(
    ("made", "rule"),
    [
        (lambda: Phase(0, 0, 1), "above 0"),
        (lambda: Phase(1, 1, 0), "> 0"),
        (lambda: Phase(float("nan"), 1, 1), "above 0"),
        (lambda: RequestMix((1,), (0.0,)), "not all of them 0"),
        (lambda: RequestMix((0,), (1.0,)), "at least one"),
        (lambda: RequestMix((1,), (1.0,), 1.0), r"in \[0, 1\)"),
    ],
)
def test_a_phase_or_mix_that_breaks_a_rule_is_refused(made: object, rule: str) -> None:
    assert callable(made)
    with pytest.raises(BadParameter, match=rule):
        made()
