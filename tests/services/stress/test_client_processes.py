"""Client processes: together they send exactly the plan, and they end with their owner."""

import base64
import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from noisefloor.errors import BadParameter
from noisefloor_services.stress.client import LoadTarget
from noisefloor_services.stress.client_processes import ClientProcesses, LoadFailed, StepOrder
from noisefloor_services.stress.core import AnswerClass
from noisefloor_services.stress.plan import Phase, RequestMix, make_plan
from noisefloor_services.stress.templates import MARK, read_templates
from stub_service import serving

KINDS = ("frames",)
PHASES = (Phase(200, 200, 0.2, is_measured=False), Phase(200, 200, 0.5))


@pytest.fixture
def templates(tmp_path: Path) -> Path:
    """Return a file of two requests."""
    rows = [
        {"class": "frames", "rows": 10, "path": "/frames", "type": "a/b", "body": body(at)}
        for at in range(2)
    ]
    path = tmp_path / "requests.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def body(at: int) -> str:
    return base64.b64encode(f"template {at}: {MARK}.".encode()).decode()


def order(port: int) -> StepOrder:
    mix = RequestMix((2,), (1.0,), duplicates=0.1)
    return StepOrder(PHASES, mix, 1, (0,), LoadTarget((port,), 16, 10.0))


@pytest.mark.parametrize("count", [1, 2])
def test_the_requests_that_arrive_are_those_of_the_plan(templates: Path, count: int) -> None:
    begun = []
    with serving() as (port, service), ClientProcesses(count, templates, KINDS) as clients:
        one = order(port)
        record = clients.send(one, lambda: begun.append(1))
    plan = make_plan(one.phases, one.mix, 1, 0)
    assert service.seen == Counter(plan.batch_id(at) for at in range(len(plan)))
    assert record.everywhere(AnswerClass.ACCEPTED) == len(plan)
    assert sorted(record.taken) == list(range(len(plan)))
    distinct = plan.distinct(record.taken, np.array([True, True]))
    assert len(distinct) == len(service.taken)
    assert begun == [1]


def test_processes_end_with_their_owner_whatever_they_are_at(templates: Path) -> None:
    with pytest.raises(RuntimeError, match="broken off"):
        with ClientProcesses(2, templates, KINDS) as clients:
            pids = clients.pids
            raise RuntimeError("broken off")
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_process_that_fails_is_an_error_that_says_why(tmp_path: Path) -> None:
    with pytest.raises(LoadFailed, match="BadParameter"):
        with ClientProcesses(1, tmp_path / "missing.jsonl", KINDS):
            pass


def test_a_file_with_requests_of_another_class_is_refused(templates: Path) -> None:
    assert len(read_templates(templates, KINDS)) == 2
    with pytest.raises(BadParameter, match="of the classes reports"):
        read_templates(templates, ("reports",))
