"""A stress run against a made-up service: what was answered is what was counted."""

import json
from pathlib import Path

import pytest

from noisefloor.errors import BadParameter
from noisefloor_services.stress.core import AnswerClass
from noisefloor_services.stress.figures import (
    intervals_by_second,
    intervals_by_step,
    stress_json,
)
from noisefloor_services.stress.histogram import LatencyHistogram
from noisefloor_services.stress.job import read_job
from noisefloor_services.stress.session import StepRun, StressOutcome, StressSession
from noisefloor_services.stress.step_record import FROM_DUE, TAGS
from stress_jobs import job
from stub_service import Script, StubService, accepted, serving

STEP = {"phases": [{"rate": 200.0, "end_rate": 200.0, "seconds": 0.2}]}
TWO_STEPS = [{"name": name, **STEP} for name in ("step-1", "step-2")]


def outcome_of(
    folder: Path, script: Script = accepted, **changes: object
) -> tuple[StressOutcome, StubService, dict[str, object]]:
    with serving(script) as (port, service):
        read, outcome = read_job(json.dumps(job(folder, port, **changes))), StressOutcome()
        reported: list[StepRun] = []
        StressSession(read, outcome, reported.append).run()
        found = stress_json(read, outcome, is_complete=True, why="")
    assert reported == outcome.runs
    return outcome, service, found


def test_what_has_to_count_is_what_the_service_counted(tmp_path: Path) -> None:
    outcome, service, found = outcome_of(tmp_path, steps=TWO_STEPS, repeats=3)
    assert len(outcome.runs) == 6
    assert sum(run.frames for run in outcome.runs) == len(service.taken)
    assert sum(run.rows for run in outcome.runs) == 10 * len(service.taken)
    assert sum(run.planned for run in outcome.runs) == service.seen.total()
    assert found["account"] == {
        "answered": service.taken.total(),
        "to_count": len(service.taken),
        "unknown": 0,
        "services": service.account(),
        "is_conserved": True,
    }


def test_steps_are_repeated_in_changed_orders(tmp_path: Path) -> None:
    steps = [{"name": f"step-{at}", **STEP} for at in range(1, 5)]
    outcome, _, _ = outcome_of(tmp_path, steps=steps, repeats=3)
    orders = [[run.step.name for run in outcome.runs[at : at + 4]] for at in (0, 4, 8)]
    assert orders[0] == [step["name"] for step in steps]
    assert len({tuple(order) for order in orders}) == 3
    assert all(sorted(order) == orders[0] for order in orders)


def test_a_service_that_loses_a_frame_is_found(tmp_path: Path) -> None:
    """The twin of conservation: one answered frame is not among those that were counted."""
    with serving() as (port, service):
        read, outcome = read_job(json.dumps(job(tmp_path, port))), StressOutcome()
        StressSession(read, outcome, lambda run: None).run()
        del service.taken[next(iter(service.taken))]
        found = stress_json(read, outcome, is_complete=True, why="")
        assert found["account"]["is_conserved"] is False
        broken_off = stress_json(read, outcome, is_complete=False, why="interrupted")
        assert broken_off["account"]["is_conserved"] is False


def test_a_refusal_breaks_the_objective_and_its_repeat_is_counted_apart(tmp_path: Path) -> None:
    refused: set[bytes] = set()

    def refuse_once(number: int, batch_id: bytes) -> tuple[int, float | None]:
        if batch_id in refused:
            return 202, None
        refused.add(batch_id)
        return 429, 0.05

    outcome, service, found = outcome_of(tmp_path, refuse_once, duplicates=0.0)
    (run,) = outcome.runs
    assert not run.verdict.is_met
    assert run.record.count(AnswerClass.REFUSED_WITH_RETRY) == run.record.count()
    assert run.record.repeats == {AnswerClass.ACCEPTED: run.planned}
    assert run.limit.what
    assert len(service.taken) == run.frames == run.planned
    assert isinstance(found["account"], dict)
    assert found["account"]["is_conserved"]


def test_the_search_is_in_the_figures_with_its_interval(tmp_path: Path) -> None:
    """A service that holds at every rate that is tried: a lower bound."""
    search = {"start": 100.0, "most": 200.0, "repeats": 1}
    outcome, _, found = outcome_of(tmp_path, steps=[], search=search)
    assert outcome.knee is not None
    assert (outcome.knee.low, [run.step.rate for run in outcome.runs]) == (200.0, [100.0, 200.0])
    knee = found["knee"]
    assert isinstance(knee, dict)
    assert (knee["low"], knee["high"], knee["is_lower_bound"]) == (200.0, None, True)


def test_goodput_is_measured_beyond_the_knee(tmp_path: Path) -> None:
    """A service that takes what comes in the first step, and refuses everything after it."""

    def refuse_later(number: int, batch_id: bytes) -> tuple[int, float | None]:
        return (202, None) if number < 60 else (503, None)

    search = {"start": 100.0, "most": 200.0, "repeats": 1}
    outcome, _, found = outcome_of(tmp_path, refuse_later, steps=[], search=search)
    assert outcome.knee is not None
    assert (outcome.knee.low, outcome.knee.is_found) == (100.0, True)
    assert [run.step.rate for run in outcome.runs[-2:]] == [150.0, 300.0]
    runs = found["runs"]
    assert isinstance(runs, list)
    assert runs[0]["goodput"] == runs[0]["accepted"] > 0
    assert [run["goodput"] for run in runs[-2:]] == [0, 0]


def test_histograms_by_second_add_up_to_those_by_step(tmp_path: Path) -> None:
    phases = [{"rate": 40.0, "end_rate": 120.0, "seconds": 1.5}]
    outcome, _, _ = outcome_of(tmp_path, steps=[{"name": "step-1", "phases": phases}])
    by_step = {one.tag.split(":")[0]: one.histogram for one in intervals_by_step(outcome)}
    seconds = list(intervals_by_second(outcome))
    assert {one.start_s for one in seconds if one.tag == FROM_DUE} == {
        outcome.runs[0].begun_s + 0.1 + at for at in (0, 1)
    }
    for tag in TAGS:
        parts = [one.histogram for one in seconds if one.tag == tag]
        assert (LatencyHistogram.merged(parts).counts == by_step[tag].counts).all()


def test_a_target_that_is_not_ours_is_not_put_under_load(tmp_path: Path) -> None:
    with serving(ready={"status": "fine"}) as (port, service):
        read = read_job(json.dumps(job(tmp_path, port)))
        with pytest.raises(BadParameter, match="answers /readyz"):
            StressSession(read, StressOutcome(), lambda run: None).run()
    assert not service.seen
