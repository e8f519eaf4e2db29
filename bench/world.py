"""What the simulated world costs: events per CPU-second, a million users, the process pool.

Ours is measured against the same behaviour as one SimPy process per user (``world_baseline``),
and has to agree with it in what users do. Every run is in a fresh process. Prints tables and
writes every raw number. It reports; it does not fail on a missed target.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

# `python bench/world.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.table import aligned, figure
from bench.worker import ONE_THREAD, ROOT

OUT = ROOT / "bench/results/world.json"
PACKAGES = ("noisefloor", "numpy", "scipy", "simpy", "pyarrow")

SPEED_TARGET, LARGEST_Z = 30.0, 5.0
MEMORY_TARGET_MB, GROWTH_TARGET, POOL_TARGET = 500.0, 10.5, 0.85

LIGHT_TAIL = 20.0
"""Engagement where the two are compared: at 2.5 the variance of a variance would be infinite."""

SWEEP = {"seeds": 2, "pipelines.clicks.epsilon": [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]}

Answer = dict[str, Any]  # JSON


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is run.

    The baseline is timed on fewer users than ours and counted per event: with as many, its queue
    of events would be deeper and each event dearer. A point of the pool's sweep takes some 1.5
    CPU-s: a worker's start takes about 1, which smaller points would not be worth.
    """

    users: int = 100_000
    days: int = 7
    baseline_users: int = 4_000
    repeats: int = 3
    many_users: int = 1_000_000
    many_repeats: int = 2
    pool_users: int = 40_000
    pool_repeats: int = 3


QUICK = Sizes(20_000, 7, 1_000, 1, 200_000, 1, 10_000, 1)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table; without a target it is information."""

    name: str
    value: float
    target: str = ""
    is_met: bool | None = None

    @property
    def verdict(self) -> str:
        """Say whether the target is met."""
        return {None: "", True: "met", False: "missed"}[self.is_met]


def _document(users: int, days: int, **changes: object) -> str:
    """Return a scenario; JSON is YAML too.

    The adversary's canaries are not part of what is measured: there are as few as allowed.
    """
    clicks = {"form": "one-click", "epsilon": 1.0, "canaries": 1000}
    document = {
        "name": "bench-world",
        "question": "What does it cost?",
        "seed": 1,
        "days": days,
        "population": {"users": users},
        "pipelines": {"clicks": clicks},
    }
    return json.dumps(document | changes)


def _measured(command: Sequence[str | Path]) -> tuple[str, Answer]:
    """Run a command; return its output, and what it and its children took.

    Its peak is ``ru_maxrss``, which would also count this process's, but that is smaller.
    """
    start = time.perf_counter()
    with subprocess.Popen(  # noqa: S603  our own command
        [sys.executable, *command],
        cwd=ROOT,
        env=os.environ | ONE_THREAD,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None  # noqa: S101  narrows a type
        output = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} failed with exit code {process.returncode}")
    took = {"process_cpu_s": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss * 1024 / 1e6}
    return output, took | {"wall_s": time.perf_counter() - start}


def _case(name: str, scenario: str) -> Answer:
    """Run a case in a fresh process."""
    print(f"measuring {name} of {scenario}", file=sys.stderr)
    output, took = _measured(("-m", "bench.world_cases", name, scenario))
    answer: Answer = {"scenario": json.loads(scenario)} | took | json.loads(output)
    return answer


def _run(scenario: str, jobs: int) -> Answer:
    """Let the command line run a scenario, from the file to the report."""
    print(f"running {jobs=} {scenario}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "scenario.yaml"), Path(folder, "run")
        file.write_text(scenario)
        options = ("--jobs", str(jobs), "--out", out)
        _, took = _measured(("-m", "noisefloor_sim.cli", "run", file, *options))
        card = json.loads((out / "manifest.json").read_text())
    if took["process_cpu_s"] < card["cpu_s"]:
        raise RuntimeError("workers that are not children of the run are not counted here")
    of_points = {"points": card["points"], "points_cpu_s": card["cpu_s"]}
    return {"scenario": json.loads(scenario), "jobs": jobs} | took | of_points


def _startup_cpu_s() -> float:
    """Return the CPU time that the command line's imports take, which every run begins with."""
    imports = ("-c", "import noisefloor_sim.cli, noisefloor_sim.cli.run_commands")
    return _least([_measured(imports)[1] for _ in range(3)], "process_cpu_s")


def _least(answers: Sequence[Answer], key: str) -> float:
    return float(min(answer[key] for answer in answers))


def _rate(answers: Sequence[Answer]) -> float:
    """Return events per CPU-second, of the best repeat."""
    return float(max(answer["events"] / answer["cpu_s"] for answer in answers))


def _speed(sizes: Sizes) -> tuple[list[Figure], Answer]:
    """Time ours and the baseline in turns."""
    users = {"engine": sizes.users, "baseline": sizes.baseline_users}
    raw: dict[str, list[Answer]] = {name: [] for name in users}
    for _ in range(sizes.repeats):
        for name, answers in raw.items():
            answers.append(_case(name, _document(users[name], sizes.days)))
    ours, theirs = _rate(raw["engine"]), _rate(raw["baseline"])
    baseline = f"one SimPy process per user ({sizes.baseline_users:,} users, {sizes.days} days)"
    figures = [
        Figure(f"events per CPU-s, ours ({sizes.users:,} users, {sizes.days} days)", ours),
        Figure(f"events per CPU-s, {baseline}", theirs),
        Figure("  ours over theirs", ours / theirs, ">= 30", ours / theirs >= SPEED_TARGET),
    ]
    return figures, {"speed": raw}


def _people(users: int) -> Answer:
    return {"users": users, "engagement": {"tail_exponent": LIGHT_TAIL}}


def _agreement(sizes: Sizes) -> Answer:
    """Compare what users do in ours and in the baseline, in standard errors."""
    ours, theirs = (
        _case(f"{name}_moments", _document(users, sizes.days, population=_people(users)))
        for name, users in (("engine", sizes.users), ("baseline", sizes.baseline_users))
    )
    rows = []
    for name in ("impressions", "clicks", "reports"):
        for moment in ("mean", "variance"):
            error = f"{moment}_se"
            us, them = ours[name], theirs[name]
            z = (us[moment] - them[moment]) / math.hypot(us[error], them[error])
            both = {"ours": us[moment], "ours_se": us[error]}
            both |= {"baseline": them[moment], "baseline_se": them[error], "z": z}
            verdict = "met" if abs(z) < LARGEST_Z else "missed"
            rows.append({"what": f"{name}, {moment}"} | both | {"verdict": verdict})
    return {"agreement": rows, "moments": {"ours": ours, "baseline": theirs}}


def _million(sizes: Sizes) -> tuple[list[Figure], Answer]:
    """Run many users and a tenth of them for one day, from a scenario file to the report."""
    few_users = sizes.many_users // 10
    few = [_run(_document(few_users, 1), 1) for _ in range(sizes.repeats)]
    many = [_run(_document(sizes.many_users, 1), 1) for _ in range(sizes.many_repeats)]
    peak = max(answer["peak_mb"] for answer in many)
    few_s, many_s = (_least(answers, "process_cpu_s") for answers in (few, many))
    startup = _startup_cpu_s()
    growth, bare = many_s / few_s, _least(many, "points_cpu_s") / _least(few, "points_cpu_s")
    is_small, is_linear = peak < MEMORY_TARGET_MB, growth <= GROWTH_TARGET
    figures = [
        Figure(f"peak MB ({sizes.many_users:,} users, 1 day)", peak, "< 500", is_small),
        Figure(f"CPU s, whole process ({sizes.many_users:,} users, 1 day)", many_s),
        Figure(f"CPU s, whole process ({few_users:,} users, 1 day)", few_s),
        Figure("  the one over the other", growth, "<= 10.5", is_linear),
        Figure("  the same for the simulation alone", bare),
        Figure("CPU s of start-up, part of each", startup),
    ]
    return figures, {"million": {"few": few, "many": many, "startup_cpu_s": startup}}


def _pool(sizes: Sizes) -> tuple[list[Figure], Answer]:
    """Run the same sweep with one worker and with two, in turns."""
    raw: dict[int, list[Answer]] = {1: [], 2: []}
    scenario = _document(sizes.pool_users, sizes.days, sweep=SWEEP)
    for _ in range(sizes.pool_repeats):
        for jobs, answers in raw.items():
            answers.append(_run(scenario, jobs))
    cpu_s, wall_s = (
        {jobs: _least(answers, key) for jobs, answers in raw.items()}
        for key in ("process_cpu_s", "wall_s")
    )
    ratio, points = cpu_s[1] / cpu_s[2], raw[1][0]["points"]
    what = f"{points} points of {sizes.pool_users:,} users, {sizes.days} days"
    figures = [
        Figure(f"CPU s of one point ({what})", _least(raw[1], "points_cpu_s") / points),
        Figure("CPU s, 1 worker", cpu_s[1]),
        Figure("CPU s, 2 workers, children included", cpu_s[2]),
        Figure("  CPU time with 1 worker over 2", ratio, ">= 0.85", ratio >= POOL_TARGET),
        Figure("  wall-clock time with 1 worker over 2", wall_s[1] / wall_s[2]),
    ]
    return figures, {"pool": {str(jobs): answers for jobs, answers in raw.items()}}


def _printed_figures(figures: Sequence[Figure]) -> str:
    header = ("figure", "measured", "target", "verdict")
    rows = [(f.name, figure(f.value), f.target, f.verdict) for f in figures]
    return aligned(header, rows)


def _printed_agreement(rows: Sequence[Answer]) -> str:
    header = ("per user-day", "ours", "s.e.", "baseline", "s.e.", "z", "target", "verdict")
    keys, target = ("ours", "ours_se", "baseline", "baseline_se"), f"|z| < {LARGEST_Z:g}"
    lines = []
    for row in rows:
        figures = [figure(row[key], 4) for key in keys]
        lines.append((row["what"], *figures, f"{row['z']:+.2f}", target, row["verdict"]))
    return aligned(header, lines)


def _about() -> Answer:
    versions = {name: version(name) for name in PACKAGES} | {"python": platform.python_version()}
    return {"versions": versions, "cores": os.cpu_count(), "machine": platform.machine()}


def _print(results: Answer, figures: Sequence[Figure]) -> None:
    print("The world: CPU time, best of the repeats, each in a fresh process, one thread")
    print("An event is a page view, impression, click or report decided for one user")
    print(f"Versions: {json.dumps(results['versions'])}")
    if results["quick"]:
        print("Warning: at these sizes constants dominate; judge by the full ones.")
    print(_printed_figures(figures))
    print(f"\nOurs and the baseline, engagement with tail exponent {LIGHT_TAIL:g} so that the")
    print("error of a variance is finite; errors over users, whose days are not independent")
    print(_printed_agreement(results["agreement"]))


def measure(*, quick: bool) -> Answer:
    """Measure everything, print the tables, and return the raw numbers."""
    sizes = QUICK if quick else Sizes()
    results: Answer = {"quick": quick, "sizes": asdict(sizes)} | _about() | _agreement(sizes)
    figures: list[Figure] = []
    for part in (_speed, _million, _pool):
        more, raw = part(sizes)
        figures += more
        results |= raw
    _print(results, figures)
    return results | {"figures": [asdict(f) | {"verdict": f.verdict} for f in figures]}


def write(results: Answer, out: Path) -> None:
    """Write the raw numbers."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(results, indent=1) + "\n")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer users and repeats")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    write(measure(quick=arguments.quick), arguments.out)


if __name__ == "__main__":
    main()
