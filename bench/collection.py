"""What does a protected record teach? Ours by its public rule, beside every baseline.

Each seed shuffles a data set into ten parts; every method trains on nine and answers for the
tenth, scored against the true labels. A training owner spends epsilon in all; a protected query
(a) spends epsilon again; (b) asks the device, with the published model, and spends nothing. The
first tables show (b).

Side by side: the class count of the platform's public rule; the best one in hindsight, which is
chosen by the accuracy that is reported and is no result; surveys of one sampled attribute with
four classes, fixed beforehand (sampled-response naive Bayes); LDP-SGD by PrivUnit and by the
hybrid mechanism, whose settings were chosen on other tables; learning without privacy; the share
of the largest label. The ladder goes from epsilon split over all attributes to ours, one change at
a time, and a sentence says what each change gained.

The paper (DR.Rand, or DR.PM with both phases charged; WALDP to train; WALDP or the device to ask)
is given the best of 28 settings, chosen in hindsight as well. Differences are paired by seed.

Prints tables and writes every number; it reports, and does not fail on a missed target.
"""

import argparse
import json
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

# `python bench/collection.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.collection_baselines import baselines, without_privacy
from bench.collection_data import PARTS, TABLES, load
from bench.collection_methods import Answers, Fold, every_answer, folds_of
from bench.collection_report import EPSILONS, Result, Task, print_report
from bench.worker import ROOT

from noisefloor.randomness import SeededSource, new_run

OUT = ROOT / "bench/results/collection.json"
SEEDS, QUICK_SEEDS, QUICK_FOLDS = 24, 3, 2


def run(task: Task) -> Result:
    """Score every method on the parts of one shuffle; the shuffle is theirs together."""
    start = time.process_time()
    table = load(task.name)
    right: dict[str, list[int]] = {}
    from sklearn import config_context  # lazy: main does not need it

    # The checks of scikit-learn take as long as its fits of so few rows.
    with new_run(), config_context(assume_finite=True, skip_parameter_validation=True):
        shuffle = SeededSource(task.seed, task.name.partition("-")[0], "shuffle")
        order = np.argsort(shuffle.words(len(table.records)))
        parts = np.array_split(order, PARTS)
        folds = folds_of(table.schema, table.records, task.epsilon, table.cost, parts)
        asked = 0
        for at, fold in enumerate(islice(folds, min(table.folds, task.folds))):
            asked += len(fold.test)
            for name, said in answers(fold, task, at):
                if said.spent > task.epsilon + 1e-6:
                    raise AssertionError(f"{name} spends {said.spent}")
                hits = right.setdefault(name, [0, 0])
                hits[0] += int(np.count_nonzero(said.protected == fold.test.labels))
                hits[1] += int(np.count_nonzero(said.on_device == fold.test.labels))
    found = {
        name: (100 * one / asked, 100 * other / asked) for name, (one, other) in right.items()
    }
    return Result(task, found, time.process_time() - start)


def answers(fold: Fold, task: Task, at: int) -> Iterable[tuple[str, Answers]]:
    """Run the methods on a fold; at an endless epsilon, those without privacy."""
    if math.isinf(task.epsilon):
        return [(name, Answers(one, one, 0.0)) for name, one in without_privacy(fold)]
    name, _, bounds = task.name.partition("-")
    source = SeededSource(task.seed, name, bounds or "empirical", f"{task.epsilon:g}", at)
    ours = every_answer(fold, source, with_paper=task.with_paper)
    return [*ours, *baselines(fold, source.child("baselines"))]


def tasks_of(names: Sequence[str], seeds: int, *, folds: int, with_paper: bool) -> list[Task]:
    """Return all tasks, the largest tables first: they should not be waited for at the end."""
    order = sorted(names, key=lambda name: -len(load(name).records))
    return [
        Task(name, epsilon, seed, folds, with_paper and epsilon > 1 and load(name).cost > 0)
        for name in order
        for epsilon in (*reversed(EPSILONS), math.inf)
        for seed in range(-(-seeds // load(name).seeds))
    ]


def written(results: Sequence[Result]) -> str:
    """Return all figures as JSON, which has no infinity: without privacy, epsilon is null."""
    rows = [asdict(one) for one in results]
    for row in rows:
        if math.isinf(row["task"]["epsilon"]):
            row["task"]["epsilon"] = None
    return json.dumps(rows, indent=1)


def read(path: Path) -> list[Result]:
    """Return what ``written`` wrote."""
    results = []
    for row in json.loads(path.read_text()):
        task = row["task"] | ({"epsilon": math.inf} if row["task"]["epsilon"] is None else {})
        found = {name: (one, other) for name, (one, other) in row["accuracies"].items()}
        results.append(Result(Task(**task), found, row["cpu_s"]))
    return results


def main() -> None:
    """Run the tasks, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{QUICK_SEEDS} seeds, {QUICK_FOLDS} folds, without the paper's 28 settings",
    )
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--only", choices=TABLES, nargs="+", help="some data sets")
    parser.add_argument(
        "--without-paper", action="store_true", help="leave out the paper's 28 settings"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--read", type=Path, nargs="+", help="print again what was written")
    arguments = parser.parse_args()
    if arguments.read:
        print_report([result for path in arguments.read for result in read(path)])
        return
    seeds = arguments.seeds or (QUICK_SEEDS if arguments.quick else SEEDS)
    with_paper = not (arguments.quick or arguments.without_paper)
    folds = QUICK_FOLDS if arguments.quick else PARTS
    names = arguments.only or list(TABLES)
    tasks = tasks_of(names, seeds, folds=folds, with_paper=with_paper)
    start = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        results = pool.map(run, tasks, chunksize=1)
    print_report(results)
    spent = sum(result.cpu_s for result in results)
    print(f"{time.perf_counter() - start:.0f} s, {spent:.0f} CPU-s.")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(written(results))


if __name__ == "__main__":
    main()
