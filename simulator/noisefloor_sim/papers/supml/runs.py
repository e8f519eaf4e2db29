"""Run settings over seeds, in a pool of processes.

All settings of a seed share its random draws: the same shuffle, and nested random attributes. So
differences between settings are paired.

One way to run the paper's pipeline, small enough to hand to a worker.

The paper's two data sets, each with the C that the paper uses for it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from noisefloor.collection import CollectionPlan, collecting, cross_validate, ionosphere, wdbc
from noisefloor.collection.encoding import Discretiser, PrintedDiscretiser
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables import ScaledRecords, ScaledSchema
from noisefloor_sim.runs import run_in_pool


@dataclass(frozen=True, slots=True, eq=False)
class DataSource:
    """Records with their schema, and the C that the paper uses for them."""

    schema: ScaledSchema
    records: ScaledRecords
    weight: float


SOURCES: Mapping[str, Callable[[], DataSource]] = {
    "wdbc": lambda: DataSource(*wdbc(), 2.1),
    "ionosphere": lambda: DataSource(*ionosphere(), 3.9),
}
TITLES = {"wdbc": "WDBC", "ionosphere": "Ionosphere", "both": "both"}

Classes: TypeAlias = Discretiser | PrintedDiscretiser


@dataclass(frozen=True, slots=True)
class SupmlSetting:
    """What is run on a data set.

    Attributes:
        data: A key of ``SOURCES``.
        select: all, rand, pm or wa.
        k: Attributes that are collected.
        size: Classes of each (the paper's L).
        epsilon: Of training, and of each question.
        train: What owners send: raw, WA, WALDP, PM or PM-sampled.
        test: What those who ask send.
        form: Of the selection by products; the paper averages the products.
        label: How PM sends it.
        is_printed: Whether classes and responses are the paper's, with their class 0; the
            corrected ones otherwise.
    """

    data: str
    select: str = "all"
    k: int = 0
    size: int = 2
    epsilon: float = 0.0
    train: str = "WALDP"
    test: str = "WALDP"
    form: collecting.ScoreForm = "prod"
    label: collecting.LabelBy = "piecewise"
    is_printed: bool = True

    @property
    def has_classes(self) -> bool:
        """Whether classes are formed at all, so that printed and corrected differ."""
        return self.select == "wa" or bool({self.train, self.test} & {"WA", "WALDP"})

    def plan(self, schema: ScaledSchema, weight: float) -> CollectionPlan:
        """Return the plan to run."""
        make = PrintedDiscretiser if self.is_printed else Discretiser
        classes = make(schema, self.size)
        return CollectionPlan(
            self._selector(classes),
            self._collector(self.train, classes),
            self._collector(self.test, classes),
            weight=weight,
        )

    def _selector(self, classes: Classes) -> collecting.Selector:
        if self.select == "all":
            return collecting.EveryAttribute()
        if self.select == "rand":
            return collecting.RandomSelection(self.k)
        if self.select == "pm":
            return collecting.PiecewiseSelection(self.k, self.epsilon)
        if self.select == "wa":
            return collecting.WeakSelection(self.k, classes, self.form)
        raise BadParameter("select", self.select, "to be all, rand, pm or wa")

    def _collector(self, level: str, classes: Classes) -> collecting.Collector:
        if level == "raw":
            return collecting.RawCollector()
        if level == "WA":
            return collecting.WeakCollector(classes)
        if level == "WALDP":
            if isinstance(classes, PrintedDiscretiser):
                return collecting.PrintedCollector(classes, self.epsilon, "symbols")
            return collecting.UnifiedCollector(classes, self.epsilon)
        if level == "PM":
            return collecting.PiecewiseCollector(self.epsilon, self.label)
        if level == "PM-sampled":
            return collecting.SampledPiecewiseCollector(self.epsilon, self.label)
        raise BadParameter("level", level, "to be raw, WA, WALDP, PM or PM-sampled")


Accuracies = dict[SupmlSetting, list[float]]
"""In percent, one for each seed in order."""


def run(
    counts: Mapping[SupmlSetting, int],
    seed: int,
    *,
    jobs: int,
    known: Mapping[SupmlSetting, Sequence[float]] = MappingProxyType({}),
    done: Callable[[int], None] = lambda total: None,
) -> Accuracies:
    """Return the accuracy of every setting for as many seeds as it is to have.

    Args:
        counts: How many seeds each setting has.
        seed: The first; the others count on from it.
        jobs: Worker processes; one runs here.
        known: What earlier runs from the same first seed reached, which is not run again.
        done: Called after each seed on each data set, with how many of these there are.
    """
    needed: dict[tuple[int, str], list[SupmlSetting]] = {}
    found: dict[tuple[SupmlSetting, int], float] = {}
    for setting, count in counts.items():
        for place in range(count):
            if place < len(known.get(setting, ())):
                found[setting, place] = known[setting][place]
            else:
                needed.setdefault((place, setting.data), []).append(setting)
    tasks = [
        (seed + place, data, tuple(some))
        for (place, data), some in sorted(needed.items(), key=lambda one: one[0])
    ]
    for (at, _, some), accuracies in run_in_pool(run_seed, tasks, jobs):
        found |= {(one, at - seed): it for one, it in zip(some, accuracies, strict=True)}
        done(len(tasks))
    return {one: [found[one, place] for place in range(count)] for one, count in counts.items()}


def run_seed(seed: int, data: str, settings: Sequence[SupmlSetting]) -> list[float]:
    """Return the accuracy of each setting on one data set, in percent; a worker's whole job."""
    source = SOURCES[data]()
    accuracies = []
    for setting in settings:
        plan = setting.plan(source.schema, source.weight)
        with new_run():
            score = cross_validate(
                source.records, plan, SeededSource(seed, "supml", data), select_from_all=True
            )
        # As it is stored, so that what is read back is what was run.
        accuracies.append(round(100 * score.accuracy, 6))
    return accuracies
