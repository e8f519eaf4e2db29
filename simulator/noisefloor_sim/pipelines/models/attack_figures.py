"""Figures of the attacks on published models, each with the bound of what is proved."""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from noisefloor.accounting.bounds import true_positive_rate
from noisefloor_sim.pipelines.base import PointFindings
from noisefloor_sim.pipelines.curves import Axis, Groups, along
from noisefloor_sim.pipelines.figures import band, beside, is_logarithmic, measured_curves
from noisefloor_sim.pipelines.models.areas import POINTS
from noisefloor_sim.pipelines.models.naming import shared_curves
from noisefloor_sim.report.spec import Curve, Plot, Role

GAMES = {
    "canary": "one record that changes as much as any can",
    "missing_record": "which of four records is missing, all others known",
    "difference": "which of four came between two releases, no other record known",
}
READINGS = {
    "canary": "The adversary sees the noise of the release and knows everything else. Measured "
    "success lies below the bound if the claim holds; where noise is Gaussian it lies on its "
    "closed form.",
    "missing_record": "From noisy counts, or noisy parameters, by their exact likelihood. Noise "
    "for the whole model hides the record; so does training, which one record moves little.",
    "difference": "The noisy counts of one week are taken from those of the next: what all others "
    "add cancels out, and twice the noise is left.",
}
_BOUND: tuple[str, Role] = ("bound of what is claimed", "bound")
AREAS: Mapping[str, tuple[str, str, Mapping[str, tuple[str, Role]]]] = {
    "lira": (
        "Membership by shadow models (LiRA)",
        "The adversary trains models as the holder does. 0.5 is guessing; dashed is what the "
        "claim allows. The network without noise shows that the attack works.",
        {
            "attack.lira.claimed_auc": _BOUND,
            "attack.planted.auc": ("planted: no noise", "baseline"),
            "attack.null.auc": ("null: other coins", "baseline"),
        },
    ),
    "newcomer": (
        "Who came between two releases, by differencing them",
        "How often somebody who came in between scores above somebody who never came. The "
        "interval is Hoeffding's: wide, and right whatever the scores.",
        {"attack.newcomer.claimed_auc": _BOUND},
    ),
}
_AREA = "area under the curve"


def success_plots(groups: Groups, axis: Axis) -> Iterator[Plot]:
    """Draw how often each attack is right along the axis, beside the bound of what is claimed."""
    for name, what in GAMES.items():
        curves = measured_curves(groups, f"attack.{name}.success")
        if not curves:
            continue
        lines: dict[str, tuple[str, Role]] = {
            f"attack.{name}.claimed_bound": ("bound of what is claimed", "bound"),
            f"attack.{name}.prior": ("guessing", "baseline"),
        }
        yield Plot(
            f"How often the adversary is right: {what}",
            READINGS[name],
            axis.label,
            "right guesses",
            [*curves, *_closed_forms(groups, name), *shared_curves(groups, lines)],
            log_x=is_logarithmic(groups),
        )
    for name, (title, reading, theory) in AREAS.items():
        curves = measured_curves(groups, f"attack.{name}.auc")
        if curves:
            curves += shared_curves(groups, theory)
            yield Plot(title, reading, axis.label, _AREA, curves, log_x=is_logarithmic(groups))


def _closed_forms(groups: Groups, name: str) -> list[Curve]:
    """Return the closed form of each group that has one."""
    curves = []
    for curve, by_place in sorted(groups.items()):
        x, found = along(by_place, f"attack.{name}.closed_form")
        if x:
            y = [one.value for one in found]
            label = f"{curve}, closed form"
            curves.append(Curve(label, x, y, role="closed-form", group=curve))
    return curves


def weekly_plots(groups: Groups, axis: Axis) -> Iterator[Plot]:
    """Draw what all releases together give away of somebody who is in all of them."""
    theory: list[tuple[str, Role]] = [
        ("attack.stayer.bound", "bound"),
        ("attack.stayer.prior", "baseline"),
    ]
    curves = beside(groups, "attack.stayer.success", theory)
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


def _middle(groups: Groups) -> float:
    """Return the place nearest to 1, in ratio: where an epsilon is a matter of dispute."""
    places = {place for by_place in groups.values() for place in by_place}
    return min(places, key=lambda place: abs(math.log(place)) if place > 0 else math.inf)


def _rates(attack: str, curve: str, by_place: dict[float, list[PointFindings]]) -> list[Curve]:
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
