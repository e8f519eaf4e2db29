"""``python -m noisefloor_services chaos``: everything that is done to the services, in one run.

Exit code 0 if every sum is exact and every promise kept, 1 if not, 2 for bad input. With ``--out``
the figures are written to ``chaos.json`` there; the data of a part are kept only if it failed.
"""

import argparse
import json
import os
import platform
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from noisefloor.errors import NoisefloorError
from noisefloor_services.chaos.experiments import NAMES, ChaosSuite, ChaosTask, Json, tasks
from noisefloor_services.chaos.plan import ChaosPlan
from noisefloor_services.chaos.service_faults import ServicePlan
from noisefloor_services.store import Durability

NAME = "chaos"
FILE = "chaos.json"
FORMAT = 1
_REPORT_EVERY_S = 0.5


def run_chaos_program(arguments: Sequence[str]) -> int:
    """Run the requested parts, and return the exit code."""
    given = _parser().parse_args(arguments)
    before = signal.signal(signal.SIGTERM, _stop)  # so that whatever was started is ended
    try:
        return _ordered(given)
    finally:
        signal.signal(signal.SIGTERM, before)


def _ordered(given: argparse.Namespace) -> int:
    """Run the requested parts; expected errors become one line and an exit code."""
    try:
        order = _order(given)
        with tempfile.TemporaryDirectory(prefix="noisefloor-chaos-") as folder:
            out: Path | None = given.out
            found = run(order, out / "data" if out else Path(folder), as_lines=given.lines)
        if out:
            (out / FILE).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            with suppress(OSError):  # not empty: something failed, and its data stay
                (out / "data").rmdir()
    except NoisefloorError as error:
        print(f"noisefloor: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("noisefloor: interrupted; whatever was started is ended.", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0 if found["is_exact"] else 1


def run(order: ChaosSuite, folder: Path, *, as_lines: bool = False) -> Json:
    """Run every task of an order in a folder, and return the figures of all."""
    listed = list(tasks(order))
    load, start_s = os.getloadavg()[0], time.monotonic()
    sections: dict[str, Json] = {}
    for number, task in enumerate(listed):
        reporter = _ProgressReporter(task, number, len(listed), as_lines=as_lines)
        place = folder / f"{task.name}-{task.key}"
        result = _result(task, place, reporter)
        reporter.over(result)
        sections.setdefault(task.name, {})[task.key] = result
        if result["is_exact"]:
            shutil.rmtree(place)
    return {
        "format": FORMAT,
        "is_exact": all(one["is_exact"] for part in sections.values() for one in part.values()),
        "is_naive": order.streams.is_naive,
        "durability": order.streams.durability.value,
        "seeds": list(order.seeds),
        "elapsed_s": round(time.monotonic() - start_s, 1),
        "machine": {
            "cores": os.cpu_count(),
            "load_before": round(load, 2),
            "load_after": round(os.getloadavg()[0], 2),
            "python": platform.python_version(),
        },
        **sections,
    }


def _result(task: ChaosTask, place: Path, reporter: "_ProgressReporter") -> Json:
    """Run a task; one that got stuck is a failure and not the end of the others."""
    shutil.rmtree(place, ignore_errors=True)  # what an earlier run left
    place.mkdir(parents=True)
    start_s = time.monotonic()
    try:
        found = task.run(place, reporter.report)
    except (NoisefloorError, TimeoutError) as error:
        found = {"is_exact": False, "faults": [str(error) or "A request was left hanging."]}
    return {**found, "elapsed_s": round(time.monotonic() - start_s, 1)}


class _ProgressReporter:
    """Prints how far a task is: lines for people, or lines of JSON for a program."""

    def __init__(self, task: ChaosTask, number: int, count: int, *, as_lines: bool) -> None:
        self._task = task
        self._number = number
        self._count = count
        self._as_lines = as_lines
        self._reported_s = float("-inf")
        self.report(0.0)

    def report(self, share: float) -> None:
        """Say how much of the task is done, to a program and now and then only."""
        if self._as_lines and time.monotonic() > self._reported_s + _REPORT_EVERY_S:
            self._reported_s = time.monotonic()
            self._line({"share": round(share, 3)})

    def over(self, result: Json) -> None:
        """Say what came of it."""
        if self._as_lines:
            self._line({"share": 1.0, "is_exact": result["is_exact"], "faults": result["faults"]})
            return
        verdict = "exact" if result["is_exact"] else "; ".join(result["faults"])
        print(f"{self._task.title} ({result['elapsed_s']} s): {verdict}", flush=True)

    def _line(self, more: Json) -> None:
        line = {"task": self._task.title, "number": self._number, "of": self._count, **more}
        print(json.dumps(line), flush=True)


def _order(given: argparse.Namespace) -> ChaosSuite:
    durability = Durability(given.durability)
    # Durability memory promises nothing about a store that is killed: there none is.
    kills = {"server_kills": 0} if durability is Durability.MEMORY else {}
    streams = ChaosPlan(
        reports=given.reports, durability=durability, is_naive=given.naive, **kills
    )
    names = ("streams", "ledger") if given.naive else NAMES
    order = ChaosSuite(
        streams,
        ServicePlan(durability=durability, **kills),
        seeds=given.seeds,
        names=given.only or names,
        outage_s=given.outage_s,
    )
    return order.small() if given.quick else order


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m noisefloor_services chaos",
        description="Kill, stop and pause everything under load, and compare with the truth.",
    )
    text = "in all frames of the workers' storm (default: %(default)s)"
    parser.add_argument("--reports", type=int, default=1_000_000, metavar="N", help=text)
    text = "of reports, order and faults, with commas between (default: 1,2,3)"
    parser.add_argument("--seeds", type=_numbers, default=(1, 2, 3), metavar="SEEDS", help=text)
    text = "when a report counts as taken (default: %(default)s)"
    words = [one.value for one in Durability]
    parser.add_argument("--durability", choices=words, default="disk", help=text)
    text = "for how long the store is away (default: %(default)g)"
    parser.add_argument("--outage-s", type=float, default=30.0, metavar="SECONDS", help=text)
    text = f"some of the parts, with commas between: {', '.join(NAMES)}"
    parser.add_argument("--only", type=_words, metavar="PARTS", help=text)
    parser.add_argument("--quick", action="store_true", help="everything in small")
    text = "count and spend as one should not: the comparison has to fail"
    parser.add_argument("--naive", action="store_true", help=text)
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"folder for {FILE} and data")
    text = "print progress as lines of JSON, for a program"
    parser.add_argument("--lines", action="store_true", help=text)
    return parser


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def _stop(*_: object) -> NoReturn:
    sys.exit(128 + signal.SIGTERM)
