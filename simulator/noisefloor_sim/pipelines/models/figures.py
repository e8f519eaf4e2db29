"""Figures of the attacks on published models, each with the bound of what is proved.

Figures of the releases themselves: accuracy, nominal and whole-model epsilon, budget.

How the curves of the section are called, and lines that all of them share.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from noisefloor.accounting import true_positive_rate
from noisefloor_sim.pipelines import plotting
from noisefloor_sim.pipelines.api import PointFindings
from noisefloor_sim.pipelines.releases import FALSE_POSITIVE_RATES, shared_curves
from noisefloor_sim.report import Curve, Figures, Plot, Reading, Role, readings

HIDDEN = "pipelines.models.hidden"


def widest(points: Sequence[PointFindings]) -> list[PointFindings]:
    """Return the points of the widest networks, where several widths were swept; else all.

    A figure of every width has too many curves to be read; tables hold them all.
    """
    counts = [
        sum(int(word) for word in str(dict(point.settings)[HIDDEN]).split(",") if word != "none")
        for point in points
        if HIDDEN in dict(point.settings)
    ]
    if len(counts) < len(points):
        return list(points)
    return [point for point, count in zip(points, counts, strict=True) if count == max(counts)]


_RIGHT = "right labels of people who were left out"
_APART = 1.5
"""Prices that differ by less are drawn as one."""

_BASELINES: dict[str, tuple[str, Role]] = {
    "accuracy.open": ("without privacy", "baseline"),
    "accuracy.majority": ("majority class", "baseline"),
}


def accuracy_plots(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot]:
    """Draw the last release along the axis, beside no privacy and the most frequent class."""
    curves = plotting.measured_curves(groups, "accuracy.last")
    if not curves:
        return
    by_claim = ", by what is claimed" if axis.key.endswith(".epsilon") else ""
    yield Plot(
        f"How often the true label is predicted{by_claim}",
        "The last release, beside a model without privacy on the same records and a guess that "
        "names the most frequent class.",
        axis.label,
        _RIGHT,
        [*curves, *shared_curves(groups, _BASELINES)],
        log_x=plotting.is_logarithmic(groups),
        readings=(readings.against("majority class"),),
    )


def whole_model_plot(groups: plotting.Groups) -> Iterator[Plot]:
    """Draw accuracy by what is proved of the whole model: the price that is really paid."""
    curves = []
    for name, by_place in sorted(groups.items()):
        x, y = [], []
        for place in sorted(by_place):
            at = {place: by_place[place]}
            proved, reached = (
                plotting.metric_along_axis(at, "model.proved")[1],
                plotting.metric_along_axis(at, "accuracy.last")[1],
            )
            if proved and reached:
                x.append(proved[0].value)
                y.append(reached[0])
        if x:
            curves.append(Curve(name, x, [one.value for one in y], *plotting.interval_ends(y)))
    prices = [float(at) for one in curves for at in one.x]
    if prices and max(prices) > _APART * min(prices):
        yield Plot(
            "How often the true label is predicted, by what is proved of the whole model",
            "The same releases at the epsilon of all that is published. Where nothing is proved, "
            "nothing is drawn.",
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
                "Lower bounds from games with one record that moves every parameter, beside what "
                "is claimed. No audit passes what its games resolve.",
                "parameters",
                "epsilon of a release",
                curves,
                log_x=True,
                readings=((Reading("{said}", _audits_above_claims),),),
            )


def _audits_above_claims(plot: Plot) -> Figures | None:
    """Count, for each curve, the audits above the claim."""
    by_curve: dict[str, list[bool]] = {}
    for point in readings.beside(plot, "bound"):
        by_curve.setdefault(point.curve.removesuffix(", audited"), []).append(point.is_above)
    counts = [f"{name} {sum(some)} of {len(some)}" for name, some in by_curve.items()]
    return {"said": f"Audits above the claim: {', '.join(counts)}."} if counts else None


def _by_parameters(points: Sequence[PointFindings], variant: str) -> list[Curve]:
    """Return claimed and audited along the number of parameters, if several were audited."""
    by_count: dict[float, list[PointFindings]] = {}
    for point in points:
        if count := point.metric("model.parameters"):
            by_count.setdefault(count.value, []).append(point)
    if len(by_count) < 2 or not plotting.metric_along_axis(by_count, "attack.canary.audited")[0]:
        return []
    curves = []
    rows: tuple[tuple[str, str, Role], ...] = (
        ("attack.canary.audited", "audited", "measured"),
        ("model.claimed", "claimed", "bound"),
    )
    for metric, word, role in rows:
        x, found = plotting.metric_along_axis(by_count, metric)
        if x:
            y = [one.value for one in found]
            curves.append(Curve(f"{variant}, {word}", x, y, role=role, group=variant))
    return curves


def release_plots(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot]:
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
        "What is spent of the budget of the data set, day by day",
        "Every release is charged before it is drawn. A line ends with the last release that the "
        "budget covers. Spent is the smaller of the plain sum and of what the filter proves.",
        "day",
        "epsilon spent so far",
        spent,
        kind="step",
    )
    yield Plot(
        "How often the true label is predicted, from release to release",
        "Each release on the day of its publication, learnt from the records of that day.",
        "day",
        _RIGHT,
        right,
        readings=(readings.TREND,),
    )


def _values(point: PointFindings, name: str) -> list[float]:
    """Return a metric of each release in turn."""
    found: list[float] = []
    while metric := point.metric(f"{name}.release_{len(found)}"):
        found.append(metric.value)
    return found


def _setting(point: PointFindings, name: str) -> Any:  # Any: a number or a text
    return getattr(point.scenario.pipelines["models"], name)


GAMES = {
    "canary": "one record that changes as much as any can",
    "missing_record": "which of four records is missing, all others known",
    "difference": "which of four came between two releases, no other record known",
}
NOTES = {
    "canary": "The adversary sees the noise of the release and knows everything else. Dashed is "
    "the bound of what is claimed, dotted the closed form where noise is Gaussian.",
    "missing_record": "From noisy counts, or noisy parameters, by their exact likelihood. Dashed "
    "is the bound of what is claimed.",
    "difference": "The noisy counts of one week are taken from those of the next: what all others "
    "add cancels out, and twice the noise is left. Dashed is the bound of what is claimed.",
}
_PLANTED = "planted: no noise"
_LEAST_AREA = 0.55
"""A planted leak that is told with a smaller area says little about the attack."""

_BOUND: tuple[str, Role] = ("bound of what is claimed", "bound")
AUC_PLOTS: Mapping[str, tuple[str, str, Mapping[str, tuple[str, Role]]]] = {
    "lira": (
        "Membership by shadow models (LiRA)",
        "The adversary trains models as the holder does. 0.5 is guessing; dashed is what the "
        "claim allows. Beside it a planted network without noise, and a null game against random "
        "bits that were never used.",
        {
            "attack.lira.claimed_auc": _BOUND,
            "attack.planted.auc": (_PLANTED, "baseline"),
            "attack.null.auc": ("null: other random bits", "baseline"),
        },
    ),
    "newcomer": (
        "Who came between two releases, by differencing them",
        "How often somebody who came in between scores above somebody who never came. The "
        "interval is Hoeffding's: wide, and right whatever the scores.",
        {"attack.newcomer.claimed_auc": _BOUND},
    ),
}
_AUC_LABEL = "area under the curve"


def success_plots(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot]:
    """Draw how often each attack is right along the axis, beside the bound of what is claimed."""
    for name, what in GAMES.items():
        curves = plotting.measured_curves(groups, f"attack.{name}.success")
        if not curves:
            continue
        lines: dict[str, tuple[str, Role]] = {
            f"attack.{name}.claimed_bound": ("bound of what is claimed", "bound"),
            f"attack.{name}.prior": ("guessing", "baseline"),
        }
        yield Plot(
            f"How often the adversary is right: {what}",
            NOTES[name],
            axis.label,
            "right guesses",
            [*curves, *_closed_forms(groups, name), *shared_curves(groups, lines)],
            log_x=plotting.is_logarithmic(groups),
            readings=plotting.ATTACK_READINGS,
        )
    for name, (title, describes, theory) in AUC_PLOTS.items():
        curves = plotting.measured_curves(groups, f"attack.{name}.auc")
        if curves:
            curves += shared_curves(groups, theory)
            yield Plot(
                title,
                describes,
                axis.label,
                _AUC_LABEL,
                curves,
                log_x=plotting.is_logarithmic(groups),
                readings=(PLANTED_READINGS, readings.BOUND, _GUESSING),
            )


def _planted_auc(plot: Plot) -> list[float]:
    return [y for curve in plot.curves if curve.name == _PLANTED for y in curve.y]


def _tells_planted(plot: Plot) -> Figures | None:
    found = _planted_auc(plot)
    if not found or min(found) <= _LEAST_AREA:
        return None
    return {"span": readings.span(found)}


def _misses_planted(plot: Plot) -> Figures | None:
    found = _planted_auc(plot)
    if not found or min(found) > _LEAST_AREA:
        return None
    return {"span": readings.span(found)}


PLANTED_READINGS = (
    Reading(
        "The attack tells the members of the planted network: area {span}.",
        _tells_planted,
    ),
    Reading(
        "The attack hardly tells the members of the planted network (area {span}), so "
        "that a small area elsewhere shows little.",
        _misses_planted,
    ),
)


def _around_half(plot: Plot) -> Figures | None:
    ends = [
        (low, high)
        for curve in readings.measured(plot)
        if curve.low and curve.high
        for low, high in zip(curve.low, curve.high, strict=True)
    ]
    return {"k": sum(low <= 0.5 <= high for low, high in ends), "n": len(ends)} if ends else None


_GUESSING = (Reading("{k} of {n} intervals contain 0.5, which is guessing.", _around_half),)


def _closed_forms(groups: plotting.Groups, name: str) -> list[Curve]:
    """Return the closed form of each group that has one."""
    curves = []
    for curve, by_place in sorted(groups.items()):
        x, found = plotting.metric_along_axis(by_place, f"attack.{name}.closed_form")
        if x:
            y = [one.value for one in found]
            label = f"{curve}, closed form"
            curves.append(Curve(label, x, y, role="closed-form", group=curve))
    return curves


def weekly_plots(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot]:
    """Draw what all releases together give away of somebody who is in all of them."""
    theory: list[tuple[str, Role]] = [
        ("attack.stayer.bound", "bound"),
        ("attack.stayer.prior", "baseline"),
    ]
    curves = plotting.curves_with_theory(groups, "attack.stayer.success", theory)
    if curves:
        yield Plot(
            "How often the adversary is right: a record that was in every release",
            "The adversary has all releases; the bound is that of all of them together.",
            axis.label,
            "right guesses",
            curves,
            log_x=plotting.is_logarithmic(groups),
            readings=plotting.ATTACK_READINGS,
        )


def curve_plots(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot]:
    """Draw curves of true against false positive rates on logarithmic axes, at one place."""
    place = _middle(groups)
    for name, title in (
        ("lira", "Membership by shadow models"),
        ("canary", "A record that changes as much as any can"),
    ):
        curves = []
        for curve, by_place in sorted(groups.items()):
            curves += _rates(f"attack.{name}", curve, {place: by_place.get(place, [])})
        if not curves:
            continue
        curves += _bounds(groups, place)
        yield Plot(
            f"{title}: true against false positives, at {axis.word} {place:g}",
            "On logarithmic axes, since a few sure guesses matter more than many poor ones. "
            "Dashed: e^epsilon times the false positive rate plus delta, for what is claimed. "
            "Rates that the sample does not resolve are left out.",
            "false positive rate",
            "true positive rate",
            curves,
            log_x=True,
            log_y=True,
            readings=(readings.BOUND,),
        )


def _middle(groups: plotting.Groups) -> float:
    """Return the place nearest to 1, in ratio: where an epsilon is a matter of dispute."""
    places = {place for by_place in groups.values() for place in by_place}
    return min(places, key=lambda place: abs(math.log(place)) if place > 0 else math.inf)


def _rates(attack: str, curve: str, by_place: dict[float, list[PointFindings]]) -> list[Curve]:
    x, found = [], []
    for rate in FALSE_POSITIVE_RATES:
        metrics = plotting.metric_along_axis(by_place, f"{attack}.tpr.at_{rate:g}")[1]
        if metrics and metrics[0].value > 0:
            x.append(rate)
            found.append(metrics[0])
    if not x:
        return []
    low, high = plotting.interval_ends(found)
    floor = min(x) / 10  # an interval that reaches 0 has no place on a logarithmic axis
    kept = [max(floor, end) for end in low] if low is not None else None
    return [Curve(curve, x, [one.value for one in found], kept, high)]


def _bounds(groups: plotting.Groups, place: float) -> list[Curve]:
    """Return the bound of each claim at a place; most often that is one."""
    claims = set()
    for by_place in groups.values():
        for point in by_place.get(place, []):
            claimed, delta = point.metric("model.claimed"), point.metric("model.delta")
            if claimed and delta:
                claims.add((claimed.value, delta.value))
    rates = np.array(FALSE_POSITIVE_RATES)
    largest = {epsilon: max(d for e, d in claims if e == epsilon) for epsilon, _ in claims}
    return [
        Curve(
            f"bound at epsilon {epsilon:g}",
            list(FALSE_POSITIVE_RATES),
            np.asarray(true_positive_rate(rates, epsilon, delta)).tolist(),
            role="bound",
        )
        for epsilon, delta in sorted(largest.items())
    ]
