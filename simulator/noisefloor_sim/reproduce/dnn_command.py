"""What ``noisefloor reproduce dnn`` does, behind the command line."""

import time
from pathlib import Path

from noisefloor.checks import check_count, check_extra
from noisefloor.publication.adult import LABEL
from noisefloor.publication.examples import OneHot
from noisefloor_sim.reproduce.console import print_judged, progress, versions
from noisefloor_sim.reproduce.dnn import (
    FULL,
    QUICK,
    READINGS,
    TITLES,
    Point,
    items,
    points_of,
    scores_by_point,
)
from noisefloor_sim.reproduce.dnn_methods import Plan, adult, claims, run_point
from noisefloor_sim.reproduce.dnn_page import page_of, warnings_of, whole_model
from noisefloor_sim.reproduce.pool import finished
from noisefloor_sim.reproduce.verdicts import Runs, interval, judge
from noisefloor_sim.reproduce.writing import check_folder, rows_of, told_of, write_all


def dnn(*, quick: bool, jobs: int, out: Path, force: bool, plan: Plan | None = None) -> int:
    """Run every method, write the run directory, print the table; return the exit code."""
    chosen = plan or (QUICK if quick else FULL)
    check_count(jobs, "jobs", most=1024)
    check_extra("reproduce dnn", "models", "torch", "safetensors")
    check_folder(out, force=force)
    encoding = OneHot(adult().schema, LABEL)  # what is missing is told at once
    parameters = chosen.training.shape(encoding.width, encoding.classes).count
    start, cpu = time.monotonic(), time.process_time()
    runs = run_all(chosen, jobs)
    judged = [judge(item, runs) for item in items(chosen)]
    said = claims(chosen)
    manifest: dict[str, object] = {
        "folds": chosen.folds,
        "epsilons": list(chosen.epsilons),
        "epochs": chosen.training.epochs,
        "learning_rate": chosen.training.learning_rate,
        "parameters": parameters,
        "jobs": jobs,
    }
    manifest |= versions("numpy", "scipy", "torch")
    card = [(name, str(value)) for name, value in manifest.items()]
    page = page_of(judged, runs, plan=chosen, claims=said, parameters=parameters, card=card)
    took = {"wall_s": time.monotonic() - start, "own_cpu_s": time.process_time() - cpu}
    rows = rows_of(judged, {"adult": interval(runs[Point("majority")])[0]})
    told = told_of("DNN", READINGS, judged, rows, runs)
    write_all(out, told, rows, page=page, manifest=manifest | took)
    print_judged(judged, TITLES, 3)
    for line in (whole_model(said, parameters), *warnings_of(chosen)):
        print(line)
    print(f"took {took['wall_s']:.0f} s; report: {out / 'report.html'}")
    return 0


def run_all(plan: Plan, jobs: int) -> Runs:
    """Return what every method reaches at every epsilon, fold by fold."""
    # Fold by fold, so that a worker finds the plain network of a fold already trained.
    tasks = [
        (key, epsilon, place, plan)
        for place in range(plan.folds)
        for key, epsilon in points_of(plan)
    ]
    found = {}
    with progress() as bar:
        task = bar.add_task("methods x folds", total=len(tasks))
        for (key, epsilon, place, _), reached in finished(run_point, tasks, jobs):
            found[key, epsilon, place] = (reached.accuracy, reached.macro_f1)
            bar.advance(task)
    return scores_by_point(found)
