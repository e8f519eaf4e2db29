"""What the report shows of users' budgets: the mean user and the heaviest, over all pipelines.

Figure and table take their numbers from the claim of the heaviest user and from the metrics that
were written with it, so that they cannot say anything else than the table of claims.
"""

from collections.abc import Sequence

from noisefloor.privacy import Claim
from noisefloor_sim.pipelines.api import PointFindings
from noisefloor_sim.pipelines.plotting import Axis, Groups
from noisefloor_sim.report import Cell, Curve, Plot, Role, Section, Table
from noisefloor_sim.scenario import HEAVIEST_USER

MOST_GROUPS = 4
"""Curves of a sweep that are drawn; the table has all."""

_USERS = (("heaviest_user", "heaviest user"), ("mean_user", "mean user"))
_KINDS: tuple[tuple[str, Role], ...] = (("debited", "measured"), ("proved", "bound"))
_COLUMNS = (
    *("heaviest user", "what was sent", "debited", "proved", "claimed", "verdict"),
    *("mean user, debited", "mean user, proved"),
)


def ledger_section(points: Sequence[PointFindings]) -> list[Section]:
    """Describe what users have spent; nothing where no pipeline takes from their budgets."""
    spending = [point for point in points if claim_at(point) is not None]
    if not spending:
        return []
    axis = Axis.of(spending, {"budget": "budget of a user"})
    groups = axis.grouped(spending)
    return [
        Section(
            "Budgets of users",
            "All flows and devices of a user take from one budget. Debited is what the ledger "
            "took; proved is what follows from the mechanisms for everything that was sent.",
            (_plot(groups, axis), _table(groups, axis)),
        )
    ]


def claim_at(point: PointFindings) -> Claim | None:
    """Return the claim of the heaviest user at a point, if there is one."""
    found = (one.claim for one in point.findings.claims if one.mechanism == HEAVIEST_USER)
    return next(found, None)


def _heaviest(points: Sequence[PointFindings]) -> PointFindings:
    """Return the replicate whose heaviest user is the heaviest."""
    return max(points, key=_proved)


def _proved(point: PointFindings) -> float:
    claim = claim_at(point)
    return 0.0 if claim is None else claim.proved.epsilon


def _plot(groups: Groups, axis: Axis) -> Plot:
    """Show what was spent by each day, at the far end of each curve."""
    ends = {name: _heaviest(by_place[max(by_place)]) for name, by_place in groups.items()}
    shown = sorted(sorted(ends), key=lambda name: -_proved(ends[name]))[:MOST_GROUPS]
    curves = [curve for name in sorted(shown) for curve in _curves(name, ends[name])]
    left_out = len(ends) - len(shown)
    return Plot(
        "What the heaviest user and a mean user have spent by each day",
        f"At the largest {axis.word} of the sweep, over all flows; the last day is the claim of "
        "the heaviest user. Where proved lies above debited, the ledger debits too little."
        + (f" The {len(shown)} heaviest of {len(ends)} curves." if left_out else ""),
        "day",
        "epsilon, summed",
        curves,
        kind="step",
        log_y=all(y > 0 for curve in curves for y in curve.y),
    )


def _curves(name: str, point: PointFindings) -> list[Curve]:
    curves = []
    for user, said in _USERS:
        for kind, role in _KINDS:
            found = [
                point.metric(f"{user}.{kind}.day_{day}") for day in range(point.scenario.days)
            ]
            pairs = [
                (float(day), metric.value)
                for day, metric in enumerate(found, start=1)
                if metric is not None
            ]
            days, values = [day for day, _ in pairs], [value for _, value in pairs]
            label, group = f"{name}, {said}, {kind}", f"{name}, {said}"
            curves.append(Curve(label, days, values, role=role, group=group))
    return curves


def _table(groups: Groups, axis: Axis) -> Table:
    rows = [
        (curve, place, *_cells(_heaviest(by_place[place])))
        for curve, by_place in sorted(groups.items())
        for place in sorted(by_place)
    ]
    return Table(
        "The heaviest user of each point",
        "The user of whose releases in the whole run, added up, the largest epsilon is proved; of "
        "several seeds the heaviest. Claimed is the budget, or in the paper's variant what the "
        "paper says of the whole.",
        ("curve", axis.word, *_COLUMNS),
        rows,
    )


def _cells(point: PointFindings) -> tuple[Cell, ...]:
    claim = claim_at(point)
    if claim is None:
        return (None,) * len(_COLUMNS)

    def value(name: str) -> float | None:
        found = point.metric(name)
        return None if found is None else found.value

    user = value("heaviest_user.number")
    return (
        None if user is None else int(user),
        claim.proved.reason.partition(" sent ")[2] or claim.proved.reason,
        value("heaviest_user.own_debited"),
        claim.proved.epsilon,
        claim.claimed.epsilon,
        claim.verdict.value,
        value("mean_user.debited"),
        value("mean_user.proved"),
    )
