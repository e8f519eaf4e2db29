"""Run settings over seeds, in a pool of processes.

All settings of a seed share its random draws: the same shuffle, and nested random attributes. So
differences between settings are paired.

One way to run the paper's pipeline, small enough to hand to a worker.

The paper's two data sets, each with the C that the paper uses for it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from noisefloor.collection import CollectionPlan, collecting, cross_validate, ionosphere, wdbc
from noisefloor.collection.encoding import Discretiser
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
TITLES = {"wdbc": "WDBC", "ionosphere": "Ionosphere"}


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
        form: Of the selection by products.
        select_epsilon: Of the selection, where it has one; that of training if 0.
        label: How PM sends it.
    """

    data: str
    select: str = "all"
    k: int = 0
    size: int = 2
    epsilon: float = 0.0
    train: str = "WALDP"
    test: str = "WALDP"
    form: collecting.ScoreForm = "corr"
    select_epsilon: float = 0.0
    label: collecting.LabelBy = "piecewise"

    def plan(self, schema: ScaledSchema, weight: float) -> CollectionPlan:
        """Return the plan to run."""
        classes = Discretiser(schema, self.size)
        return CollectionPlan(
            self._selector(classes),
            self._collector(self.train, classes),
            self._collector(self.test, classes),
            weight=weight,
        )

    def _selector(self, classes: Discretiser) -> collecting.Selector:
        if self.select == "all":
            return collecting.EveryAttribute()
        if self.select == "rand":
            return collecting.RandomSelection(self.k)
        if self.select == "pm":
            return collecting.PiecewiseSelection(self.k, self.select_epsilon or self.epsilon)
        if self.select == "wa":
            return collecting.WeakSelection(self.k, classes, self.form)
        raise BadParameter("select", self.select, "to be all, rand, pm or wa")

    def _collector(self, level: str, classes: Discretiser) -> collecting.Collector:
        if level == "raw":
            return collecting.RawCollector()
        if level == "WA":
            return collecting.WeakCollector(classes)
        if level == "WALDP":
            return collecting.UnifiedCollector(classes, self.epsilon)
        if level == "PM":
            return collecting.PiecewiseCollector(self.epsilon, self.label)
        if level == "PM-sampled":
            return collecting.SampledPiecewiseCollector(self.epsilon, self.label)
        raise BadParameter("level", level, "to be raw, WA, WALDP, PM or PM-sampled")


Accuracies = dict[SupmlSetting, list[float]]
"""In percent, one for each seed in order."""


def run(
    settings: Iterable[SupmlSetting],
    seeds: Sequence[int],
    *,
    jobs: int,
    done: Callable[[], None] = lambda: None,
) -> Accuracies:
    """Return the accuracy of every setting for every seed.

    Args:
        settings: What to run, each once.
        seeds: One world each.
        jobs: Worker processes; one runs here.
        done: Called after each seed on each data set.
    """
    by_data: dict[str, list[SupmlSetting]] = {}
    for setting in dict.fromkeys(settings):
        by_data.setdefault(setting.data, []).append(setting)
    tasks = [(seed, data, tuple(some)) for seed in seeds for data, some in by_data.items()]
    found: dict[tuple[int, SupmlSetting], float] = {}
    for (seed, _, some), accuracies in run_in_pool(run_seed, tasks, jobs):
        found |= {(seed, one): it for one, it in zip(some, accuracies, strict=True)}
        done()
    return {one: [found[seed, one] for seed in seeds] for some in by_data.values() for one in some}


def tasks_of(settings: Iterable[SupmlSetting], seeds: int) -> int:
    """Return how often ``done`` will be called."""
    return seeds * len({setting.data for setting in settings})


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
        accuracies.append(100 * score.accuracy)
    return accuracies
