"""The program: exit codes, files, lines of progress, and an orderly end when it is asked to."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from noisefloor_services.stress.histogram_log import read_log
from stress_jobs import job
from stub_service import serving

COMMAND = [sys.executable, "-m", "noisefloor_services", "stress"]
STEP = {"name": "step-2", "phases": [{"rate": 50.0, "end_rate": 50.0, "seconds": 60.0}]}


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def run(document: Any) -> "subprocess.CompletedProcess[str]":  # Any: JSON
    return subprocess.run(
        COMMAND,
        input=json.dumps(document),
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )


def test_a_job_leaves_figures_and_logs_and_tells_each_step(tmp_path: Path) -> None:
    with serving() as (port, service):
        done = run(job(tmp_path, port, repeats=3))
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["number"] for line in lines] == [0, 1, 2]
    assert all(line["is_met"] for line in lines)
    found = json.loads((tmp_path / "stress.json").read_text())
    assert found["is_complete"]
    assert found["account"]["is_conserved"]
    assert found["account"]["answered"] == service.taken.total()
    for name in ("seconds.hlog", "steps.hlog"):
        assert {one.tag.split(":")[0] for one in read_log(tmp_path / name)} == {
            "due", "sent", "delay",
        }  # fmt: skip


def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    done = run(job(tmp_path, 1, steps=[]))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "noisefloor: Expected steps=0 at least one, or a search.\n"
    assert not (tmp_path / "stress.json").exists()


def test_a_target_of_somebody_else_is_refused(tmp_path: Path) -> None:
    with serving(ready={}) as (port, service):
        done = run(job(tmp_path, port))
    assert done.returncode == 2
    assert "answers /readyz" in done.stderr
    assert not service.seen


def test_when_it_is_asked_to_stop_it_writes_what_it_has_and_leaves_no_process(
    tmp_path: Path,
) -> None:
    with serving() as (port, _):
        document = job(tmp_path, port)
        document["steps"].append(STEP)  # a minute, of which nobody waits for the end
        with subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(document))
            process.stdin.close()
            assert json.loads(process.stdout.readline())["step"] == "step-1"
            children = children_of(process.pid)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 130
    found = json.loads((tmp_path / "stress.json").read_text())
    assert (found["is_complete"], found["why"]) == (False, "interrupted")
    assert [run["step"] for run in found["runs"]] == ["step-1"]
    assert children
    # Python's own tracker of shared memory ends once it sees that the command has.
    until = time.monotonic() + 30
    while any(map(is_alive, children)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [pid for pid in children if is_alive(pid)]


def children_of(pid: int) -> list[int]:
    """Return the numbers of the processes that a process started."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_it_takes_no_arguments() -> None:
    done = subprocess.run(
        [*COMMAND, "--seed"], capture_output=True, text=True, env=environment(), check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "noisefloor: stress takes its job on standard input.\n"
