"""What the report shows of delivery: how well ads are liked, and every way to ask for one."""

from collections.abc import Iterator

from noisefloor_sim.pipelines.curves import Axis, Groups, along
from noisefloor_sim.pipelines.figures import beside, is_logarithmic, measured_curves
from noisefloor_sim.report.spec import Cell, Curve, Plot, Table

_BASELINES = (("popular", "popular ads"), ("open", "best by the model, in the open"))


def delivery_figures(groups: Groups, axis: Axis) -> Iterator[Plot | Table]:
    """Show how well ads are liked, and what protected impressions are worth."""
    yield from _liking(groups, axis)
    yield from _impressions(groups, axis)
    yield from _choices(groups)


def _liking(groups: Groups, axis: Axis) -> Iterator[Plot]:
    curves = measured_curves(groups, "relevance")
    if not curves:
        return
    for name, word in _BASELINES:
        x, found = along(groups[min(groups)], f"relevance.{name}")
        y = [metric.value for metric in found]
        curves.append(Curve(word, x, y, role="baseline"))
    yield Plot(
        "How much people like the ads they are shown",
        "Mean of what each person would rate the shown ad. Between popular ads, which know "
        "nobody, and the best by the model, which would have to be asked for in the open.",
        axis.label,
        "mean liking",
        curves,
        log_x=is_logarithmic(groups),
    )


def _impressions(groups: Groups, axis: Axis) -> Iterator[Plot]:
    curves = beside(groups, "impressions_error", [("impressions_error.formula", "closed-form")])
    if curves:
        yield Plot(
            "Error of the impressions that slates hide",
            "A slate does not tell which ad was shown; one protected report of each user's day "
            "does. Root mean square error per ad and day over the mean count, beside its formula.",
            axis.label,
            "relative error",
            curves,
            log_x=is_logarithmic(groups),
            log_y=True,
        )


def _choices(groups: Groups) -> Iterator[Table]:
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
