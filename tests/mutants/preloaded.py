"""A process that has loaded the libraries of others, and forks one run of changed code at a time.

Half of a small run's processor time is loading numpy, scipy, pyarrow and the like, which no
mutant changes. The process here loads them once and nothing of the project: a fork imports that
from its own copy of the source roots, as a fresh interpreter would.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

LIBRARIES = (
    *("numpy", "scipy.special", "scipy.stats", "pyarrow.compute", "pyarrow.parquet"),
    *("pyarrow.ipc", "dp_accounting.pld", "dp_accounting.rdp", "pydantic", "simpy", "typer"),
    *("rich.console", "rich.live", "rich.progress", "jinja2", "safetensors", "yaml"),
)
OWN = ("noisefloor", "noisefloor_sim", "noisefloor_services")


class Preloaded:
    """Runs commands of the project in forks of one process."""

    def __init__(self, requests: IO[str], answers: IO[str]) -> None:
        self._requests = requests
        self._answers = answers

    def run(
        self,
        words: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        output: Path,
        most_s: int,
    ) -> int:
        """Run ``python -m`` with some words, and return the exit code.

        Args:
            words: The module and its arguments.
            folder: Where it runs.
            environment: All variables of the process; PYTHONPATH says where modules are.
            output: The file for what it writes.
            most_s: When it is ended by a signal.
        """
        request = {
            "words": [*words],
            "folder": str(folder),
            "environment": dict(environment),
            "output": str(output),
            "most_s": most_s,
        }
        print(json.dumps(request), file=self._requests, flush=True)
        answer = self._answers.readline()
        if not answer:
            raise RuntimeError("the process with the libraries has ended")
        return int(answer)


@contextmanager
def preloaded() -> Iterator[Preloaded]:
    """Start the process, and end it."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    command = [sys.executable, str(Path(__file__).resolve())]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the process has no pipes")
        yield Preloaded(process.stdin, process.stdout)


def serve() -> None:
    """Load the libraries, then fork for every line of the input."""
    for name in LIBRARIES:
        importlib.import_module(name)
    if loaded := [name for name in OWN if name in sys.modules]:
        raise RuntimeError(f"{', '.join(loaded)} must come from a copy")
    gc.freeze()  # no fork has to look through what the libraries made
    while line := sys.stdin.readline():
        child = os.fork()
        if not child:
            _run(json.loads(line))
            return
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run(request: Mapping[str, Any]) -> None:  # as Preloaded.run wrote it
    """Become the process that was asked for."""
    words, variables = request["words"], request["environment"]
    signal.alarm(request["most_s"])
    with open(os.devnull, "rb") as nothing, open(request["output"], "wb") as output:
        os.dup2(nothing.fileno(), 0)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(request["folder"])
    sys.path[:1] = [os.getcwd(), *variables["PYTHONPATH"].split(os.pathsep)]
    sys.argv = words
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve()
