"""What the report shows of the ad pipeline.

What the report shows of fake devices in training.

What the report shows of the ledger: a user's day, and what each flow took in all.
"""

from collections.abc import Iterator, Sequence

from noisefloor_sim.pipelines import plotting
from noisefloor_sim.pipelines.ads.block import ATTACKS
from noisefloor_sim.pipelines.ads.delivery import delivery_of
from noisefloor_sim.pipelines.ads.delivery_figures import delivery_figures
from noisefloor_sim.pipelines.ads.market_figures import market_figures
from noisefloor_sim.pipelines.ads.training_figures import training_figures
from noisefloor_sim.pipelines.api import PointFindings
from noisefloor_sim.pipelines.attack_figures import attack_figures
from noisefloor_sim.report import (
    Cell,
    Figures,
    Plot,
    Reading,
    Section,
    Table,
    number,
    readings,
)

_FLOWS = {
    "training": "training, all rounds",
    "request": "ad requests",
    "shown-ad": "report of a shown ad",
    "panel-click": "report of a panel user's click",
    "clicks": "report of clicks",
}
_WHOLE_DAY = "the whole day"
_FIGURES = ("releases", "claimed_each", "proved_each", "claimed", "proved")


def ledger_tables(groups: plotting.Groups) -> Iterator[Table]:
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
            "stand below, and are not in the sum. Where each impression is requested, a corrected "
            "day claims the budget.",
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
            (_DAY_READINGS,),
        )
    if spent:
        yield Table(
            "What each flow took from a mean user",
            "Epsilon debited over the whole run, at the far end of the axis, beside the cap that "
            "all flows and devices of a user share.",
            ("curve", "flow", "spent", "cap"),
            spent,
            (_SPENT_READINGS,),
        )


def _spent_sums(table: Table) -> dict[str, tuple[float, float]]:
    """Return what all flows took, and the cap, for each curve."""
    sums: dict[str, tuple[float, float]] = {}
    for curve, _, spent, cap in table.rows:
        if isinstance(spent, int | float) and isinstance(cap, int | float):
            sums[str(curve)] = (sums.get(str(curve), (0.0, 0.0))[0] + spent, float(cap))
    return sums


def _within_cap(table: Table) -> Figures | None:
    sums = _spent_sums(table)
    is_true = sums and all(spent <= cap for spent, cap in sums.values())
    return {"most": number(max(spent for spent, _ in sums.values()))} if is_true else None


def _above_cap(table: Table) -> Figures | None:
    above = [curve for curve, (spent, cap) in _spent_sums(table).items() if spent > cap]
    return {"curves": "; ".join(above)} if above else None


_SPENT_READINGS = (
    Reading("All flows together took at most {most}, which is within the cap.", _within_cap),
    Reading("All flows together took more than the cap: {curves}.", _above_cap),
)


def _day_sums(table: Table) -> list[tuple[str, float, float]]:
    """Return the claimed and the proved sum of a day, for each curve."""
    return [
        (str(row[0]), float(row[5]), float(row[6]))
        for row in table.rows
        if row[1] == _WHOLE_DAY
        and isinstance(row[5], int | float)
        and isinstance(row[6], int | float)
    ]


def _day_is_overclaimed(table: Table) -> Figures | None:
    above = [(curve, proved / said) for curve, said, proved in _day_sums(table) if proved > said]
    if not above:
        return None
    curve, times = max(above, key=lambda one: one[1])
    return {"k": len(above), "n": len(_day_sums(table)), "curve": curve, "times": number(times)}


def _day_is_covered(table: Table) -> Figures | None:
    sums = _day_sums(table)
    return {"n": len(sums)} if sums and all(proved <= said for _, said, proved in sums) else None


_DAY_READINGS = (
    Reading(
        "More is proved of the day than is claimed in {k} of {n} curves, at most {times} times "
        "as much ({curve}).",
        _day_is_overclaimed,
    ),
    Reading(
        "No more is proved of the day than is claimed, in {n} of {n} curves.", _day_is_covered
    ),
)


def _day(point: PointFindings) -> Iterator[tuple[Cell, ...]]:
    """Yield the flows of a day, their sum, and the requests of the busiest user."""
    found = {flow: _figures(point, flow) for flow in _FLOWS}
    flows = {flow: figures for flow, figures in found.items() if figures is not None}
    for flow, figures in flows.items():
        yield _FLOWS[flow], int(figures[0]), *figures[1:]
    releases = sum(int(figures[0]) for figures in flows.values())
    for named in point.findings.claims:
        if named.mechanism == "whole-day":
            figures = [named.claim.claimed.epsilon, named.claim.proved.epsilon]
            yield _WHOLE_DAY, releases, None, None, *figures
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


_COLUMNS = {
    "fraud.auc": "area under ROC",
    "fraud.found": "found",
    "fraud.false_alarms": "false alarms",
    "pushed_share": "slots of the pushed ad",
}


def fraud_figures(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot | Table]:
    """Show how far fakes pull, and whether they are found."""
    curves = plotting.curves_with_theory(
        groups, "fraud.bias", [("fraud.bias_formula", "closed-form")]
    )
    if curves:
        yield Plot(
            "How far fake devices pull the pushed ad in training",
            "Bias of the pushed ad's number in the averaged gradient, in units of the clip, "
            "beside the formula of the expected gain.",
            axis.label,
            "bias",
            curves,
            log_x=plotting.is_logarithmic(groups),
            readings=(readings.CLOSED_FORM,),
        )
    rows = []
    for curve, by_place in sorted(groups.items()):
        for place in sorted(by_place):
            found = [
                plotting.metric_along_axis({place: by_place[place]}, name)[1] for name in _COLUMNS
            ]
            if found[0]:
                rows.append((curve, place, *(some[0].value if some else None for some in found)))
    if rows:
        yield Table(
            "Detecting the fakes from the tallies of training",
            "Area under the ROC curve and detections at one false alarm in a hundred, over runs "
            "of honest and attacked rounds.",
            ("curve", "at", *_COLUMNS.values()),
            rows,
            (readings.column_range("found", "Of attacked runs {span} are found."),),
        )


USUAL = {
    "pipelines.ads.epsilon": "claimed epsilon of training, and of each request and report",
    "pipelines.ads.training.epsilon": "claimed epsilon of training",
    "pipelines.ads.delivery.epsilon": "claimed epsilon of one request",
}

_ONE_MODEL = (
    "Candidates are people of the world, one for each ad that is somebody's favourite, the same "
    "at every point. They score ads by what they truly like: no model is between them and the "
    "mechanism."
)
_FIRST_BROADCAST = (
    "The adversary knows the person's other ratings. Reports are about the first broadcast, a "
    "public constant: the game does not depend on what was trained."
)
_RUN_MODEL = (
    "The same candidates, who score ads by the model of the run: what it predicts alike for two "
    "of them, no request tells apart."
)
_NOTES = {
    "favourite": _ONE_MODEL,
    "favourite_all_days": _ONE_MODEL,
    "favourite_trained": _RUN_MODEL,
    "favourite_trained_all_days": _RUN_MODEL,
    "topic": _ONE_MODEL,
    "topic_all_days": _ONE_MODEL,
    "favourite_reused": "The adversary sees the ad of one request shown again on all days.",
    "linking": "Requests of even days and of odd days stand for the two devices of a user; where "
    "they cannot be linked, or there is one day, both are drawn for the game.",
    "activity": "The busiest quarter of users and the quietest, by the requests of the run. No "
    "epsilon covers how often a device asks: this lies outside the guarantee, and no bound is "
    "drawn.",
    "rated": _FIRST_BROADCAST,
    "rating": _FIRST_BROADCAST,
    "null": "The game itself, tried on requests that do not depend on the favourite.",
    "planted": "The game itself, tried on requests that always name the favourite.",
}


def _named_by_choice(groups: plotting.Groups) -> plotting.Groups:
    """Name the mechanism of requests in each curve, where curves differ in it."""
    choices = {
        curve: {delivery_of(point.scenario).choice.value for some in by.values() for point in some}
        for curve, by in groups.items()
    }
    if len(set().union(*choices.values())) == 1:
        return groups
    return {f"{curve}, {' or '.join(sorted(choices[curve]))}": by for curve, by in groups.items()}


def report_section(points: Sequence[PointFindings]) -> Section:
    """Describe prediction, delivery, sales, attacks and what was spent."""
    axis = plotting.Axis.of(points, USUAL)
    groups = axis.grouped(points)
    return Section(
        "Advertising without identifiers",
        "Devices keep ratings and taste. They help to train the ads' model with protected "
        "reports, ask for ads with protected requests, and may have their impressions sold by "
        "what they released. Ratings that were held out, and what people truly like, score it.",
        (
            *market_figures(groups, axis),
            *training_figures(groups, axis),
            *delivery_figures(groups, axis),
            *fraud_figures(groups, axis),
            *attack_figures(_named_by_choice(groups), axis, ATTACKS, _NOTES),
            *ledger_tables(groups),
        ),
    )
