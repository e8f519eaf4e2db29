"""What ``noisefloor reproduce supml`` does, behind the command line."""

import time
from pathlib import Path

import numpy as np

from noisefloor.checks import check_count
from noisefloor.collection import paper_claims
from noisefloor.collection.learners import check_sklearn
from noisefloor_sim.papers.output import check_folder, reproduction_document, rows_of, write_all
from noisefloor_sim.papers.supml_figures import extra_settings, items
from noisefloor_sim.papers.supml_page import READINGS, page_of
from noisefloor_sim.papers.supml_runs import SOURCES, TITLES, run, tasks_of
from noisefloor_sim.papers.verdict_table import print_verdicts, progress, versions
from noisefloor_sim.papers.verdicts import judge

SEEDS, QUICK_SEEDS = 24, 4
CROSSING_FACTOR = 4
"""So many times as many seeds where curves cross: which attributes chance picks moves the gap of
two curves by three points, and the crossing with it."""


def reproduce_supml(*, seeds: int, jobs: int, out: Path, force: bool, seed: int = 0) -> int:
    """Run the paper's figures, write the run directory, print the table; return the exit code.

    Args:
        seeds: Worlds to average over.
        jobs: Worker processes.
        out: The run directory.
        force: Whether an existing one is replaced.
        seed: Of the first world; the others count on from it.
    """
    check_count(seeds, "seeds", least=2, most=10_000)
    check_count(seed, "seed", least=0)
    check_count(jobs, "jobs", most=1024)
    check_sklearn("reproduce supml")
    check_folder(out, force=force)
    sources = {name: load() for name, load in SOURCES.items()}  # missing data are an error at once
    listed = items()
    settings = list(dict.fromkeys([one for item in listed for one in item.settings()]))
    settings = list(dict.fromkeys([*settings, *extra_settings()]))
    crossing = [one for item in listed if item.is_crossing for one in item.settings()]
    start, cpu = time.monotonic(), time.process_time()
    with progress() as bar:
        first, more = (
            range(seed, seed + seeds),
            range(seed + seeds, seed + CROSSING_FACTOR * seeds),
        )
        total = tasks_of(settings, seeds) + tasks_of(crossing, len(more))
        task = bar.add_task("seeds x data sets", total=total)
        runs = run(settings, first, jobs=jobs, done=lambda: bar.advance(task))
        for one, values in run(crossing, more, jobs=jobs, done=lambda: bar.advance(task)).items():
            runs[one] += values
    judged = [judge(item, runs) for item in listed]
    majority = {
        name: 100 * max(float(np.mean(it.records.labels)), 1 - float(np.mean(it.records.labels)))
        for name, it in sources.items()
    }
    claims = paper_claims(sources["wdbc"].schema, count=2, classes=2, epsilon=10.0, queries=3)
    manifest: dict[str, object] = {"seed": seed, "seeds": seeds}
    manifest |= {"settings": len(settings), "jobs": jobs}
    manifest |= versions("numpy", "scipy", "scikit-learn")
    card = [(name, str(value)) for name, value in manifest.items()]
    page = page_of(judged, runs, claims=claims, majority=majority, card=card)
    took = {"wall_s": time.monotonic() - start, "own_cpu_s": time.process_time() - cpu}
    rows = rows_of(judged, majority)
    document = reproduction_document("SUP.ML", READINGS, judged, rows, runs, seed=seed)
    write_all(out, document, rows, page=page, manifest=manifest | took)
    print_verdicts(judged, TITLES)
    print(f"report: {out / 'report.html'}")
    return 0
