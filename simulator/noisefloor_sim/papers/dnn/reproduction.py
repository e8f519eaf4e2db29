"""What ``noisefloor reproduce dnn`` does, behind the command line."""

import time
from dataclasses import replace
from pathlib import Path

from noisefloor.checks import check_count, check_extra
from noisefloor.tables import LABEL, OneHot
from noisefloor_sim.papers.dnn.claims import claims
from noisefloor_sim.papers.dnn.figures import (
    ADULT,
    FULL,
    QUICK,
    READINGS,
    TITLES,
    points_of,
    scores_by_point,
    variants,
)
from noisefloor_sim.papers.dnn.methods import (
    DEFAULT_SEED,
    FOLDS,
    DnnPlan,
    adult,
    run_point,
)
from noisefloor_sim.papers.dnn.page import page_of, warnings_of, whole_model
from noisefloor_sim.papers.intervals import Runs
from noisefloor_sim.papers.output import check_folder, reproduction_document, write_all
from noisefloor_sim.papers.verdict_table import print_verdicts, progress, versions
from noisefloor_sim.papers.verdicts import Judge, tests_in
from noisefloor_sim.runs import run_in_pool


def reproduce_dnn(
    *,
    quick: bool,
    jobs: int,
    out: Path,
    force: bool,
    seed: int = DEFAULT_SEED,
    long_folds: int | None = None,
    is_shuffled: bool = False,
) -> int:
    """Run every method, write the run directory, print the table; return the exit code.

    Args:
        quick: Whether few folds, epochs and epsilons are run.
        jobs: Worker processes.
        out: The run directory.
        force: Whether an existing one is replaced.
        seed: Of folds, training and noise.
        long_folds: On how many folds networks are also trained for the printed 500 epochs; as
            many as the plan says if left out.
        is_shuffled: Whether labels are permuted, so that nothing can be learnt.
    """
    check_count(seed, "seed", least=0)
    chosen = replace(QUICK if quick else FULL, seed=seed, is_shuffled=is_shuffled)
    if long_folds is not None:
        most = chosen.folds
        chosen = replace(chosen, long_folds=check_count(long_folds, "long_folds", 0, most))
    check_count(jobs, "jobs", most=1024)
    check_extra("reproduce dnn", "models", "torch", "safetensors")
    check_folder(out, force=force)
    encoding = OneHot(adult().schema, LABEL)  # missing data are an error at once
    step = FOLDS / len(adult().codes[LABEL])
    parameters = chosen.training.shape(encoding.width, encoding.classes).count
    start, cpu = time.monotonic(), time.process_time()
    runs = run_all(chosen, jobs)
    listed = variants(chosen)
    judge = Judge(tests_in(listed), {ADULT: step}, overlap=1 / (FOLDS - 1), largest=1)
    judged = judge.judge_variants(listed, runs)
    said = claims(chosen, parameters)
    manifest: dict[str, object] = {
        "seed": seed,
        "folds": chosen.folds,
        "epsilons": list(chosen.epsilons),
        "folds_of_500_epochs": chosen.long_folds,
        "labels": "shuffled" if is_shuffled else "as they are",
        "epochs": chosen.training.epochs,
        "learning_rate": chosen.training.learning_rate,
        "parameters": parameters,
        "jobs": jobs,
    }
    manifest |= versions("numpy", "scipy", "torch")
    card = [(name, str(value)) for name, value in manifest.items()]
    page = page_of(judged, runs, plan=chosen, claims=said, parameters=parameters, card=card)
    took = {"wall_s": time.monotonic() - start, "own_cpu_s": time.process_time() - cpu}
    document = reproduction_document("DNN", READINGS, judge, judged, runs, seed=seed)
    write_all(out, document, judged, page=page, manifest=manifest | took)
    print_verdicts(judged, TITLES, 3)
    for line in (whole_model(said, parameters), *warnings_of(chosen)):
        print(line)
    print(f"took {took['wall_s']:.0f} s; report: {out / 'report.html'}")
    return 0


def run_all(plan: DnnPlan, jobs: int) -> Runs:
    """Return what every method reaches at every epsilon, fold by fold."""
    # Fold by fold, so that a worker finds the plain network of a fold already trained.
    tasks = [
        (key, epsilon, place, plan)
        for place in range(plan.folds)
        for key, epsilon in points_of(plan, place)
    ]
    found = {}
    with progress() as bar:
        task = bar.add_task("methods x folds", total=len(tasks))
        for (key, epsilon, place, _), reached in run_in_pool(run_point, tasks, jobs):
            found[key, epsilon, place] = (reached.accuracy, reached.macro_f1)
            bar.advance(task)
    return scores_by_point(found)
