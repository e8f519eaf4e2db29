"""How long the command line takes to start, and to audit everything."""

import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.table import aligned, figure

LIMIT_S = 600


@dataclass(frozen=True, slots=True)
class Start:
    """One command's best times, or why there are none."""

    command: str
    target_s: float
    wall_s: float | None = None
    cpu_s: float | None = None
    problem: str = ""

    @property
    def verdict(self) -> str:
        """Judge the wall time."""
        if self.wall_s is None:
            return self.problem
        return "met" if self.wall_s < self.target_s else "missed"

    def as_json(self) -> dict[str, Any]:
        """Return the figures and the verdict."""
        return asdict(self) | {"verdict": self.verdict}


def _run(script: Path, arguments: Sequence[str], target_s: float, repeats: int) -> Start:
    name = " ".join(("noisefloor", *arguments))
    times = []
    for _ in range(repeats):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        try:
            done = subprocess.run(  # noqa: S603  our own command
                [script, *arguments], capture_output=True, timeout=LIMIT_S
            )
        except subprocess.TimeoutExpired:
            return Start(name, target_s, problem=f"missed: not done in {LIMIT_S} s")
        wall_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            return Start(name, target_s, problem=f"failed with exit code {done.returncode}")
        used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        times.append((wall_s, used_s))
    return Start(name, target_s, min(w for w, _ in times), min(c for _, c in times))


def measure() -> list[Start]:
    """Run the console script that is installed next to this interpreter."""
    script = Path(sys.executable).with_name("noisefloor")
    commands = ((("--help",), 0.5, 5), (("audit",), 60.0, 1))
    if not script.exists():
        missing = "not installed next to this interpreter"
        return [Start(f"noisefloor {a[0]}", t, problem=missing) for a, t, _ in commands]
    return [_run(script, *command) for command in commands]


def printed(starts: list[Start]) -> str:
    """Return the table."""
    header = ("command", "wall s", "CPU s", "target", "verdict")
    rows = [
        (s.command, figure(s.wall_s), figure(s.cpu_s), f"< {s.target_s:g} s", s.verdict)
        for s in starts
    ]
    return aligned(header, rows)
