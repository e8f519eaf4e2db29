"""What ``noisefloor reproduce supml`` does, behind the command line."""

import platform
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from noisefloor.checks import check_count
from noisefloor.collection.claims import paper_claims
from noisefloor_sim.reproduce.page import number, page_of, sentence
from noisefloor_sim.reproduce.running import run, tasks_of
from noisefloor_sim.reproduce.sources import SOURCES, TITLES
from noisefloor_sim.reproduce.supml import extra_settings, items
from noisefloor_sim.reproduce.verdicts import DEPENDS, NOT, REPRODUCED, Judged, judge
from noisefloor_sim.reproduce.writing import check_folder, write_all

SEEDS, QUICK_SEEDS = 24, 4
CROSSING_FACTOR = 4
"""So many times as many seeds where curves cross: which attributes chance picks moves the gap of
two curves by three points, and the crossing with it."""

_STYLES = {REPRODUCED: "green", DEPENDS: "yellow", NOT: "red"}


def supml(*, seeds: int, jobs: int, out: Path, force: bool) -> int:
    """Run the paper's figures, write the run directory, print the table; return the exit code."""
    check_count(seeds, "seeds", least=2, most=10_000)
    check_count(jobs, "jobs", most=1024)
    check_folder(out, force=force)
    sources = {name: load() for name, load in SOURCES.items()}  # what is missing is told at once
    listed = items()
    settings = list(dict.fromkeys([one for item in listed for one in item.settings()]))
    settings = list(dict.fromkeys([*settings, *extra_settings()]))
    crossing = [one for item in listed if item.is_crossing for one in item.settings()]
    start, cpu = time.monotonic(), time.process_time()
    with _progress() as bar:
        more = range(seeds, CROSSING_FACTOR * seeds)
        total = tasks_of(settings, seeds) + tasks_of(crossing, len(more))
        task = bar.add_task("seeds x data sets", total=total)
        runs = run(settings, range(seeds), jobs=jobs, done=lambda: bar.advance(task))
        for one, values in run(crossing, more, jobs=jobs, done=lambda: bar.advance(task)).items():
            runs[one] += values
    judged = [judge(item, runs) for item in listed]
    majority = {
        name: 100 * max(float(np.mean(it.records.labels)), 1 - float(np.mean(it.records.labels)))
        for name, it in sources.items()
    }
    claims = paper_claims(sources["wdbc"].schema, count=2, classes=2, epsilon=10.0, queries=3)
    manifest = _manifest(seeds, jobs, len(settings))
    card = [(name, str(value)) for name, value in manifest.items()]
    page = page_of(judged, runs, claims=claims, majority=majority, card=card)
    took = {"wall_s": time.monotonic() - start, "own_cpu_s": time.process_time() - cpu}
    write_all(out, judged, runs, page=page, majority=majority, manifest=manifest | took)
    _print(judged)
    print(f"report: {out / 'report.html'}")
    return 0


def _manifest(seeds: int, jobs: int, settings: int) -> dict[str, object]:
    names = ("noisefloor", "numpy", "scipy", "scikit-learn")
    return {
        "seeds": seeds,
        "settings": settings,
        "jobs": jobs,
        "python": platform.python_version(),
    } | {name: version(name) for name in names}


def _progress() -> Progress:
    """Return a bar with the time left; nothing is shown when nobody looks."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def _print(judged: Sequence[Judged]) -> None:
    # Off a terminal nothing may be cut: a log has no width.
    console = Console(width=None if sys.stdout.isatty() else 160)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("data", "figure", "printed", "ours", "95 % of the mean", "fits", "verdict"):
        table.add_column(name, no_wrap=name not in ("figure",))
    for one in judged:
        table.add_row(
            TITLES[one.item.data], one.item.what, one.item.printed, "", "", "",
            Text(one.verdict, style=_STYLES[one.verdict]),
        )  # fmt: skip
        for found in one.found:
            ends = f"{number(found.low)} to {number(found.high)}"
            fits = "yes" if found.agrees else "no"
            table.add_row("", f"  {found.reading}", "", number(found.value), ends, fits, "")
    console.print(table)
    console.print()
    console.print(sentence(judged), highlight=False, soft_wrap=True)
