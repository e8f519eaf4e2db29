"""Figures of the attacks on published models, each with the bound of what is proved."""

import math
from collections.abc import Iterator

import numpy as np

from noisefloor.accounting.bounds import true_positive_rate
from noisefloor_sim.pipelines.base import PointFindings
from noisefloor_sim.pipelines.curves import Axis, Groups, along
from noisefloor_sim.pipelines.figures import attack_plots, band, beside, is_logarithmic
from noisefloor_sim.pipelines.models.areas import POINTS
from noisefloor_sim.report.spec import Curve, Plot

GAMES = {
    "canary": "one record that changes as much as any can",
    "missing_record": "which of four records is missing, all others known",
}
READINGS = {
    "canary": "The adversary sees the noise of the release and knows everything else. Measured "
    "success lies below the bound of what is proved; where noise is Gaussian it lies on its "
    "closed form.",
    "missing_record": "Noise for the whole model hides the record; so does training, which one "
    "record moves little.",
}
AREAS = {
    "lira": (
        "Membership by shadow models (LiRA)",
        "The adversary trains models as the holder does. 0.5 is guessing; dashed is what the "
        "guarantee allows. The network without noise shows that the attack works.",
    ),
    "newcomer": (
        "Who came between two releases, by differencing them",
        "How often somebody who came in between scores above somebody who never came. The "
        "interval is Hoeffding's: wide, and right whatever the scores.",
    ),
}
_AREA = "area under the curve"


def success_plots(groups: Groups, axis: Axis) -> Iterator[Plot]:
    """Draw how often each attack is right along the axis."""
    yield from attack_plots(groups, axis, GAMES, READINGS, usual="")
    for name, (title, reading) in AREAS.items():
        curves = beside(groups, f"attack.{name}.auc", [(f"attack.{name}.auc_bound", "bound")])
        if not curves:
            continue
        if name == "lira":
            curves += _twins(groups)
        yield Plot(title, reading, axis.label, _AREA, curves, log_x=is_logarithmic(groups))


def weekly_plots(groups: Groups, axis: Axis) -> Iterator[Plot]:
    """Draw what all releases together give away of somebody who is in all of them."""
    theory = [("attack.stayer.bound", "bound"), ("attack.stayer.prior", "baseline")]
    curves = beside(groups, "attack.stayer.success", theory)  # type: ignore[arg-type]  # literals
    if curves:
        yield Plot(
            "How often the adversary is right: a record that was in every release",
            "Releases add up: the bound is that of all of them together.",
            axis.label,
            "right guesses",
            curves,
            log_x=is_logarithmic(groups),
        )


def curve_plots(groups: Groups, axis: Axis) -> Iterator[Plot]:
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
        )


def _twins(groups: Groups) -> list[Curve]:
    """Return the attack where it has to succeed and where it has to fail: one line each."""
    everybody: dict[float, list[PointFindings]] = {}
    for by_place in groups.values():
        for place, some in by_place.items():
            everybody.setdefault(place, []).extend(some)
    curves = []
    for twin, name in (("planted", "planted: no noise"), ("null", "null: other coins")):
        x, found = along(everybody, f"attack.{twin}.auc")
        if x:
            curves.append(Curve(name, x, [one.value for one in found], role="baseline"))
    return curves


def _middle(groups: Groups) -> float:
    """Return the place nearest to 1, in ratio: where an epsilon is a matter of dispute."""
    places = {place for by_place in groups.values() for place in by_place}
    return min(places, key=lambda place: abs(math.log(place)) if place > 0 else math.inf)


def _rates(
    attack: str, curve: str, by_place: dict[float, list[PointFindings]]
) -> list[Curve]:
    x, found = [], []
    for rate in POINTS:
        told = along(by_place, f"{attack}.tpr.at_{rate:g}")[1]
        if told and told[0].value > 0:
            x.append(rate)
            found.append(told[0])
    if not x:
        return []
    low, high = band(found)
    floor = min(x) / 10  # an interval that reaches 0 has no place on a logarithmic axis
    kept = [max(floor, end) for end in low] if low is not None else None
    return [Curve(curve, x, [one.value for one in found], kept, high)]


def _bounds(groups: Groups, place: float) -> list[Curve]:
    """Return the bound of each claim at a place; most often that is one."""
    claims = set()
    for by_place in groups.values():
        for point in by_place.get(place, []):
            claimed, delta = point.metric("model.claimed"), point.metric("model.delta")
            if claimed and delta:
                claims.add((claimed.value, delta.value))
    rates = np.array(POINTS)
    largest = {epsilon: max(d for e, d in claims if e == epsilon) for epsilon, _ in claims}
    return [
        Curve(
            f"bound at epsilon {epsilon:g}",
            list(POINTS),
            np.asarray(true_positive_rate(rates, epsilon, delta)).tolist(),
            role="bound",
        )
        for epsilon, delta in sorted(largest.items())
    ]
