"""``python -m noisefloor_services stress``: a job on standard input, figures into its folder.

Progress goes to standard output as lines of JSON. Exit code 0 if everything was run, 2 for bad
input, 130 if it was broken off: then the load ends first, and what was measured so far is written.
"""

import json
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from noisefloor.errors import BadParameter, NoisefloorError
from noisefloor_services.stress.figures import (
    intervals_by_second,
    intervals_by_step,
    stress_json,
)
from noisefloor_services.stress.histogram_log import write_log
from noisefloor_services.stress.job import StressJob, read_job
from noisefloor_services.stress.session import StepRun, StressOutcome, StressSession

FILE = "stress.json"
BY_SECOND, BY_STEP = "seconds.hlog", "steps.hlog"
INTERRUPTED = 128 + signal.SIGINT


def run_stress_program(arguments: Sequence[str]) -> int:
    """Run the job on standard input, and return the exit code."""
    if arguments:
        print("noisefloor: stress takes its job on standard input.", file=sys.stderr)
        return 2
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        return _run(sys.stdin.read())
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(text: str) -> int:
    outcome = StressOutcome()
    try:
        job = read_job(text)
        session = StressSession(job, outcome, _tell)
    except NoisefloorError as error:
        print(f"noisefloor: {error}", file=sys.stderr)
        return 2
    code, why = 0, ""
    try:
        session.run()
    except KeyboardInterrupt:
        code, why = INTERRUPTED, "interrupted"
        session.settle()  # the load has ended; what was accepted is still being counted
    except NoisefloorError as error:
        code, why = 2 if isinstance(error, BadParameter) else 1, str(error)
        print(f"noisefloor: {error}", file=sys.stderr)
    if outcome.runs:
        write(job, outcome, why)
    return code


def write(job: StressJob, outcome: StressOutcome, why: str) -> None:
    """Write the figures and the histograms."""
    found = stress_json(job, outcome, is_complete=not why, why=why)
    text = json.dumps(found, indent=1, allow_nan=False) + "\n"
    (job.out / FILE).write_text(text, encoding="utf-8")
    for name, intervals in ((BY_SECOND, intervals_by_second), (BY_STEP, intervals_by_step)):
        write_log(job.out / name, outcome.begun_at_s, intervals(outcome))


def _tell(run: StepRun) -> None:
    line = {
        "step": run.step.name,
        "number": run.number,
        "is_search": run.is_search,
        "is_met": run.verdict.is_met,
        "is_trusted": run.verdict.is_trusted,
        "broken": run.verdict.broken,
    }
    print(json.dumps(line), flush=True)


def _stop(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # asked once is enough
    raise KeyboardInterrupt
