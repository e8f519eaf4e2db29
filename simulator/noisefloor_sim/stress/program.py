"""The program that sends the load, as a process of its own that is watched and ended by us."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

INTERRUPTED = 130
_COMMAND = (sys.executable, "-m", "noisefloor_services", "stress")
_STOP_S = 60.0

Json = dict[str, Any]  # what json reads
StepCallback = Callable[[Json], None]


def run_program(job: Json, tell: StepCallback) -> int:
    """Run a stress job, and return the exit code; if we are interrupted, the load ends first.

    Args:
        job: As the program takes it; it may hold a token, and goes to standard input.
        tell: Called with what each step came to.
    """
    with _process(json.dumps(job)) as process:
        try:
            _follow(process, tell)
        except KeyboardInterrupt:
            process.terminate()  # it ends its clients and writes what it has so far
            _follow(process, tell)
            process.wait(_STOP_S)
            return INTERRUPTED
        return process.wait(_STOP_S)


def _follow(process: "subprocess.Popen[str]", tell: StepCallback) -> None:
    """Tell every line of progress, until there are no more."""
    for line in process.stdout or ():
        if line.startswith("{"):
            tell(json.loads(line))


@contextmanager
def _process(job: str) -> "Iterator[subprocess.Popen[str]]":
    process = subprocess.Popen(  # noqa: S603  our own command
        _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        if process.stdin is not None:
            process.stdin.write(job)
            process.stdin.close()
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(_STOP_S)
        if process.stdout is not None:
            process.stdout.close()
