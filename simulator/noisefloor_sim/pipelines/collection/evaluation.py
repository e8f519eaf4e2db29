"""How often the model names the true label of records that nobody trained on."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.collection.encoding import Discretiser
from noisefloor.collection.learners import Shrinkage, fit, model_from_counts
from noisefloor.errors import NoisefloorError
from noisefloor.randomness import SeededSource
from noisefloor.tables import Continuous, Labels, ScaledRecords
from noisefloor.tasks import ClassifierTrainer
from noisefloor_sim.pipelines.api import Metric, SimulationContext
from noisefloor_sim.pipelines.collection.phases import CollectionPhases
from noisefloor_sim.pipelines.collection.synthetic_wearables import health_records
from noisefloor_sim.pipelines.scoring import proportion_metric
from noisefloor_sim.world import cohort_sizes

MOST_OPEN = 4_000
"""Training records of the model without privacy, where it is a machine: it takes their square."""

MOST_TESTED = 1 << 15
"""Test users who are scored: their accuracy is then known to half a per cent."""

_OTHERS = 1 << 14
"""People who tell what the accuracy of a model is, where they can be drawn."""

_OPEN_CLASSES = 12


@dataclass(slots=True)
class RecordSample:
    """ScaledRecords of users, each with its place in the data set."""

    records: list[ScaledRecords] = field(default_factory=list)
    rows: list[NDArray[np.int64]] = field(default_factory=list)
    count: int = 0

    def add(self, records: ScaledRecords, rows: NDArray[np.int64], most: int) -> None:
        """Take as many more as the sample may hold."""
        left = max(0, most - self.count)
        self.records.append(records[slice(0, left)])
        self.rows.append(rows[:left])
        self.count += len(self.records[-1])

    def joined(self) -> ScaledRecords:
        """Return all of them."""
        values = np.concatenate([some.values for some in self.records])
        return ScaledRecords(values, np.concatenate([some.labels for some in self.records]))

    @property
    def different(self) -> int:
        """How many different records there are among them."""
        return len(np.unique(np.concatenate(self.rows))) if self.count else 0


def samples(
    phases: CollectionPhases, context: SimulationContext
) -> tuple[RecordSample, RecordSample]:
    """Return those who took part in training, and those whose records nobody trained on."""
    people = phases.scenario.population
    trained, tested = RecordSample(), RecordSample()
    for number in range(len(cohort_sizes(people.users, people.cohort))):
        cohort = context.cohort(number)
        cohort_records = phases.assignment.people(cohort)
        took_part = phases.trained.get(number, np.zeros(len(cohort), dtype=np.bool_))
        for sample, who in ((trained, took_part), (tested, cohort_records.is_test)):
            some = np.flatnonzero(who)
            sample.add(cohort_records.records[some], cohort_records.row[some], MOST_TESTED)
    return trained, tested


def accuracy_metrics(phases: CollectionPhases, context: SimulationContext) -> list[Metric]:
    """Score the model on the device and through questions, beside its baselines.

    Where several users hold one row, the interval is that of as many rows, not of users.
    """
    trained, tested = samples(phases, context)
    if not tested.count or not phases.content:
        return []
    records, rows = tested.joined(), tested.different
    predicted = phases.task.predict(phases.content, records)
    right = float(np.mean(predicted == records.labels))
    majority = float(np.bincount(records.labels).max() / len(records))
    metrics = [
        _share("accuracy.device", right, rows),
        Metric("accuracy.majority", majority, n=len(records)),
        Metric("lead", right - majority, n=rows),
        Metric("data.rows_tested", float(rows), n=tested.count),
        Metric("data.rows_trained", float(trained.different), n=trained.count),
    ]
    metrics += _coverage(phases, metrics[0])
    asked = sum(stats.tested for stats in phases.questions)
    if asked:
        answered = sum(stats.right for stats in phases.questions)
        metrics.append(_share("accuracy.question", answered / asked, min(asked, rows)))
    if trained.count:
        metrics.append(_clipped(phases, trained))
    open_ = _open_answers(phases, trained, records) if trained.count else None
    if open_ is not None:
        metrics.append(_share("accuracy.open", float(np.mean(open_ == records.labels)), rows))
    return metrics


def _clipped(phases: CollectionPhases, sample: RecordSample) -> Metric:
    """Return the share of owners' numbers that were moved into their range, given or learnt."""
    schema, records = phases.task.schema, sample.joined()
    moved = phases.assignment.moved(np.concatenate(sample.rows), records)
    ranges = phases.task.ranges(phases.content)
    if ranges is not None:
        lows, highs = np.array(ranges).T
        moved |= (records.values < lows) | (records.values > highs)
    is_number = [isinstance(one, Continuous) for one in schema.attributes]
    numbers = moved[:, is_number]
    return Metric("values.clipped", float(numbers.mean()) if numbers.size else 0.0, n=len(records))


def _coverage(phases: CollectionPhases, accuracy: Metric) -> list[Metric]:
    """Tell whether the interval covers the accuracy on many others, where records are drawn."""
    if phases.assignment.table is not None:
        return []  # of a real table there are no others
    source = SeededSource(phases.scenario.seed, "pipeline", "collection", "others")
    others = health_records(_OTHERS, source.generator())
    right = phases.task.predict(phases.content, others) == others.labels
    covers = accuracy.low <= float(np.mean(right)) <= accuracy.high
    return [Metric("accuracy.device_coverage", float(covers), n=1)]


def _share(name: str, share: float, rows: int) -> Metric:
    """Return a share of independent records with its interval."""
    found = proportion_metric(name, round(share * rows), rows)
    return Metric(name, share, min(found.low, share), max(found.high, share), rows)


def _open_answers(
    phases: CollectionPhases, trained: RecordSample, asked: ScaledRecords
) -> Labels | None:
    """Return what a model without privacy says, trained on records of the same users as they are.

    Naive Bayes beside naive Bayes; beside other methods their classifier on values as they are.
    """
    records, trainer = trained.joined(), phases.task.trainer
    if len(np.unique(records.labels)) < 2:
        return np.full(len(asked), records.labels[0])
    if not isinstance(trainer, ClassifierTrainer):
        return _open_bayes(records, Discretiser(phases.task.schema, _OPEN_CLASSES), asked)
    some = records[slice(0, MOST_OPEN)]
    try:
        model = fit(trainer.classifier, some.values, some.labels, weight=trainer.weight)
    except NoisefloorError:
        return None  # scikit-learn is not there, and nothing that was asked for needs it
    return model.predict(asked.values)


def _open_bayes(records: ScaledRecords, classes: Discretiser, asked: ScaledRecords) -> Labels:
    """Return what naive Bayes says that counts classes as they are."""
    codes = classes.codes(records.values).astype(np.int64)
    sizes, count = np.array(classes.sizes), len(classes.schema.label.classes)
    cells = (count * (codes + np.cumsum(sizes) - sizes) + records.labels[:, None]).reshape(-1)
    counts = np.bincount(cells, minlength=count * int(sizes.sum())).reshape(-1, count)
    # As if every label had come once more: one that nobody holds has no logarithm.
    labels = (np.bincount(records.labels, minlength=count) + 1) / (len(records) + count)
    shares = Shrinkage(classes).shares(counts.astype(np.float64), labels)
    return model_from_counts(classes, shares, labels).predict(asked.values)
