"""Figures of the releases themselves: accuracy, nominal and whole-model epsilon, budget."""

from collections.abc import Iterator, Sequence
from typing import Any

from noisefloor_sim.pipelines.base import PointFindings
from noisefloor_sim.pipelines.curves import Axis, Groups, along
from noisefloor_sim.pipelines.figures import band, is_logarithmic, measured_curves
from noisefloor_sim.pipelines.models.naming import shared_curves
from noisefloor_sim.report.spec import Curve, Plot, Role

_RIGHT = "right labels of people who were left out"
_APART = 1.5
"""Prices that differ by less are drawn as one."""

_BASELINES: dict[str, tuple[str, Role]] = {
    "accuracy.open": ("without privacy", "baseline"),
    "accuracy.majority": ("majority class", "baseline"),
}


def accuracy_plots(groups: Groups, axis: Axis) -> Iterator[Plot]:
    """Draw the last release along the axis, beside no privacy and the most frequent class."""
    curves = measured_curves(groups, "accuracy.last")
    if not curves:
        return
    by_claim = ", by what is claimed" if axis.key.endswith(".epsilon") else ""
    yield Plot(
        f"How often the true label is told{by_claim}",
        "A release is worth something where it lies above the majority class. What is claimed is "
        "not always what is proved of the whole model.",
        axis.label,
        _RIGHT,
        [*curves, *shared_curves(groups, _BASELINES)],
        log_x=is_logarithmic(groups),
    )


def whole_model_plot(groups: Groups) -> Iterator[Plot]:
    """Draw accuracy by what is proved of the whole model: the price that is really paid."""
    curves = []
    for name, by_place in sorted(groups.items()):
        x, y = [], []
        for place in sorted(by_place):
            at = {place: by_place[place]}
            proved, reached = along(at, "model.proved")[1], along(at, "accuracy.last")[1]
            if proved and reached:
                x.append(proved[0].value)
                y.append(reached[0])
        if x:
            curves.append(Curve(name, x, [one.value for one in y], *band(y)))
    prices = [float(at) for one in curves for at in one.x]
    if prices and max(prices) > _APART * min(prices):
        yield Plot(
            "How often the true label is told, by what is proved of the whole model",
            "The same releases at the epsilon of all that is published. Noise for one parameter "
            "at a time costs as many times its epsilon as there are parameters; where nothing is "
            "proved, nothing is drawn.",
            "proved epsilon of a release, whole model",
            _RIGHT,
            curves,
            log_x=True,
        )


def parameter_plots(points: Sequence[PointFindings]) -> Iterator[Plot]:
    """Draw the audit against the number of parameters, where networks of several sizes were run.

    One figure for each method, at the smallest epsilon: there games resolve what is audited.
    """
    least = min((_setting(point, "epsilon") for point in points), default=0.0)
    some = [point for point in points if _setting(point, "epsilon") == least]
    for method in sorted({str(_setting(point, "method")) for point in some}):
        own = [point for point in some if _setting(point, "method") == method]
        curves: list[Curve] = []
        for variant in sorted({point.scenario.variant for point in own}):
            curves += _by_parameters(
                [point for point in own if point.scenario.variant == variant], variant
            )
        if curves:
            yield Plot(
                f"What an audit proves, by the number of parameters: {method}, epsilon {least:g}",
                "As printed, one record may move every parameter: what is proved is as many times "
                "the claim as there are parameters, and the audit rises with their number, above "
                "the claim. Corrected, it stays below. No audit passes what its games resolve.",
                "parameters",
                "epsilon of a release",
                curves,
                log_x=True,
            )


def _by_parameters(points: Sequence[PointFindings], variant: str) -> list[Curve]:
    """Return claimed and audited along the number of parameters, if there are several."""
    by_count: dict[float, list[PointFindings]] = {}
    for point in points:
        if count := point.metric("model.parameters"):
            by_count.setdefault(count.value, []).append(point)
    if len(by_count) < 2:
        return []
    curves = []
    rows: tuple[tuple[str, str, Role], ...] = (
        ("attack.canary.audited", "audited", "measured"),
        ("model.claimed", "claimed", "bound"),
    )
    for metric, word, role in rows:
        x, found = along(by_count, metric)
        if x:
            y = [one.value for one in found]
            curves.append(Curve(f"{variant}, {word}", x, y, role=role, group=variant))
    return curves


def release_plots(groups: Groups, axis: Axis) -> Iterator[Plot]:
    """Draw budget and accuracy from release to release, where there are several."""
    spent, right = [], []
    for name, by_place in sorted(groups.items()):
        for place in sorted(by_place):
            point = by_place[place][0]
            days = _values(point, "releases.day")
            if len(days) > 1:
                days = [day + 1 for day in days]
                label = name if len(by_place) == 1 else f"{name}, {axis.word} {place:g}"
                spent.append(Curve(label, days, _values(point, "spent.claimed")))
                right.append(Curve(label, days, _values(point, "accuracy")))
    if not spent:
        return
    yield Plot(
        "What was debited from the budget of the data set, day by day",
        "Every release is charged before it is drawn. When the budget is used up the publisher "
        "refuses, and the line ends.",
        "day",
        "epsilon debited so far",
        spent,
        kind="step",
    )
    yield Plot(
        "How often the true label is told, from release to release",
        "Later releases have more records to learn from; none has more than its own epsilon.",
        "day",
        _RIGHT,
        right,
    )


def _values(point: PointFindings, name: str) -> list[float]:
    """Return a metric of each release in turn."""
    found: list[float] = []
    while metric := point.metric(f"{name}.release_{len(found)}"):
        found.append(metric.value)
    return found


def _setting(point: PointFindings, name: str) -> Any:  # Any: a number or a text
    return getattr(point.scenario.pipelines["models"], name)
