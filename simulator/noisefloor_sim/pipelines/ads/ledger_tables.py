"""What the report shows of the ledger: a user's day, and what each flow took in all."""

from collections.abc import Iterator

from noisefloor_sim.pipelines.base import PointFindings
from noisefloor_sim.pipelines.curves import Groups
from noisefloor_sim.report.spec import Cell, Table

_FLOWS = {
    "training": "training, all rounds",
    "request": "ad requests",
    "shown-ad": "report of a shown ad",
    "clicks": "report of clicks",
}
_FIGURES = ("releases", "claimed_each", "proved_each", "claimed", "proved")


def ledger_tables(groups: Groups) -> Iterator[Table]:
    """Show the day, and the whole run, at the far end of each curve."""
    rows, spent = [], []
    for curve, by_place in sorted(groups.items()):
        point = by_place[max(by_place)][0]
        rows += [(curve, *row) for row in _day(point)]
        spent += [(curve, *row, point.scenario.budget) for row in _spent(point)]
    if rows:
        yield Table(
            "A user's day, in the ledger's words",
            "Epsilon of everything that one user releases on the day of training. The paper's sum "
            "counts one request and one bit of clicks; what is proved counts what is sent. "
            "Requests are those of a mean user on the busiest day, rounded up; the busiest user's "
            "stand below, and are not in the sum.",
            (
                "curve",
                "flow",
                "releases",
                "claimed each",
                "proved each",
                "claimed in the sum",
                "proved in all",
            ),
            rows,
        )
    if spent:
        yield Table(
            "What each flow took from a mean user",
            "Epsilon debited over the whole run, at the far end of the axis, beside the cap that "
            "nobody passes: all flows and devices of a user share it.",
            ("curve", "flow", "spent", "cap"),
            spent,
        )


def _day(point: PointFindings) -> Iterator[tuple[Cell, ...]]:
    """Yield the flows of a day, their sum, and the requests of the busiest user."""
    found = {flow: _figures(point, flow) for flow in _FLOWS}
    flows = {flow: figures for flow, figures in found.items() if figures is not None}
    for flow, figures in flows.items():
        yield _FLOWS[flow], int(figures[0]), *figures[1:]
    if not flows:
        return
    claimed, proved = (sum(figures[place] for figures in flows.values()) for place in (3, 4))
    yield "the whole day", sum(int(it[0]) for it in flows.values()), None, None, claimed, proved
    most, busiest = (point.metric(f"day.busiest_user.{name}") for name in ("releases", "proved"))
    if most is not None and busiest is not None:
        each = flows["request"][1:3] if "request" in flows else (None, None)
        yield "ad requests, busiest user", int(most.value), *each, None, busiest.value


def _figures(point: PointFindings, flow: str) -> list[float] | None:
    found = [point.metric(f"day.{flow}.{name}") for name in _FIGURES]
    values = [metric.value for metric in found if metric is not None]
    return values if len(values) == len(_FIGURES) else None


def _spent(point: PointFindings) -> Iterator[tuple[Cell, ...]]:
    for metric in point.findings.metrics:
        if metric.name.startswith("spent."):
            yield metric.name.removeprefix("spent.").replace("_", " "), metric.value
