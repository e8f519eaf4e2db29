"""Timed work in a process of its own: requests come as JSON lines, CPU seconds go back.

Imports, inputs and just-in-time compilation are paid before the first timing.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[1]

ONE_THREAD = {
    name: "1"
    for name in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "RAYON_NUM_THREADS",
    )
}

LEAST_CPU_S = 0.1
"""Short work is repeated within one timing: else the faster side would be timed in lulls only."""

Answer = dict[str, Any]  # JSON


@dataclass(frozen=True, slots=True)
class Job:
    """Work that is ready to run: ``run(key)`` makes ``reports`` reports; a key serves once."""

    run: Callable[[str], object]
    reports: int


def serve(setups: Mapping[str, Callable[[bool], Job]], about: Answer) -> None:
    """Answer requests until the input closes; a failure is an answer too.

    ``forget`` lets go of the inputs made so far, and answers with the versions.
    """
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not end up among the answers
    jobs: dict[tuple[str, bool], Job] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "forget" in request:
            jobs.clear()
        try:
            answer = about if "forget" in request else _timed(request, setups, jobs)
        except Exception as error:  # reported, and shown in the table
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=replies, flush=True)


def _timed(
    request: Answer,
    setups: Mapping[str, Callable[[bool], Job]],
    jobs: dict[tuple[str, bool], Job],
) -> Answer:
    name, quick = request["workload"], request["quick"]
    if (name, quick) not in jobs:
        jobs[name, quick] = setups[name](quick)
        jobs[name, quick].run(f"{name}/warm-up")
    job = jobs[name, quick]
    rounds, cpu_s, start = 0, 0.0, time.process_time()
    while cpu_s < LEAST_CPU_S:
        job.run(f"{name}/{request['repeat']}/{rounds}")
        rounds, cpu_s = rounds + 1, time.process_time() - start
    return {"cpu_s": cpu_s, "reports": rounds * job.reports}


class Worker:
    """The other end: starts the process and asks it."""

    def __init__(self, python: str, module: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603  our own command
            [python, "-m", module],
            cwd=ROOT,
            env=os.environ | ONE_THREAD,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        assert self._process.stdin is not None  # noqa: S101  narrows a type
        assert self._process.stdout is not None  # noqa: S101  narrows a type
        self._requests: IO[str] = self._process.stdin
        self._replies: IO[str] = self._process.stdout

    def ask(self, **request: str | float) -> Answer:
        """Return the answer, or an error when the process is gone."""
        try:
            print(json.dumps(request), file=self._requests, flush=True)
            reply = self._replies.readline()
        except BrokenPipeError:
            reply = ""
        if not reply:
            return {"error": "the worker ended"}
        answer: Answer = json.loads(reply)
        return answer

    def close(self) -> None:
        """Let the process end by closing its input."""
        try:
            self._requests.close()
        except BrokenPipeError:
            pass
        self._process.wait()
