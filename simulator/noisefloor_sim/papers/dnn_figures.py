"""What the DNN paper prints, and how it can be read."""

from collections.abc import Mapping
from dataclasses import dataclass

from noisefloor.publication.networks import NetworkTraining
from noisefloor_sim.papers import verdicts
from noisefloor_sim.papers.dnn_methods import METHODS, DnnPlan
from noisefloor_sim.papers.intervals import Runs

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


def variants(plan: DnnPlan) -> verdicts.Variants:
    """Return every printed claim, at the epsilon as printed and at that of the whole model."""
    kinds = {
        approach: [one.kind for one in METHODS if one.approach == approach]
        for approach in dict.fromkeys(one.approach for one in METHODS if one.approach)
    }
    by_parameter = [one for one, some in kinds.items() if "per parameter" in some]
    plain = [
        _plain("plain-accuracy", "accuracy of the plain network", "accuracy", 0.85),
        _plain("plain-f", "F of the plain network", "macro_f1", 0.79),
    ]
    return {
        "As printed": [
            *plain,
            *(
                _exceeds(one, plan, "per parameter" if one in by_parameter else "whole model")
                for one in kinds
            ),
        ],
        "At the epsilon of the whole model": [
            _exceeds(one, plan, "whole model") for one in by_parameter
        ],
        "Other widths of the layers": [
            _plain(f"{key}-{width}", f"{name} of the plain network", metric, value, width)
            for width in (32, 16)
            for key, name, metric, value in (
                ("plain-accuracy", "accuracy", "accuracy", 0.85),
                ("plain-f", "F", "macro_f1", 0.79),
            )
        ],
    }


def _plain(
    key: str, what: str, metric: str, value: float, width: int = 64
) -> verdicts.PrintedClaim:
    """Return a printed mean over folds, which was rounded to two digits."""
    point = DnnPoint("plain" if width == 64 else f"plain-{width}", metric=metric)
    test = verdicts.MeanTest(f"layers of {width}", point, value - 0.005, value + 0.005)
    return verdicts.PrintedClaim(key, ADULT, what, f"{value:.2f}", (test,))


def _exceeds(approach: str, plan: DnnPlan, kind: str) -> verdicts.PrintedClaim:
    """Return the claim that an approach exceeds the baseline, at each epsilon."""
    tests = tuple(
        verdicts.GapTest(
            f"{one.title}: epsilon {epsilon:g} of {_whose(one.kind)}",
            DnnPoint(one.key, epsilon),
            DnnPoint("majority"),
        )
        for one in METHODS
        if one.approach == approach and one.kind == kind
        for epsilon in one.epsilons(plan)
    )
    what = f"{approach} exceeds the baseline"
    return verdicts.PrintedClaim(f"exceeds-{approach}", ADULT, what, "on the whole", tests)


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
