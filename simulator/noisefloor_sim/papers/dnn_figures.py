"""What the DNN paper prints, and how it can be read."""

from collections.abc import Mapping
from dataclasses import dataclass

from noisefloor.publication.networks import NetworkTraining
from noisefloor_sim.papers.dnn_methods import METHODS, DnnPlan
from noisefloor_sim.papers.verdicts import GapReading, MeanReading, PrintedFigure, Runs

ADULT = "adult"
TITLES = {ADULT: "Adult"}

GRID = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0)
"""The paper does not print its epsilons."""

FULL = DnnPlan(10, GRID, NetworkTraining(learning_rate=0.05, epochs=10))
QUICK = DnnPlan(3, (0.1, 1.0, 10.0, 100.0), NetworkTraining(learning_rate=0.1, epochs=3))

READINGS = (
    "UCI Adult, the 45,222 complete records, one-hot by public bins; folds of ten.",
    "Three hidden layers, of 64 unless said otherwise: the paper counts layers in two ways and "
    "prints no widths.",
    "Batches of 50 and weight decay 0.001 as printed; fewer epochs at a larger rate than the "
    "printed 500 at 0.01.",
    "F is the mean over both classes: the paper does not say which F it prints.",
    "The undefined baseline is taken to be the larger class.",
)


@dataclass(frozen=True, slots=True)
class DnnPoint:
    """What was run, and what of it is looked at.

    Attributes:
        method: A key of the methods.
        epsilon: As the method states it; 0 for references.
        metric: ``accuracy`` or ``macro_f1``.
    """

    method: str
    epsilon: float = 0.0
    metric: str = "accuracy"


def items(plan: DnnPlan) -> list[PrintedFigure]:
    """Return every printed figure and claim, with its readings."""
    plain = PrintedFigure(
        "plain-accuracy",
        ADULT,
        "accuracy of the plain network",
        "0.85",
        0.85,
        _plain_readings("accuracy"),
    )
    f_measure = PrintedFigure(
        "plain-f", ADULT, "F of the plain network", "0.79", 0.79, _plain_readings("macro_f1")
    )
    approaches = dict.fromkeys(one.approach for one in METHODS if one.approach)
    return [plain, f_measure, *(_exceeds(approach, plan) for approach in approaches)]


def _plain_readings(metric: str) -> tuple[MeanReading, ...]:
    widths = {"plain": 64, "plain-32": 32, "plain-16": 16}
    return tuple(
        MeanReading(f"layers of {width}", DnnPoint(key, metric=metric), 0.005)
        for key, width in widths.items()
    )


def _exceeds(approach: str, plan: DnnPlan) -> PrintedFigure:
    """Return the claim that an approach exceeds the baseline, at each epsilon both ways."""
    readings = [
        GapReading(
            f"{one.title}: epsilon {epsilon:g} of {_whose(one.kind)}",
            DnnPoint(one.key, epsilon),
            DnnPoint("majority"),
        )
        for one in METHODS
        if one.approach == approach and one.kind in ("per parameter", "whole model")
        for epsilon in one.epsilons(plan)
    ]
    what = f"{approach} exceeds the baseline"
    return PrintedFigure(f"exceeds-{approach}", ADULT, what, "on the whole", 0.0, tuple(readings))


def _whose(kind: str) -> str:
    return "each parameter" if kind == "per parameter" else "the whole model"


def points_of(plan: DnnPlan) -> list[tuple[str, float]]:
    """Return all that is run, by method and epsilon."""
    return [(method.key, epsilon) for method in METHODS for epsilon in method.epsilons(plan)]


def scores_by_point(found: Mapping[tuple[str, float, int], tuple[float, float]]) -> Runs:
    """Sort what was reached by what was run, fold by fold."""
    runs: dict[DnnPoint, list[float]] = {}
    for (key, epsilon, _), (accuracy, macro_f1) in sorted(found.items()):
        runs.setdefault(DnnPoint(key, epsilon), []).append(accuracy)
        runs.setdefault(DnnPoint(key, epsilon, "macro_f1"), []).append(macro_f1)
    return runs
