"""How many classes should an attribute be cut into? The public rule beside hindsight.

Ten-fold (five-fold on real choosing tables), on the device, by joint-bayes. First the choosing
tables (``choosing_tables.py``), on which the steps of ``sizing.joint_choice`` were set; then those
that judge the rule: WDBC with public and with empirical ranges, Ionosphere, digits, diabetes
(above its median) and the three kinds of wine.

How the steps were set: by ``best_steps``, and by nothing else. Of all rules of at most three
steps over the numbers of classes of the grid it takes the one with the highest mean accuracy on
the choosing tables, families and epsilons weighing the same. It replaced steps that had been
settled by the judging tables as well (4, 5, 8 and 12 classes): these had 86.2 on Ionosphere at
epsilon 10, which the blind steps do not reach. Two settings of the learner were not chosen anew:
records that shares start from stay at 8 (2 did half a point better on the choosing tables and
three worse on WDBC), and where reports choose how far counts spread over neighbours, they choose
among spreads above 0 (0 lost 0.6 on the choosing tables at epsilon 5, and 1 on diabetes).
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np

# `python bench/class_counts.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.choosing_tables import ChoosingTable, Fold, choosing_tables, next_power
from bench.collection_data import load
from bench.table import aligned
from bench.worker import ROOT

from noisefloor.checks import Floats
from noisefloor.collection.encoding.discretisation import Discretiser
from noisefloor.collection.encoding.joint_response import JointResponse
from noisefloor.collection.encoding.report_columns import joint_rows
from noisefloor.collection.encoding.sizing import (
    joint_choice,
    joint_kept_share,
    joint_size,
)
from noisefloor.collection.learners.naive_bayes import Shrinkage, fit_tuples
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables.scaled_records import (
    Continuous,
    Label,
    Labels,
    ScaledRecords,
    ScaledSchema,
)

OUT = ROOT / "bench/results/class_counts.json"
EPSILONS = (1.0, 2.0, 5.0, 10.0)
SEEDS, JUDGING_SEEDS, PARTS = 12, 8, 10
GRID = (2, 3, 4, 5, 6, 8, 10, 12, 16)
THRESHOLDS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
"""Of plain records' worth, where a step may be."""

Accuracies = dict[float, Floats]
"""For each epsilon, one for each number of classes of the grid, in per cent."""


def score(fold: Fold, epsilon: float, classes: int, source: SeededSource) -> float:
    """Return the share of right labels of a model with a number of classes."""
    schema, train, test = fold
    labels, cut = len(schema.label.classes), Discretiser(schema, classes)
    chosen = joint_size(len(schema), classes, epsilon, labels)
    response = JointResponse(cut.sizes, chosen, epsilon, label_classes=labels)
    rows = joint_rows(cut.codes(train.values), train.labels)
    model = fit_tuples(response, response.randomise(rows, source), Shrinkage(cut))
    return float(np.mean(model.predict(test.values) == test.labels))


def accuracies(
    name: str, folds: Iterable[tuple[int, Fold]], epsilons: Sequence[float]
) -> Accuracies:
    """Return the mean accuracy for every epsilon and number of classes."""
    right = {epsilon: np.zeros(len(GRID)) for epsilon in epsilons}
    total = 0
    for place, (seed, fold) in enumerate(folds):
        total += len(fold[2])
        for epsilon, (at, classes) in product(epsilons, enumerate(GRID)):
            with new_run():
                source = SeededSource(seed, name, f"{epsilon:g}", classes, place)
                right[epsilon][at] += len(fold[2]) * score(fold, epsilon, classes, source)
    return {epsilon: 100 * found / total for epsilon, found in right.items()}


def choosing(table: ChoosingTable, seeds: int) -> Accuracies:
    """Score a choosing table; a large one has fewer seeds, for its figures vary less."""
    few = max(2, round(seeds / (1 + table.owners / 2500) / (2 if table.is_real else 1)))
    folds = ((seed, fold) for seed in range(few) for fold in table.folds(seed))
    return accuracies(name_of(table), folds, EPSILONS)


def name_of(table: ChoosingTable) -> str:
    return f"{table.family} {table.attributes} x {table.owners}"


def means(tables: Sequence[ChoosingTable], measured: Mapping[str, Accuracies]) -> list[list[str]]:
    """Return mean accuracies by epsilon, families weighing the same: by rule, and for each L."""
    rows = []
    for epsilon in EPSILONS:
        by_family: dict[str, list[Floats]] = {}
        for table in tables:
            every = measured[name_of(table)][epsilon]
            rule = joint_choice(table.owners, table.attributes, epsilon).classes
            found = np.array([every[GRID.index(rule)], every.max(), *every])
            by_family.setdefault(table.family, []).append(found)
        mean = np.mean([np.mean(one, axis=0) for one in by_family.values()], axis=0)
        rows.append([f"{epsilon:g}", *(f"{one:.1f}" for one in mean)])
    return rows


def best_steps(
    tables: Sequence[ChoosingTable], measured: Mapping[str, Accuracies]
) -> tuple[float, dict[float, int]]:
    """Return the mean accuracy of the best rule, and its classes by what is known at least."""
    cells = [(table, epsilon) for table in tables for epsilon in EPSILONS]
    known = np.array([_known(table, epsilon) for table, epsilon in cells])
    found = np.array([measured[name_of(table)][epsilon] for table, epsilon in cells])
    sizes = Counter(table.family for table in tables)
    weights = np.array([1 / sizes[table.family] for table, _ in cells])
    weights /= weights.sum()
    best: tuple[float, dict[float, int]] = (0.0, {})
    for count in (1, 2, 3):
        for chosen, steps in product(
            combinations(range(len(GRID)), count), combinations(THRESHOLDS, count - 1)
        ):
            places = np.array(chosen)[np.searchsorted(np.array(steps), known, side="right")]
            mean = float(weights @ found[np.arange(len(cells)), places])
            if mean > best[0]:
                best = mean, dict(zip((0, *steps), (GRID[at] for at in chosen), strict=True))
    return best


def _known(table: ChoosingTable, epsilon: float) -> float:
    """Return plain records' worth of an attribute in five classes."""
    chosen = joint_size(table.attributes, 5, epsilon)
    kept = joint_kept_share(chosen, 5, epsilon)
    return table.owners * chosen * kept**2 / table.attributes


def judging_tables() -> dict[str, tuple[ScaledSchema, ScaledRecords]]:
    """Return the tables that judge the rule."""
    from sklearn.datasets import load_diabetes, load_wine

    benchmark = {
        "wdbc, public ranges": load("wdbc-public"),
        "wdbc": load("wdbc"),
        "ionosphere": load("ionosphere"),
        "digits": load("digits"),
    }
    diabetes, wine = load_diabetes(scaled=False), load_wine()
    above = diabetes.target > np.median(diabetes.target)
    return {
        **{name: (data.schema, data.records) for name, data in benchmark.items()},
        "diabetes": _judged(diabetes.data, above, Label("label", "no", "yes")),
        "wine": _judged(wine.data, wine.target.astype(np.uint8), Label("kind", "0", "1", ("2",))),
    }


def _judged(values: Floats, labels: Labels, label: Label) -> tuple[ScaledSchema, ScaledRecords]:
    """Return numbers in [0, next power of two]."""
    highs = next_power(values.max(axis=0))
    attributes = tuple(Continuous(f"x{at}", 0.0, high) for at, high in enumerate(highs.tolist()))
    columns = [one.scale(values[:, at], "table") for at, one in enumerate(attributes)]
    return ScaledSchema(attributes, label), ScaledRecords(np.column_stack(columns), labels)


def judged(name: str, schema: ScaledSchema, records: ScaledRecords, seeds: int) -> Accuracies:
    """Score a judging table in ten parts."""

    def folds() -> Iterable[tuple[int, Fold]]:
        for seed in range(seeds if len(records) < 1000 else max(1, seeds // 4)):
            order = np.argsort(SeededSource(seed, name, "shuffle").words(len(records)))
            parts = np.array_split(order, PARTS)
            for place, part in enumerate(parts):
                rest = np.concatenate([*parts[:place], *parts[place + 1 :]])
                yield seed, (schema, records[rest], records[part])

    return accuracies(name, folds(), EPSILONS[1:])


def lines(
    name: str, sizes: tuple[int, int, int], found: Accuracies, baseline: float | None
) -> list[list[str]]:
    """Return rows of the table: the rule beside hindsight, and every number of classes."""
    owners, attributes, labels = sizes
    rows = []
    for epsilon, every in found.items():
        rule = joint_choice(owners, attributes, epsilon, labels).classes
        best = int(np.argmax(every))
        rows.append(
            [
                name,
                f"{epsilon:g}",
                "-" if baseline is None else f"{baseline:.1f}",
                f"{every[GRID.index(rule)]:.1f}",
                f"{rule}",
                f"{every[best]:.1f}",
                f"{GRID[best]}",
                *(f"{one:.1f}" for one in every),
            ]
        )
    return rows


HEADER = ["table", "eps", "majority", "by rule", "L", "hindsight", "L", *map(str, GRID)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of small choosing tables")
    parser.add_argument("--judging-seeds", type=int, default=JUDGING_SEEDS)
    parser.add_argument("--only", choices=("choose", "judge"), help="one half")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    start, results = time.process_time(), {}
    if arguments.only != "judge":
        tables = choosing_tables()
        measured = {name_of(table): choosing(table, arguments.seeds) for table in tables}
        print("Choosing tables, accuracy in per cent by number of classes:")
        rows = [
            row
            for table in tables
            for row in lines(
                name_of(table), (table.owners, table.attributes, 2), measured[name_of(table)], None
            )
        ]
        print(aligned(HEADER, rows), end="\n\n")
        print("Mean over families of choosing tables:")
        header = ["eps", "by rule", "hindsight", *map(str, GRID)]
        print(aligned(header, means(tables, measured)))
        mean, steps = best_steps(tables, measured)
        print(f"Best rule of at most three steps: {steps}, {mean:.2f} per cent on average.")
        results["choosing"] = {name: _plain(found) for name, found in measured.items()}
    if arguments.only != "choose":
        rows = []
        results["judging"] = {}
        for name, (schema, records) in judging_tables().items():
            found = judged(name, schema, records, arguments.judging_seeds)
            sizes = (len(records) * (PARTS - 1) // PARTS, len(schema), len(schema.label.classes))
            baseline = 100 * float(np.bincount(records.labels).max()) / len(records)
            rows += lines(name, sizes, found, baseline)
            results["judging"][name] = _plain(found)
        print("\nJudging tables:")
        print(aligned(HEADER, rows))
    print(f"{time.process_time() - start:.0f} CPU-s.")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def _plain(found: Accuracies) -> dict[str, list[float]]:
    return {f"{epsilon:g}": every.tolist() for epsilon, every in found.items()}


if __name__ == "__main__":
    main()
