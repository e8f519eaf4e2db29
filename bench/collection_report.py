"""The tables and sentences of `bench/collection.py`, all of them computed from its results."""

import importlib.util
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from bench.collection_baselines import CLASS_COUNTS, FIXED, LADDER
from bench.collection_data import PARTS, TABLES, load
from bench.gradient_settings import MECHANISMS
from bench.table import aligned

from noisefloor.collection.encoding import sizing
from noisefloor_sim.pipelines.plotting import student_interval

EPSILONS = (1.0, 2.0, 5.0, 10.0)
WAYS = ("a", "b")
ON_DEVICE = 1
FLOORS = {
    ("wdbc", "a"): (78, 91, 93),
    ("wdbc", "b"): (87, 92, 93),
    ("wdbc-public", "b"): (81,),
    ("ionosphere", "a"): (62, 77, 83),
    ("ionosphere", "b"): (67, 78, 86),
}
"""Accuracies to reach at epsilon 2, 5 and 10, in per cent."""


@dataclass(frozen=True, slots=True)
class Task:
    """One seed of one data set at one epsilon; at an endless one, without privacy."""

    name: str
    epsilon: float
    seed: int
    folds: int
    with_paper: bool


@dataclass(frozen=True, slots=True)
class Result:
    """Accuracies in per cent by method: of protected queries, and on the device."""

    task: Task
    accuracies: dict[str, tuple[float, float]]
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Cases:
    """All seeds of one data set at one epsilon, and of learning on it without privacy."""

    name: str
    epsilon: float
    results: Sequence[Result]
    plain: Sequence[Result]

    @property
    def majority(self) -> float:
        """The share of the largest label."""
        return load(self.name).majority

    @property
    def size(self) -> sizing.ReportSize:
        """What the public rule chooses for nine of ten parts."""
        table = load(self.name)
        owners = len(table.records) - -(-len(table.records) // PARTS)
        labels = len(table.schema.label.classes)
        return sizing.joint_choice(owners, len(table.schema), self.epsilon, labels)

    def has(self, method: str) -> bool:
        """Whether a method was run."""
        return method in self.results[0].accuracies

    def of(self, method: str, way: int = ON_DEVICE) -> list[float]:
        """Return the accuracies of a method, by seed."""
        return [result.accuracies[method][way] for result in self.results]

    def shown(self, method: str, way: int = ON_DEVICE) -> str:
        """Return mean and interval; a star where the mean is not above the majority."""
        if not self.has(method):
            return "-"
        values = self.of(method, way)
        return interval(values) + ("" if float(np.mean(values)) > self.majority else "*")

    def best(self, methods: Iterable[str], way: int = ON_DEVICE) -> str:
        """Return the method of the highest mean, in hindsight."""
        return max(methods, key=lambda name: float(np.mean(self.of(name, way))))

    @property
    def hindsight(self) -> str:
        """Ours at the class count that turned out best."""
        return self.best(f"jNB+ {count}" for count in CLASS_COUNTS)

    def best_of_paper(self, way: int) -> str:
        """The paper's setting that turned out best; empty where none was run."""
        settings = [name for name in self.results[0].accuracies if name.startswith("DR.")]
        return self.best(settings, way) if settings else ""


def interval(values: Sequence[float]) -> str:
    """Return the mean and half the width of Student's interval."""
    low, high = student_interval(values)
    reach = "" if math.isinf(high) else f" +-{(high - low) / 2:.1f}"
    return f"{np.mean(values):.1f}{reach}"


def paired(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """Return the interval of the difference."""
    return student_interval([one - other for one, other in zip(ours, theirs, strict=True)])


def cases_of(results: Iterable[Result]) -> list[Cases]:
    """Return the results of each data set and epsilon, by seed."""
    found: dict[tuple[str, float], list[Result]] = {}
    for result in sorted(results, key=lambda one: one.task.seed):
        found.setdefault((result.task.name, result.task.epsilon), []).append(result)
    return [
        Cases(name, epsilon, found[name, epsilon], found[name, math.inf])
        for name in TABLES
        for epsilon in EPSILONS
        if (name, epsilon) in found
    ]


def baseline_row(one: Cases) -> list[str]:
    """Return a line of the first table."""
    plain = [interval([row.accuracies[name][1] for row in one.plain]) for name in PLAIN]
    paper = one.best_of_paper(ON_DEVICE)
    return [
        one.name,
        f"{one.epsilon:g}",
        f"{one.majority:.1f}",
        *plain,
        f"{one.size.chosen} x {one.size.classes}",
        one.shown("jNB+"),
        one.shown("jNB"),
        f"{one.shown(one.hindsight)} at {one.hindsight.removeprefix('jNB+ ')}",
        *(one.shown(name) for name in BASELINES),
        one.shown(paper),
    ]


PLAIN = ("plain NB", "plain LR")
BASELINES = ("sampled joint", "sampled joint, rule", "sampled unary", "split joint", *MECHANISMS)
RIVALS = (*BASELINES, "jNB")
BASELINE_HEADER = (
    *("data", "eps", "majority", "no privacy: NB", "LR"),
    *("rule: k x L", "jNB+ by rule", "jNB by rule", "jNB+ in hindsight"),
    *("sampled, 4", "sampled, rule's L", "unary, 4", "split joint, 4"),
    *("SGD PrivUnit", "SGD hybrid", "paper in hindsight"),
)


def ladder_row(one: Cases) -> list[str]:
    """Return a line of the second table."""
    return [one.name, f"{one.epsilon:g}", *(one.shown(name) for name, _ in LADDER)]


def gains(cases: Sequence[Cases], before: str, after: str) -> tuple[float, float]:
    """Return the mean over data sets of a paired gain, and its standard error over seeds."""
    means, squares = [], []
    for one in cases:
        apart = np.subtract(one.of(after), one.of(before))
        means.append(float(apart.mean()))
        squares.append(float(apart.var(ddof=1)) / len(apart) if len(apart) > 1 else math.inf)
    return float(np.mean(means)), math.sqrt(sum(squares)) / len(cases)


def attribution(cases: Sequence[Cases]) -> str:
    """Say what each change gained at one epsilon, on average over the data sets."""
    names = [name for name, _ in LADDER]
    start = np.mean([np.mean(one.of(names[0])) for one in cases])
    end = np.mean([np.mean(one.of(names[-1])) for one in cases])
    parts = [
        f"{_gain(cases, before, after)} by {what}"
        for (before, _), (after, what) in pairwise(LADDER)
    ]
    best = np.mean([np.mean(one.of(one.hindsight)) for one in cases])
    return (
        f"Epsilon {cases[0].epsilon:g}, mean of {len(cases)} data sets"
        f" (+- 1.96 standard errors over seeds): from {start:.1f}"
        f" ({LADDER[0][1]}, {FIXED} classes) to {end:.1f}: {'; '.join(parts)}."
        f" The best class count in hindsight would add {best - end:+.1f}."
    )


def _gain(cases: Sequence[Cases], before: str, after: str) -> str:
    mean, error = gains(cases, before, after)
    return f"{mean:+.1f}" if math.isinf(error) else f"{mean:+.1f} +-{1.96 * error:.1f}"


def losses(cases: Sequence[Cases]) -> list[str]:
    """Say where a baseline is better than ours by rule, beyond its paired interval."""
    found = []
    for one in cases:
        for name in RIVALS:
            low, high = paired(one.of("jNB+"), one.of(name))
            if high < 0:
                found.append(f"{one.name} at {one.epsilon:g}: {name} by {-high:.1f} to {-low:.1f}")
    return found


def paper_row(one: Cases, way: int) -> list[str]:
    """Return a line of the comparison with the paper."""
    best = one.best_of_paper(way)
    theirs = one.of(best, way)
    line = [one.name, f"{one.epsilon:g}", WAYS[way], f"{one.majority:.1f}"]
    line += [f"{one.shown(best, way)} {best}"]
    for method in ("jNB+", "jNB", "jSVM"):
        low, high = paired(one.of(method, way), theirs)
        line += [one.shown(method, way), f"[{low:+.1f}, {high:+.1f}]"]
    floors = dict(zip(EPSILONS[1:], FLOORS.get((one.name, WAYS[way]), ()), strict=False))
    return [*line, str(floors.get(one.epsilon, "-"))]


def other_row(one: Cases, way: int) -> list[str]:
    """Return what else was measured: learners and collectors that did not come out first."""
    names = ("linear", "forward", "wave", "paper by rule", "jSVM")
    cells = [one.shown(name, way) for name in names]
    return [one.name, f"{one.epsilon:g}", WAYS[way], *cells]


def chosen_on() -> str:
    """Return what the rule for class counts was chosen on, as the platform or bench states it."""
    stated: str | None = sizing.__doc__
    if importlib.util.find_spec("bench.class_counts"):
        stated = importlib.import_module("bench.class_counts").__doc__
    return str(stated)


def print_report(results: Sequence[Result]) -> None:
    """Print all tables and sentences."""
    cases = cases_of(results)
    print("On the device, per cent of true labels +- half of Student's 95 % interval over seeds.")
    print(aligned(BASELINE_HEADER, [baseline_row(one) for one in cases]), end="\n\n")
    print(
        "* not above the majority. k x L: attributes in an answer, classes of each, by the rule."
    )
    print(
        "In hindsight: the best of the class counts", *CLASS_COUNTS, "(paper: of 28 settings) by"
    )
    print("the accuracy that is shown; an upper limit, and no result.")
    print(f"What the rule was chosen on: {chosen_on()}")
    print("What LDP-SGD was chosen on: bench/choosing_tables.py without Adult.", end="\n\n")
    print("The ladder: from left to right one change at a time.")
    header = ["data", "eps", *(name for name, _ in LADDER)]
    print(aligned(header, [ladder_row(one) for one in cases]), end="\n\n")
    for epsilon in EPSILONS:
        print(attribution([one for one in cases if one.epsilon == epsilon]))
    behind, compared = losses(cases), len(cases) * len(RIVALS)
    print(f"\nBetter than jNB+ by rule beyond the paired 95 % interval, of {compared} comparisons")
    print(f"(by chance {compared / 40:.0f}):", *(behind or ["none"]), sep="\n  ")
    print()
    _print_paper(cases)
    for name in dict.fromkeys(one.name for one in cases):
        seeds = next(len(one.results) for one in cases if one.name == name)
        print(f"{name}: {len(load(name).records)} records, {seeds} seeds. {load(name).note}")


def _print_paper(cases: Sequence[Cases]) -> None:
    with_paper = [one for one in cases if one.best_of_paper(0)]
    if with_paper:
        header = ["data", "eps", "ask", "majority", "paper's honest best, in hindsight"]
        header += ["jNB+", "over paper", "jNB", "over paper", "jSVM", "over paper", "floor"]
        print(aligned(header, [paper_row(one, way) for one in with_paper for way in (0, 1)]))
        print("(a) protected query, epsilon again; (b) on the device. Differences paired by seed.")
        print()
    header = [
        "data",
        "eps",
        "ask",
        "linear rule",
        "forward",
        "square wave",
        "paper by rule",
        "jSVM",
    ]
    rows = [other_row(one, way) for one in cases if one.has("wave") for way in (0, 1)]
    if rows:
        print("Also measured, all sizes from public rules:")
        print(aligned(header, rows), end="\n\n")
