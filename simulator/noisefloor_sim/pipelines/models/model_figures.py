"""Figures of the releases themselves: accuracy, nominal and whole-model epsilon, budget."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from noisefloor_sim.pipelines.base import PointFindings
from noisefloor_sim.pipelines.curves import Axis, Groups, along
from noisefloor_sim.pipelines.figures import band, beside, is_logarithmic
from noisefloor_sim.report.spec import Curve, Plot

_RIGHT = "right labels of people who were left out"


def accuracy_plots(groups: Groups, axis: Axis) -> Iterator[Plot]:
    """Draw the last release along the axis, beside no privacy and the most frequent class."""
    curves = beside(groups, "accuracy.last", ())
    if not curves:
        return
    yield Plot(
        "How often the true label is told, by what is claimed",
        "A release is worth something where it lies above the majority class. What is claimed is "
        "not always what is proved: see the next figure.",
        axis.label,
        _RIGHT,
        [*(replace(one, name=one.group) for one in curves), *_baselines(groups)],
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
    if len({at for one in curves for at in one.x}) > 1:
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

    One figure for each method; what is drawn is the mean over all other settings.
    """
    methods = sorted({_method(point) for point in points})
    for method in methods:
        curves: list[Curve] = []
        for variant in sorted({point.scenario.variant for point in points}):
            some = [
                one
                for one in points
                if _method(one) == method and one.scenario.variant == variant
            ]
            curves += _by_parameters(some, variant)
        if curves:
            yield Plot(
                f"What an audit proves, by the number of parameters: {method}",
                "As printed, one record may move every parameter, and the audit rises with their "
                "number, above what is claimed; corrected, it stays below. The audit cannot pass "
                "what its games resolve.",
                "parameters",
                "epsilon of a release",
                curves,
                log_x=True,
                log_y=True,
            )


def _by_parameters(points: Sequence[PointFindings], variant: str) -> list[Curve]:
    """Return claimed, proved and audited along the number of parameters, if there are several."""
    by_count: dict[float, list[PointFindings]] = {}
    for point in points:
        if found := point.metric("model.parameters"):
            by_count.setdefault(found.value, []).append(point)
    if len(by_count) < 2:
        return []
    curves = []
    rows = (
        ("attack.canary.audited", "audited", "measured"),
        ("model.proved", "proved", "bound"),
        ("model.claimed", "claimed", "closed-form"),
    )
    for metric, word, role in rows:
        x, found = along(by_count, metric)
        if x:
            y = [one.value for one in found]
            curves.append(Curve(f"{variant}, {word}", x, y, role=role, group=variant))  # type: ignore[arg-type]  # a literal
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
    found = []
    while metric := point.metric(f"{name}.release_{len(found)}"):
        found.append(metric.value)
    return found


def _method(point: PointFindings) -> str:
    return str(getattr(point.scenario.pipelines["models"], "method", ""))


def _baselines(groups: Groups) -> list[Curve]:
    """Return what no privacy reaches and what the most frequent class does: one line each."""
    everybody: dict[float, list[PointFindings]] = {}
    for by_place in groups.values():
        for place, some in by_place.items():
            everybody.setdefault(place, []).extend(some)
    curves = []
    for metric, name in (("open", "without privacy"), ("majority", "majority class")):
        x, found = along(everybody, f"accuracy.{metric}")
        if x:
            curves.append(Curve(name, x, [one.value for one in found], role="baseline"))
    return curves
