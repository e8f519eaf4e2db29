"""What pages show of guessing games: success, prior, advantage, closed form and bound.

A plot for each attack where there is something along the axis, and one table of all figures.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from noisefloor_sim.pipelines import plotting
from noisefloor_sim.pipelines.api import PointFindings
from noisefloor_sim.report import Cell, Curve, Figures, Plot, Reading, Role, Table, readings
from noisefloor_sim.scenario import Attacks, game_of

THEORY_METRICS: tuple[tuple[str, Role], ...] = (
    ("closed_form", "closed-form"),
    ("bound", "bound"),
    ("prior", "baseline"),
)
"""What stands beside the success of an attack, and how it is drawn."""

_LINES: dict[Role, str] = {
    "closed-form": "its closed form",
    "bound": "the bound that is proved",
    "baseline": "a guess without the reports",
}
_DUST = 1e-9


def attack_figures(
    groups: plotting.Groups,
    axis: plotting.Axis,
    attacks: Attacks,
    notes: Mapping[str, str] | None = None,
) -> Iterator[Plot | Table]:
    """Draw each attack along the axis, and list all; of one place along it there is only a list.

    Args:
        groups: The points.
        axis: What runs along the axis.
        attacks: Of the pipeline, each with one game of its own name.
        notes: What a reader has to know of a game, by its name; true whatever was measured.
    """
    if len({place for by_place in groups.values() for place in by_place}) > 1:
        yield from attack_plots(groups, axis, attacks, notes)
    yield from attack_tables(groups, axis, attacks)


def attack_plots(
    groups: plotting.Groups,
    axis: plotting.Axis,
    attacks: Attacks,
    notes: Mapping[str, str] | None = None,
) -> Iterator[Plot]:
    """Draw how often the adversary is right, for each attack that was mounted.

    Args:
        groups: The points.
        axis: What runs along the axis.
        attacks: Of the pipeline, each with one game of its own name.
        notes: What a reader has to know of a game, by its name; true whatever was measured.
    """
    for name, attack in attacks.items():
        game = game_of(name)
        theory = [(f"attack.{game}.{name}", role) for name, role in THEORY_METRICS]
        curves = plotting.curves_with_theory(groups, f"attack.{game}.success", theory)
        if curves:
            note = (notes or {}).get(game, "")
            yield Plot(
                f"How often the adversary is right: {attack.about}",
                " ".join(part for part in (_attack_description(curves), note) if part),
                axis.label,
                "right guesses",
                curves,
                log_x=plotting.is_logarithmic(groups),
                readings=(*plotting.ATTACK_READINGS, PRIOR),
            )


def _attack_description(curves: Sequence[Curve]) -> str:
    """Say which lines are drawn."""
    roles = {curve.role for curve in curves}
    lines = [words for role, words in _LINES.items() if role in roles]
    listed = " and ".join(part for part in (", ".join(lines[:-1]), *lines[-1:]) if part)
    has_band = any(curve.low is not None for curve in curves)
    shares = f"Share of right guesses{' with its 95 % interval' if has_band else ''}"
    return f"{shares}, beside {listed}." if listed else f"{shares}."


def _priors(plot: Plot) -> list[Sequence[float]]:
    """Return the guesses without reports along each curve."""
    return [curve.y for curve in plot.curves if curve.role == "baseline" and len(curve.y) > 1]


def _is_even(prior: Sequence[float]) -> bool:
    return max(prior) - min(prior) <= _DUST


def _one_prior(plot: Plot) -> Figures | None:
    priors = _priors(plot)
    if not priors or not all(_is_even(prior) for prior in priors):
        return None
    gains = [point.y - point.other for point in readings.beside(plot, "baseline")]
    firsts = [prior[0] for prior in priors]
    return {"prior": readings.span(firsts), "gains": readings.span(gains)}


def _several_priors(plot: Plot) -> Figures | None:
    uneven = [prior for prior in _priors(plot) if not _is_even(prior)]
    values = [one for prior in uneven for one in prior]
    return {"priors": readings.span(values)} if uneven else None


PRIOR: readings.PlotReadings = (
    Reading(
        "The prior is the same at every point of a curve, {prior}; the advantage over it is "
        "{gains}.",
        _one_prior,
    ),
    Reading(
        "The prior differs along a curve, {priors}: its points are not about one secret.",
        _several_priors,
    ),
)
"""Whether the points of a curve can be compared, and what was gained over the prior."""

_FIGURES = ("prior", "advantage", "closed_form", "bound", "candidates")
_HEADER = ("right", "from", "to", "prior", "advantage", "closed form", "bound", "candidates")


@dataclass(frozen=True, slots=True)
class _AttackRow:
    """What an attack reached, its interval and what theory says of it; NaN where nothing."""

    right: float
    low: float
    high: float
    closed_form: float
    bound: float


def _attack_rows(table: Table) -> list[_AttackRow]:
    names = ("right", "from", "to", "closed form", "bound")
    places = [list(table.header).index(name) for name in names]
    numbers = ([row[at] for at in places] for row in table.rows)
    return [
        _AttackRow(*(math.nan if isinstance(one, str | None) else float(one) for one in row))
        for row in numbers
    ]


def _inside_intervals(table: Table) -> Figures | None:
    rows = [row for row in _attack_rows(table) if not math.isnan(row.closed_form)]
    inside = sum(row.low - _DUST <= row.closed_form <= row.high + _DUST for row in rows)
    return {"k": inside, "n": len(rows)} if rows else None


def _none_above(table: Table) -> Figures | None:
    rows = [row for row in _attack_rows(table) if not math.isnan(row.bound)]
    is_true = rows and all(row.low <= row.bound + _DUST for row in rows)
    return {"n": len(rows)} if is_true else None


def _some_above(table: Table) -> Figures | None:
    rows = [row for row in _attack_rows(table) if not math.isnan(row.bound)]
    above = sum(row.low > row.bound + _DUST for row in rows)
    return {"k": above, "n": len(rows)} if above else None


_TABLE_READINGS = (
    (Reading("The closed form lies in {k} of {n} intervals.", _inside_intervals),),
    (
        Reading("None of {n} is above its bound by more than its interval.", _none_above),
        Reading("{k} of {n} are above their bound by more than their interval.", _some_above),
    ),
)


def attack_tables(
    groups: plotting.Groups, axis: plotting.Axis, attacks: Attacks
) -> Iterator[Table]:
    """List what each attack reached at each point; where plots say what it is, by its name."""
    rows: list[tuple[Cell, ...]] = []
    is_drawn = len({place for by_place in groups.values() for place in by_place}) > 1
    for name, attack in attacks.items():
        word = name.replace("-", " ") if is_drawn else attack.about
        for curve, by_place in sorted(groups.items()):
            for place in sorted(by_place):
                rows += _table_rows(word, curve, place, by_place, game_of(name))
    if rows:
        yield Table(
            "How often the adversary is right",
            "Share of right guesses with its 95 % interval, the success of a guess from the prior "
            "alone, the advantage over it, the closed form, the bound that is proved, and the "
            "number of candidates among which the adversary chooses.",
            ("guessed", "curve", axis.word, *_HEADER),
            rows,
            _TABLE_READINGS,
        )


def _table_rows(
    word: str,
    curve: str,
    place: float,
    by_place: Mapping[float, list[PointFindings]],
    game: str,
) -> Iterator[tuple[Cell, ...]]:
    here = {place: by_place[place]}
    found = [
        plotting.metric_along_axis(here, f"attack.{game}.{one}")[1]
        for one in ("success", *_FIGURES)
    ]
    if found[0]:
        success = found[0][0]
        others = [one[0].value if one else None for one in found[1:]]
        yield word, curve, place, success.value, success.low, success.high, *others
