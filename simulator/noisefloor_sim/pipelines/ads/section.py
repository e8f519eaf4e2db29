"""What the report shows of the ad pipeline."""

from collections.abc import Iterator, Sequence

from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.evaluation import BASELINES
from noisefloor_sim.pipelines.ads.market import REGIMES
from noisefloor_sim.pipelines.ads.paired import paired_table
from noisefloor_sim.pipelines.base import PointFindings
from noisefloor_sim.pipelines.curves import Axis, Groups, along
from noisefloor_sim.report.spec import Curve, Plot, Role, Section, Table

USUAL = {
    "pipelines.ads.epsilon": "claimed epsilon of training, and of each request and report",
    "pipelines.ads.training.epsilon": "claimed epsilon of training",
    "pipelines.ads.delivery.epsilon": "claimed epsilon of one request",
}

GAMES = {
    "favourite": "the favourite ad, from one request",
    "favourite_all_days": "the favourite ad, from all requests linked",
    "topic": "the favourite topic, from one request",
    "topic_all_days": "the favourite topic, from all requests linked",
    "linking": "the other device of the same person, among twenty",
    "rated": "whether an ad is rated, from all training reports",
    "rating": "a rating of 0 or 1, from all training reports",
    "membership": "whether a person took part in training, among 64",
    "activity": "who is busy, from the number of requests an hour",
}

_READING = "Measured success lies on its closed form, where there is one, and below the bound."
_READINGS = {
    "activity": "No epsilon speaks of how often a device asks, or when: this lies outside the "
    "guarantee, and no bound is drawn. A constant number of requests is the remedy.",
    "membership": "Among so few people; with more of them a person disappears.",
    "rated": "The adversary even knows the person's taste. " + _READING,
}
_THEORY: tuple[tuple[str, Role], ...] = (
    ("closed_form", "closed-form"),
    ("bound", "bound"),
    ("prior", "baseline"),
)
_BASELINE_WORDS = dict(
    zip(
        BASELINES,
        ("means per ad", "one mean for all", "untrained", "ratings in the open"),
        strict=True,
    )
)


def section(points: Sequence[PointFindings]) -> Section:
    """Describe prediction, delivery, sales, attacks and what was spent."""
    axis = Axis.of(points, USUAL)
    groups = axis.grouped(points)
    return Section(
        "Advertising without identifiers",
        "Devices keep ratings and taste. They help to train the ads' model with protected "
        "reports, ask for ads with protected requests, and may have their impressions sold by "
        "what they released. Ratings that were held out, and what people truly like, score it.",
        (
            *_training(groups, axis),
            *_rounds(groups, axis),
            *_delivery(groups, axis),
            *_choices(groups),
            *_market(groups, axis),
            *_fraud(groups, axis),
            *_attacks(groups, axis),
            _spending(groups),
        ),
    )


def _training(groups: Groups, axis: Axis) -> Iterator[Plot | Table]:
    for name, title, reading, label in (
        (
            "rmse",
            "Error of predicted ratings",
            "Root mean square error on held-out ratings, lower is better. Below the mean per ad "
            "something was learned about people; the line of open ratings is what is lost.",
            "error",
        ),
        (
            "hits",
            "How often the best ad is predicted to be the best",
            "Higher is better; guessing blindly is right once in the number of ads.",
            "share of users",
        ),
    ):
        curves = _measured(groups, name)
        if curves:
            yield Plot(
                title, reading, axis.label, label, [*curves, *_baselines(groups, name)], log_x=True
            )
    yield from paired_table(groups, axis)


def _measured(groups: Groups, name: str) -> list[Curve]:
    curves = []
    for curve, by_place in sorted(groups.items()):
        x, found = along(by_place, name)
        if x:
            y = [metric.value for metric in found]
            band = _band(found)
            curves.append(Curve(curve, x, y, *band))
    return curves


def _band(found: Sequence[object]) -> tuple[list[float] | None, list[float] | None]:
    lows = [getattr(metric, "low") for metric in found]  # noqa: B009 - a Metric
    highs = [getattr(metric, "high") for metric in found]  # noqa: B009
    if any(value != value for value in (*lows, *highs)):
        return None, None
    return lows, highs


def _baselines(groups: Groups, name: str) -> list[Curve]:
    """Return the baselines of the first curve: they hardly depend on what was swept."""
    by_place = groups[min(groups)]
    curves = []
    for baseline, word in _BASELINE_WORDS.items():
        x, found = along(by_place, f"{name}.{baseline}")
        if x:
            y = [metric.value for metric in found]
            curves.append(Curve(word, x, y, role="baseline"))
    return curves


def _rounds(groups: Groups, axis: Axis) -> Iterator[Plot | Table]:
    """Show the rounds at the far end of each curve that has several."""
    wanted = {
        "clipped": ("How many values were clipped in each round", "share of values"),
        "drift": ("How far the ads' factors moved in each round", "distance"),
    }
    for name, (title, label) in wanted.items():
        curves = []
        for curve, by_place in sorted(groups.items()):
            point = by_place[max(by_place)][0]
            rounds = range(block_of(point.scenario).training.rounds)
            found = [point.metric(f"training.{name}.round_{number}") for number in rounds]
            y = [metric.value for metric in found if metric is not None]
            if len(y) > 3:
                curves.append(Curve(curve, [float(number + 1) for number in range(len(y))], y))
        if curves:
            yield Plot(
                title,
                f"At the largest {axis.word}. Factors that keep moving as far as in the first "
                "rounds are driven by noise."
                if name == "drift"
                else f"At the largest {axis.word}. Clipping hard makes bits worth sending.",
                "round",
                label,
                curves,
                log_y=name == "drift",
            )
    yield from _noise(groups)


def _noise(groups: Groups) -> Iterator[Table]:
    """Show the noise of the averaged gradient, measured and by its formula."""
    rows = []
    for curve, by_place in sorted(groups.items()):
        for place in sorted(by_place):
            point = by_place[place][0]
            names = ("measured", "formula", "users_needed")
            found = [point.metric(f"training.noise.{name}") for name in names]
            if found[1] is not None:
                values = [None if metric is None else metric.value for metric in found]
                rows.append((curve, place, *values))
    if rows:
        yield Table(
            "Noise in one number of the averaged gradient",
            "Measured from two halves of the reports, and by the formula. The last column is how "
            "many users it takes to bring it down to 0.1 of the clip: where that is more people "
            "than there are, the model learns nothing but noise.",
            ("curve", "at", "measured", "formula", "users for 0.1"),
            rows,
        )


def _delivery(groups: Groups, axis: Axis) -> Iterator[Plot]:
    curves = _measured(groups, "relevance")
    if not curves:
        return
    by_place = groups[min(groups)]
    for name, word in (("popular", "popular ads"), ("open", "best by the model, in the open")):
        x, found = along(by_place, f"relevance.{name}")
        y = [metric.value for metric in found]
        curves.append(Curve(word, x, y, role="baseline"))
    yield Plot(
        "How much people like the ads they are shown",
        "Mean of what each person would rate the shown ad. Between popular ads, which know "
        "nobody, and the best by the model, which would have to be asked for in the open.",
        axis.label,
        "mean liking",
        curves,
        log_x=True,
    )


def _choices(groups: Groups) -> Iterator[Table]:
    """Show every way to ask for an ad at equal proved epsilon, from exact laws."""
    rows: dict[tuple[float, str], tuple[object, ...]] = {}
    for by_place in groups.values():
        for points in by_place.values():
            for metric in points[0].findings.metrics:
                kind, _, name = metric.name.partition(".top_one.")
                if kind != "utility":
                    continue
                score = points[0].metric(f"utility.score.{name}")
                at = points[0].metric("utility.epsilon")
                if score is not None and at is not None:
                    key = (round(at.value, 6), name)
                    rows[key] = (at.value, name, metric.value, score.value)
    if rows:
        yield Table(
            "Ways to ask for an ad, at equal proved epsilon",
            "From exact laws, for score rows of the world. The best ad shown, and the mean score "
            "shown: response on the best few beats noise on scores, and a slate from which the "
            "device picks beats all, even a random one at epsilon 0.",
            ("proved epsilon", "choice", "best ad shown", "mean score"),
            [row for _, row in sorted(rows.items())],  # type: ignore[misc]
        )


def _market(groups: Groups, axis: Axis) -> Iterator[Plot]:
    titles = {
        "revenue": ("What a thousand impressions earn", "revenue per thousand"),
        "value": ("What they are worth to those who win them", "value per thousand"),
        "relevance": ("How much people like the ads that win", "mean liking"),
        "fill": ("How many impressions are sold", "share sold"),
    }
    for name, (title, label) in titles.items():
        curves = []
        for curve, by_place in sorted(groups.items()):
            for regime in REGIMES:
                x, found = along(by_place, f"auction.{regime}.{name}")
                if not x:
                    continue
                y = [metric.value for metric in found]
                role: Role = "measured" if regime == "protected" else "baseline"
                if regime == "protected":
                    low, high = _band(found)
                    curves.append(Curve(f"{curve}, protected", x, y, low, high))
                elif curve == min(groups):
                    curves.append(Curve(regime, x, y, role=role))
        if curves:
            yield Plot(
                title,
                "The same impressions, bidders and coins; only what bidders are told differs. "
                "Tracking tells all, context only the page; between them lies what devices "
                "released.",
                axis.label,
                label,
                curves,
                log_x=True,
            )


def _fraud(groups: Groups, axis: Axis) -> Iterator[Plot | Table]:
    curves = []
    for curve, by_place in sorted(groups.items()):
        x, found = along(by_place, "fraud.bias")
        if not x:
            continue
        low, high = _band(found)
        curves.append(
            Curve(f"{curve}, measured", x, [m.value for m in found], low, high, group=curve)
        )
        x, found = along(by_place, "fraud.bias_formula")
        y = [metric.value for metric in found]
        curves.append(Curve(f"{curve}, formula", x, y, role="closed-form", group=curve))
    if curves:
        yield Plot(
            "How far fake devices pull the pushed ad in training",
            "Bias of the pushed ad's number in the averaged gradient, in units of the clip. The "
            "more noise the honest add, the more a forged report weighs.",
            axis.label,
            "bias",
            curves,
            log_x=True,
        )
    rows = []
    for curve, by_place in sorted(groups.items()):
        for place in sorted(by_place):
            point = by_place[place][0]
            names = ("fraud.auc", "fraud.found", "fraud.false_alarms", "pushed_share")
            found_here = [point.metric(name) for name in names]
            if found_here[0] is not None:
                values = [None if metric is None else metric.value for metric in found_here]
                rows.append((curve, place, *values))
    if rows:
        yield Table(
            "Detecting the fakes from the tallies of training",
            "Area under the ROC curve and detections at one false alarm in a hundred, over runs "
            "of honest and attacked rounds; an evasive forger gains less and is found less.",
            ("curve", "at", "area under ROC", "found", "false alarms", "slots of the pushed ad"),
            rows,
        )


def _attacks(groups: Groups, axis: Axis) -> Iterator[Plot]:
    for game, what in GAMES.items():
        curves = []
        for curve, by_place in sorted(groups.items()):
            x, found = along(by_place, f"attack.{game}.success")
            if not x:
                continue
            low, high = _band(found)
            y = [metric.value for metric in found]
            curves.append(Curve(f"{curve}, measured", x, y, low, high, group=curve))
            for name, role in _THEORY:
                x, found = along(by_place, f"attack.{game}.{name}")
                if x:
                    y = [metric.value for metric in found]
                    label = f"{curve}, {role.replace('-', ' ')}"
                    curves.append(Curve(label, x, y, role=role, group=curve))
        if curves:
            yield Plot(
                f"How often the adversary is right: {what}",
                _READINGS.get(game, _READING),
                axis.label,
                "right guesses",
                curves,
                log_x=True,
            )


def _spending(groups: Groups) -> Table:
    """Show what each flow took from a mean user, at the far end of each curve."""
    rows = []
    for curve, by_place in sorted(groups.items()):
        point = by_place[max(by_place)][0]
        for metric in point.findings.metrics:
            if metric.name.startswith("spent."):
                flow = metric.name.removeprefix("spent.").replace("_", " ")
                rows.append((curve, flow, metric.value, point.scenario.budget))
    return Table(
        "What each flow took from a mean user",
        "Epsilon debited over the whole run, at the far end of the axis, beside the cap that "
        "nobody passes: all flows and devices of a user share it.",
        ("curve", "flow", "spent", "cap"),
        rows,
    )
