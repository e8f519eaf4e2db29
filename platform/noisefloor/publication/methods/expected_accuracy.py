"""What accuracy to expect of a release before it is paid for: from public terms alone.

Counts have the error of their noise, exactly. A classifier is trained by the very plan on stand-in
records of the schema, and tested on others of them. That says what the noise costs at this size
and width; it does not say how well real labels can be predicted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee
from noisefloor.publication.cell_error import CellError, cell_error
from noisefloor.publication.methods.anonymising_first import SyntheticTablePlan
from noisefloor.publication.methods.held_out import plan_release
from noisefloor.publication.methods.model_plan import ModelPlan
from noisefloor.publication.methods.model_spec import ModelSpec
from noisefloor.publication.methods.stand_in_records import StandInRecords
from noisefloor.publication.published_model import PublishedModel, classification_scores
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables import Records

MOST_RECORDS = 10_000
"""Stand-in records to learn from: a dry run is to take seconds."""

MOST_FEATURES = 5_000_000
"""Of all of them together, likewise."""

TESTED = 4_000
SEEDS = 3

LITTLE_NOISE = (1e6, 40.0, 20.0, 10.0)
"""Epsilons at which a plan has next to no noise: the largest that a method takes."""


@dataclass(frozen=True, slots=True)
class StandInAccuracy:
    """What a plan reaches on stand-in records.

    Attributes:
        accuracy: With the plan's noise, the mean of some seeds.
        spread: From the lowest seed to the highest.
        without: With next to no noise.
        epsilon_without: The epsilon of that.
        majority: Of always guessing the commonest class.
        records: How many it learnt from.
        declared: How many there are, as declared; None where nothing was.
        seeds: How many trainings each figure is the mean of.
    """

    accuracy: float
    spread: tuple[float, float]
    without: float
    epsilon_without: float
    majority: float
    records: int
    declared: int | None
    seeds: int = SEEDS

    def __str__(self) -> str:
        return (
            f"on {self.records:,} stand-in records of this schema: accuracy {self.accuracy:.3f} "
            f"with this noise ({self.spread[0]:.3f} to {self.spread[1]:.3f} over {self.seeds} "
            f"seeds), {self.without:.3f} with next to none (epsilon {self.epsilon_without:g}), "
            f"{self.majority:.3f} by always guessing the commonest class; your data will differ"
        )


def table_errors(plan: SyntheticTablePlan) -> dict[str, CellError]:
    """Return the error of a count in each group of tables, by its name."""
    noises = plan.tables.tables.budget.noises
    return {name: cell_error(noise, noise.variance) for name, noise in noises.items()}


def stand_in_accuracy(
    kind: type[ModelPlan], spec: ModelSpec, tell: Callable[[int, int], None] = lambda *_: None
) -> StandInAccuracy:
    """Train a plan on stand-in records with its noise and with next to none.

    Args:
        kind: The method.
        spec: The request; its size is cut to what a dry run may take.
        tell: Gets how many trainings are done, of how many.
    """
    most = max(100, min(MOST_RECORDS, MOST_FEATURES // spec.encoding.width))
    count = min(most, spec.size or most)
    cut = replace(spec, size=None if spec.size is None else count)
    noisy = plan_release(kind, _cut_batch(cut, count))
    clear, epsilon = _without(kind, cut, count)
    reached: dict[bool, list[float]] = {True: [], False: []}
    majority = []
    with new_run():
        for seed in range(SEEDS):
            source = SeededSource(seed, "stand-in")
            world = StandInRecords(spec.encoding, source.child("effects").generator())
            records = world.records(count, source.child("records").generator())
            tested = world.records(TESTED, source.child("tested").generator())
            for is_noisy, plan in ((True, noisy), (False, clear)):
                content = plan.release(records, source.child("release", int(is_noisy)))
                reached[is_noisy].append(_accuracy(content, tested))
                tell(len(reached[True]) + len(reached[False]), 2 * SEEDS)
            majority.append(_majority(tested, spec))
    return StandInAccuracy(
        float(np.mean(reached[True])),
        (min(reached[True]), max(reached[True])),
        float(np.mean(reached[False])),
        epsilon,
        float(np.mean(majority)),
        count,
        spec.size,
    )


def _without(kind: type[ModelPlan], spec: ModelSpec, count: int) -> tuple[ModelPlan, float]:
    """Return the same plan with the least noise that the method has."""
    for epsilon in LITTLE_NOISE:
        cost = Guarantee(
            epsilon, spec.cost.neighbours, delta=spec.cost.delta, model=spec.cost.model
        )
        try:
            return plan_release(kind, _cut_batch(replace(spec, cost=cost), count)), epsilon
        except BadParameter as error:
            if error.name != "epsilon" or epsilon == LITTLE_NOISE[-1]:
                raise
    raise AssertionError("unreachable")


def _cut_batch(spec: ModelSpec, count: int) -> ModelSpec:
    """Keep a batch within the records that are tried."""
    batch = spec.parameters.get("batch")
    if not isinstance(batch, int) or batch <= count:
        return spec
    parameters: Mapping[str, str | int | float | bool] = {**spec.parameters, "batch": count}
    return replace(spec, parameters=parameters)


def _accuracy(content: bytes, tested: Records) -> float:
    model = PublishedModel.read(content)
    codes = model.encoding.codes(tested)
    predicted = model.predict_classes(model.encoding.features(codes))
    labels = tested.codes[model.encoding.label]
    return classification_scores(predicted, labels, model.encoding.classes).accuracy


def _majority(tested: Records, spec: ModelSpec) -> float:
    return float(np.bincount(tested.codes[spec.encoding.label]).max() / tested.count)
