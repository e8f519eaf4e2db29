"""Figures of fine-tuning along the swept key: accuracy, clipping, and what attacks reach."""

from collections.abc import Iterator, Mapping, Sequence

from noisefloor_sim.pipelines import plotting
from noisefloor_sim.pipelines.api import PointFindings
from noisefloor_sim.pipelines.releases import shared_curves
from noisefloor_sim.report import Curve, Figures, Plot, Reading, Role, readings

_RIGHT = "right labels of people who were left out"

_BASELINES: dict[str, tuple[str, Role]] = {
    "accuracy.open": ("a head without privacy", "baseline"),
    "accuracy.majority": ("majority class", "baseline"),
}


def along_axis(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot]:
    """Draw what runs along the axis."""
    yield from _accuracy(groups, axis)
    yield from _updated(groups, axis)
    yield from _audited(groups, axis)
    yield from _members(groups, axis)


def _accuracy(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot]:
    curves = plotting.measured_curves(groups, "accuracy.last")
    if curves:
        yield Plot(
            "How often the true label is predicted",
            "The last release, beside a head without privacy on the frozen features of the same "
            "texts, and a guess that names the most frequent class.",
            axis.label,
            _RIGHT,
            [*curves, *shared_curves(groups, _BASELINES)],
            log_x=plotting.is_logarithmic(groups),
            readings=(readings.against("majority class"), (_GAP,)),
        )


def _gap(plot: Plot) -> Figures | None:
    """Return how far measured points lie below a head without privacy, at most and at least."""
    lines = [curve for curve in plot.curves if curve.name == _BASELINES["accuracy.open"][0]]
    gaps = [
        100 * (one.other - one.y)
        for line in lines
        for curve in readings.measured(plot)
        for one in readings.compared(curve, line)
    ]
    return {"span": readings.span(gaps)} if gaps else None


_GAP = Reading("They lie {span} points below a head without privacy.", _gap)


def _updated(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot]:
    curves = plotting.measured_curves(groups, "clipping.coordinates")
    if any(len(set(curve.y)) > 1 for curve in curves):  # else a table says as much
        yield Plot(
            "How many numbers a step clips and noises",
            "Counted in the sum of a step, and compared with the shapes, the rank and the share "
            "that is left out.",
            axis.label,
            "numbers in the sum of a step",
            curves,
            log_x=plotting.is_logarithmic(groups),
            log_y=True,
            readings=(readings.TREND,),
        )


_APART = 1.01
"""Proved epsilons that differ from the claim by less are not drawn beside it."""


def _audited(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot]:
    curves: list[Curve] = []
    for name, by_place in sorted(groups.items()):
        x, found = plotting.metric_along_axis(by_place, "attack.canary.audited")
        if x:
            curves.append(Curve(name, x, [one.value for one in found]))
        curves += _proved(name, by_place)
    curves += shared_curves(groups, {"model.claimed": ("claimed", "bound")})
    if any(curve.role == "measured" for curve in curves):
        yield Plot(
            "Claimed, proved and audited epsilon of a release",
            "Solid: the epsilon that games with a record prove that fills every clipping group. "
            "Dashed: claimed. Dotted: proved, where that is more. Audits are lower bounds.",
            axis.label,
            "epsilon of a release",
            curves,
            log_x=plotting.is_logarithmic(groups),
            log_y=all(y > 0 for curve in curves for y in curve.y),
            readings=((Reading("{said}", _above_claims),),),
        )


def _proved(name: str, by_place: dict[float, list[PointFindings]]) -> list[Curve]:
    """Return what is proved along the axis, where it is more than what is claimed."""
    x, found = plotting.metric_along_axis(by_place, "model.proved")
    _, claimed = plotting.metric_along_axis(by_place, "model.claimed")
    pairs = list(zip(found, claimed, strict=False))
    if not any(one.value > _APART * other.value for one, other in pairs):
        return []
    y = [one.value for one in found]
    return [Curve(f"{name}, proved", x, y, role="closed-form", group=name)]


def _above_claims(plot: Plot) -> Figures | None:
    """Name the curves of which audits lie above the claim."""
    by_curve: dict[str, list[bool]] = {}
    for one in readings.beside(plot, "bound"):
        by_curve.setdefault(one.curve, []).append(one.is_above)
    if not by_curve:
        return None
    counts = [f"{name} {sum(some)} of {len(some)}" for name, some in by_curve.items()]
    return {"said": f"Audits above the claim: {', '.join(counts)}."}


_AREA_LINES: Mapping[str, tuple[str, Role]] = {
    "attack.lira.claimed_auc": ("bound of what is claimed", "bound"),
    "attack.planted.auc": ("planted: a head without privacy", "baseline"),
    "attack.null.auc": ("null: other random bits", "baseline"),
}


def _members(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot]:
    curves = plotting.measured_curves(groups, "attack.lira.auc")
    if curves:
        yield Plot(
            "Whose text is in the data set, by shadow models (LiRA)",
            "The adversary trains models by the code that publishes, each on half of a pool. 0.5 "
            "is guessing; dashed is what the claim allows. Beside it a head without privacy that "
            "knows its texts by heart, and a null game against random bits that were never used.",
            axis.label,
            "area under the curve",
            [*curves, *shared_curves(groups, _AREA_LINES)],
            log_x=plotting.is_logarithmic(groups),
            readings=(readings.BOUND, (Reading("{said}", _planted),)),
        )


def _planted(plot: Plot) -> Figures | None:
    found = [y for curve in plot.curves if curve.name.startswith("planted") for y in curve.y]
    own = [y for curve in readings.measured(plot) for y in curve.y]
    if not found or not own:
        return None
    return {
        "said": f"Private releases: area {readings.span(own)}; the planted head: "
        f"{readings.span(found)}."
    }


def shown_examples(points: Sequence[PointFindings]) -> Iterator[Plot]:
    """Draw the diagnostics of private examples, where an experiment wrote them."""
    factors = [_numbered(point, "diagnostics.clip_factor.masked.example") for point in points]
    if not any(factors):
        return
    curves: list[Curve] = []
    for point, own in zip(points, factors, strict=True):
        if own:
            whole = _numbered(point, "diagnostics.clip_factor.unmasked.example")
            name, places = _label(point), list(range(1, len(own) + 1))
            curves.append(Curve(f"{name}, with masks", places, sorted(own), group=name))
            role: Role = "closed-form"
            curves.append(Curve(f"{name}, without", places, sorted(whole), role=role, group=name))
    yield Plot(
        "What gradients of single examples are multiplied by",
        "The smallest clip factor of each of the first examples, sorted; 1 is not clipped. "
        "Dotted: at the same weights, if the norm were of all units. These are private examples "
        "without noise, shown because the scenario says that it is an experiment.",
        "example, by its factor",
        "clip factor",
        curves,
        readings=((Reading("{said}", _clipped),),),
    )
    yield from _overlaps(points)


def _clipped(plot: Plot) -> Figures | None:
    def least(ends: str) -> list[float]:
        return [min(curve.y) for curve in plot.curves if curve.name.endswith(ends)]

    kept, whole = least("with masks"), least("without")
    said = f"The smallest factors are {readings.span(kept)} with masks"
    return {"said": f"{said} and {readings.span(whole)} without."}


def _overlaps(points: Sequence[PointFindings]) -> Iterator[Plot]:
    curves = [
        Curve(_label(point), list(range(1, len(found) + 1)), found)
        for point in points
        if (found := _numbered(point, "diagnostics.mask_overlap.step"))
    ]
    if curves:
        yield Plot(
            "How much of a mask is that of the step before",
            "Jaccard's overlap of the units that are left out in a step and in the next one, "
            "mean over matrices: 1 is the same mask.",
            "step",
            "overlap",
            curves,
            readings=((Reading("Overlaps are {span}.", _span),),),
        )


def _span(plot: Plot) -> Figures | None:
    return {"span": readings.span([y for curve in plot.curves for y in curve.y])}


def _numbered(point: PointFindings, name: str) -> list[float]:
    found: list[float] = []
    while metric := point.metric(f"{name}_{len(found)}"):
        found.append(metric.value)
    return found


def _label(point: PointFindings) -> str:
    """Return the settings in which a point differs from the others."""
    said = [f"{key.rpartition('.')[2]} {value}" for key, value in point.settings]
    return ", ".join(said) or "this run"
