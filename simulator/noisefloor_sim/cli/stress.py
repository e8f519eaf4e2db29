"""What ``stress`` does, behind the command line: it shows progress, and says what came of it."""

from pathlib import Path
from typing import Any

from noisefloor_sim.cli.progress import TaskDisplay, task_display
from noisefloor_sim.stress import LoadOptions, LoadRun
from noisefloor_sim.stress import stress as send_load


def stress(path: Path, options: LoadOptions) -> int:
    """Send the load of a scenario, and return the exit code that its gates decide."""
    with task_display() as display:
        found = send_load(path, options, display.tell, lambda step: _show(display, step))
    if found.sentence:
        _tell(found)
    return found.code


def _show(display: TaskDisplay, step: dict[str, Any]) -> None:  # Any: JSON
    verdict = "held" if step["is_met"] else "; ".join(step["broken"])
    trust = "" if step["is_trusted"] else " (not trusted: the client was behind its plan)"
    print(f"{step['step']}: {verdict}{trust}", flush=True)
    display.tell(f"sending, {step['number'] + 1} runs of steps done")


def _tell(found: LoadRun) -> None:
    print(found.sentence)
    for gate in found.gates:
        print(f"gate {'passed' if gate.passed else 'FAILED'}: {gate.gate} ({gate.detail})")
    print(f"report: {found.folder / 'report.html'}")
