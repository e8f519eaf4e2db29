"""What the report shows of the ad pipeline.

What the report shows of delivery: how well ads are liked, and every way to ask for one.

What the report shows of fake devices in training.

What the report shows of the ledger: a user's day, and what each flow took in all.

What the report shows of the auction: three regimes, and a bid request.
"""

from collections.abc import Iterator, Sequence

from noisefloor_sim.pipelines import plotting
from noisefloor_sim.pipelines.ads.block import ATTACKS
from noisefloor_sim.pipelines.ads.market import example_lines
from noisefloor_sim.pipelines.ads.sales import REGIMES
from noisefloor_sim.pipelines.ads.training_figures import training_figures
from noisefloor_sim.pipelines.api import PointFindings
from noisefloor_sim.report import Cell, Curve, Plot, Section, Table

_TITLES = {
    "revenue": ("What a thousand impressions earn", "revenue per thousand"),
    "value": ("What they are worth to those who win them", "value per thousand"),
    "relevance": ("How much people like the ads that win", "mean liking"),
    "fill": ("How many impressions are sold", "share sold"),
}


def market_figures(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot | Table]:
    """Show what impressions are worth by what bidders get, and what they get."""
    for name, (title, label) in _TITLES.items():
        curves = _regimes(groups, name)
        if curves:
            yield Plot(
                title,
                "The same impressions, bidders and random draws; only what bidders get differs. "
                "Tracking tells all, context only the page; between them lies what devices "
                "released.",
                axis.label,
                label,
                curves,
                log_x=plotting.is_logarithmic(groups),
            )
    yield from _example(groups)


def _regimes(groups: plotting.Groups, name: str) -> list[Curve]:
    """Return the protected regime of each curve, and the other two of the first."""
    curves = []
    for curve, by_place in sorted(groups.items()):
        for regime in REGIMES:
            x, found = plotting.metric_along_axis(by_place, f"auction.{regime}.{name}")
            y = [metric.value for metric in found]
            if x and regime == "protected":
                curves.append(Curve(f"{curve}, protected", x, y, *plotting.interval_ends(found)))
            elif x and curve == min(groups):
                curves.append(Curve(regime, x, y, role="baseline"))
    return curves


def _example(groups: plotting.Groups) -> Iterator[Table]:
    """Show one bid request of the first point that has any, as it was sent."""
    points = [it for by_place in groups.values() for some in by_place.values() for it in some]
    for point in points:
        found = [point.metric(f"auction.request.{name}") for name in ("day", "symbol", "topic")]
        day, symbol, topic = (-1 if metric is None else int(metric.value) for metric in found)
        if day >= 0:
            lines = example_lines(point.scenario, day, symbol, topic)
            yield Table(
                "A bid request, as it leaves for bidders",
                "In the shape of OpenRTB 2.6, with no field for anybody: the one segment is the "
                "ad that the device released, beside the epsilon it was released at. Every field "
                "that is not listed is refused, here and by every reader.",
                ("line", "JSON"),
                list(enumerate(lines, start=1)),
            )
            return


_FLOWS = {
    "training": "training, all rounds",
    "request": "ad requests",
    "shown-ad": "report of a shown ad",
    "clicks": "report of clicks",
}
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
    releases = sum(int(figures[0]) for figures in flows.values())
    for named in point.findings.claims:
        if named.mechanism == "whole-day":
            figures = [named.claim.claimed.epsilon, named.claim.proved.epsilon]
            yield "the whole day", releases, None, None, *figures
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
            "Bias of the pushed ad's number in the averaged gradient, in units of the clip. The "
            "more noise the honest add, the more a forged report weighs.",
            axis.label,
            "bias",
            curves,
            log_x=plotting.is_logarithmic(groups),
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
            "of honest and attacked rounds; an evasive forger gains less and is found less.",
            ("curve", "at", *_COLUMNS.values()),
            rows,
        )


_BASELINES = (("popular", "popular ads"), ("open", "best by the model, in the open"))


def delivery_figures(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot | Table]:
    """Show how well ads are liked, and what protected impressions are worth."""
    yield from _liking(groups, axis)
    yield from _impressions(groups, axis)
    yield from _choices(groups)


def _liking(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot]:
    curves = plotting.measured_curves(groups, "relevance")
    if not curves:
        return
    for name, word in _BASELINES:
        x, found = plotting.metric_along_axis(groups[min(groups)], f"relevance.{name}")
        y = [metric.value for metric in found]
        curves.append(Curve(word, x, y, role="baseline"))
    yield Plot(
        "How much people like the ads they are shown",
        "Mean of what each person would rate the shown ad. Between popular ads, which know "
        "nobody, and the best by the model, which would have to be asked for in the open.",
        axis.label,
        "mean liking",
        curves,
        log_x=plotting.is_logarithmic(groups),
    )


def _impressions(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot]:
    curves = plotting.curves_with_theory(
        groups, "impressions_error", [("impressions_error.formula", "closed-form")]
    )
    if curves:
        yield Plot(
            "Error of the impressions that slates hide",
            "A slate does not tell which ad was shown; one protected report of each user's day "
            "does. Root mean square error per ad and day over the mean count, beside its formula.",
            axis.label,
            "relative error",
            curves,
            log_x=plotting.is_logarithmic(groups),
            log_y=True,
        )


def _choices(groups: plotting.Groups) -> Iterator[Table]:
    """Show every way to ask for an ad at equal proved epsilon, from exact laws."""
    rows: dict[tuple[float, str], tuple[Cell, ...]] = {}
    for by_place in groups.values():
        for points in by_place.values():
            at = points[0].metric("utility.epsilon")
            for metric in points[0].findings.metrics:
                kind, _, name = metric.name.partition(".top_one.")
                score = points[0].metric(f"utility.score.{name}")
                if kind == "utility" and at is not None and score is not None:
                    # Replicates and curves of one epsilon differ little: the first stands for all.
                    key = (round(at.value, 6), name)
                    rows.setdefault(key, (at.value, name, metric.value, score.value))
    if rows:
        yield Table(
            "Ways to ask for an ad, at equal proved epsilon",
            "From exact laws, for score rows of the world. The best ad shown, and the mean score "
            "shown: response on the best few beats noise on scores, and a slate from which the "
            "device picks beats all, even a random one at epsilon 0.",
            ("proved epsilon", "choice", "best ad shown", "mean score"),
            [row for _, row in sorted(rows.items())],
        )


USUAL = {
    "pipelines.ads.epsilon": "claimed epsilon of training, and of each request and report",
    "pipelines.ads.training.epsilon": "claimed epsilon of training",
    "pipelines.ads.delivery.epsilon": "claimed epsilon of one request",
}

_READING = "Measured success lies on its closed form, where there is one, and below the bound."
_READINGS = {
    "favourite_reused": "Showing one request's ad again tells nothing new: the same success as "
    "from one request.",
    "linking": "As if the two devices asked each on their own; devices in contact share requests, "
    "and are safer. " + _READING,
    "activity": "No epsilon speaks of how often a device asks, or when: this lies outside the "
    "guarantee, and no bound is drawn. A constant number of requests is the remedy.",
    "membership": "Among so few people; with more of them a person disappears.",
    "rated": "The adversary even knows the person's taste. " + _READING,
    "null": "The game itself, tried on requests that say nothing: no better than the prior.",
    "planted": "The game itself, tried on requests that say everything: always right.",
}


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
            *training_figures(groups, axis),
            *delivery_figures(groups, axis),
            *market_figures(groups, axis),
            *fraud_figures(groups, axis),
            *plotting.attack_plots(groups, axis, ATTACKS, _READINGS, usual=_READING),
            *ledger_tables(groups),
        ),
    )
