"""Jobs: what cannot be sent or resolved is refused before anything is started."""

import json
from pathlib import Path

import pytest

from noisefloor.errors import BadParameter
from noisefloor_services.stress.job import read_job
from stress_jobs import job

PHASE = {"rate": 200.0, "end_rate": 200.0, "seconds": 0.3}


def read(folder: Path, **changes: object) -> object:
    return read_job(json.dumps(job(folder, 1, **changes)))


def test_a_step_begins_with_a_warm_up_at_its_first_rate(tmp_path: Path) -> None:
    one = read_job(json.dumps(job(tmp_path, 1)))
    (step,) = one.steps
    assert [phase.is_measured for phase in step.phases] == [False, True]
    assert step.phases[0].rate == step.rate == 200
    assert step.expected == 60


def test_a_step_of_the_search_is_as_long_as_its_percentile_needs(tmp_path: Path) -> None:
    one = read_job(json.dumps(job(tmp_path, 1, step_s=2.0)))
    assert one.at_rate(1_000).phases[-1].seconds == 2.0
    slow = one.at_rate(4).phases[-1]  # p50 needs 20 requests, and a fifth more are planned
    assert slow.seconds == 6.0
    assert slow.expected == 24


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": []}, "steps=0 at least one, or a search"),
        ({"objective": {"percentile": 99.9}}, "enough for 10,000 requests a step"),
        ({"steps": [{"name": "a", "phases": [{**PHASE, "seconds": 1e5}]}]}, "a plan can hold"),
        ({"search": {"start": 10.0, "most": 1e8}}, "a plan can hold"),
        ({"search": {"start": 10.0, "most": 5.0}}, "start=10.0 above 0, and at most 5"),
        ({"objective": {"latency": 1}}, "a stress job"),
        ({"target": {}}, "a stress job"),
        ({"steps": [{"name": "a", "phases": []}]}, "a stress job"),
    ],
)
def test_a_job_that_breaks_a_rule_is_refused_in_one_line(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(BadParameter) as caught:
        read(tmp_path, **changes)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "{"])
def test_a_text_that_is_no_job_is_refused(text: str) -> None:
    with pytest.raises(BadParameter, match="a stress job"):
        read_job(text)
