"""What the DNN paper prints, and how it can be read."""

from collections.abc import Mapping
from dataclasses import dataclass

from noisefloor.publication.networks import NetworkTraining
from noisefloor_sim.papers import verdicts
from noisefloor_sim.papers.dnn.methods import BY_KEY, METHODS, DnnPlan
from noisefloor_sim.papers.intervals import Runs

ADULT = "adult"
TITLES = {ADULT: "Adult"}

GRID = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0)
JUDGED = (0.1, 1.0, 10.0, 100.0)
"""The paper's epsilons; those between are for the figure alone."""

FULL = DnnPlan(10, GRID, NetworkTraining(learning_rate=0.05, epochs=10), long_folds=2)
QUICK = DnnPlan(3, JUDGED, NetworkTraining(learning_rate=0.1, epochs=3))

READINGS = (
    "UCI Adult, the 45,222 complete records, one-hot by public bins; folds of ten. Twelve of the "
    "paper's 14 attributes: fnlwgt weighs the sample, and educational-num is education again; "
    "with all 14 apart.",
    "Three hidden layers, of 64 unless said otherwise: the paper counts layers in two ways and "
    "prints no widths.",
    "Batches of 50 and weight decay 0.001 as printed; fewer epochs at a larger rate than the "
    "printed 500 at 0.01, which are run apart.",
    "F is the mean over both classes: the paper does not say which F it prints.",
    "The undefined baseline is taken to be the larger class, and an approach exceeds it if its "
    "accuracy does.",
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


PRINTED_METHODS = ("af-histograms", "lf-printed", "al-printed")


def variants(plan: DnnPlan) -> verdicts.Variants:
    """Return every printed claim: of the algorithms as printed, and apart of other readings."""
    found = {
        "As printed": [*_plain("plain"), *_exceed(plan, *PRINTED_METHODS)],
        "Clamped before the noise, epsilon of each parameter": _exceed(
            plan, "lf-clamped", "al-clipped"
        ),
        "Corrected, epsilon of the whole model": _exceed(
            plan, "af-tree", "lf-corrected", "al-corrected"
        ),
        "As printed, with the paper's 14 attributes": [
            *_plain("plain-14"),
            *_exceed(plan, "af-14", "lf-14", "al-14"),
        ],
        "As printed, 500 epochs at a rate of 0.01": [
            *(_plain("plain-500") if plan.long_folds else ()),
            *_exceed(plan, "lf-500", "al-500"),
        ],
        "Other widths of the layers": [*_plain("plain-32"), *_plain("plain-16")],
    }
    return {name: claims for name, claims in found.items() if claims}


def _plain(key: str) -> list[verdicts.PrintedClaim]:
    """Return the printed means over folds, which were rounded to two digits."""
    return [
        verdicts.PrintedClaim(
            f"{key}-{metric}",
            ADULT,
            f"{name} of the plain network",
            f"{value:.2f}",
            (
                verdicts.MeanTest(
                    BY_KEY[key].title, DnnPoint(key, metric=metric), value - 0.005, value + 0.005
                ),
            ),
        )
        for name, metric, value in (("accuracy", "accuracy", 0.85), ("F", "macro_f1", 0.79))
    ]


def _exceed(plan: DnnPlan, *keys: str) -> list[verdicts.PrintedClaim]:
    """Return the claims that approaches exceed the baseline, one at each printed epsilon."""
    return [
        verdicts.PrintedClaim(
            f"exceeds-{key}-{epsilon:g}",
            ADULT,
            f"{BY_KEY[key].approach} exceeds the baseline at epsilon {epsilon:g}",
            "on the whole",
            (
                verdicts.GapTest(
                    f"{BY_KEY[key].title}, epsilon {epsilon:g}",
                    DnnPoint(key, epsilon),
                    DnnPoint("majority"),
                ),
            ),
        )
        for key in keys
        for epsilon in BY_KEY[key].epsilons(plan)
        if epsilon in JUDGED
    ]


def points_of(plan: DnnPlan, place: int = 0) -> list[tuple[str, float]]:
    """Return all that is run on a fold, by method and epsilon."""
    return [
        (method.key, epsilon)
        for method in METHODS
        if place < method.folds(plan)
        for epsilon in method.epsilons(plan)
    ]


def scores_by_point(found: Mapping[tuple[str, float, int], tuple[float, float]]) -> Runs:
    """Sort what was reached by what was run, fold by fold."""
    runs: dict[DnnPoint, list[float]] = {}
    for (key, epsilon, _), (accuracy, macro_f1) in sorted(found.items()):
        runs.setdefault(DnnPoint(key, epsilon), []).append(accuracy)
        runs.setdefault(DnnPoint(key, epsilon, "macro_f1"), []).append(macro_f1)
    return runs
