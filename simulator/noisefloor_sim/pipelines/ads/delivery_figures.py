"""What the report shows of delivery: how well ads are liked, and every way to ask for one."""

import math
from collections import Counter
from collections.abc import Iterator

from noisefloor_sim.pipelines import plotting
from noisefloor_sim.report import Cell, Curve, Figures, Plot, Reading, Table, readings

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
        "Mean of what each person would rate the shown ad, beside popular ads, which are the same "
        "for all, and the best by the model, which would have to be asked for in the open.",
        axis.label,
        "mean liking",
        curves,
        log_x=plotting.is_logarithmic(groups),
        readings=(readings.against("popular ads"), readings.TREND),
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
            readings=(readings.CLOSED_FORM, readings.TREND),
        )


def _choices(groups: plotting.Groups) -> Iterator[Table]:
    """Show every way to ask for an ad at equal claimed epsilon, from exact distributions."""
    rows: dict[tuple[float, str], tuple[Cell, ...]] = {}
    for by_place in groups.values():
        for points in by_place.values():
            at = points[0].metric("utility.epsilon")
            for metric in points[0].findings.metrics:
                kind, _, name = metric.name.partition(".top_one.")
                if kind == "utility" and at is not None:
                    found = [
                        points[0].metric(f"utility.{one}.{name}")
                        for one in ("score", "proved", "favourite")
                    ]
                    score, proved, named = (None if one is None else one.value for one in found)
                    # Nothing here depends on what was trained: the first point stands for all.
                    key = (round(at.value, 6), name)
                    rows.setdefault(key, (at.value, proved, name, metric.value, score, named))
    if rows:
        yield Table(
            "Ways to ask for an ad, at equal claimed epsilon and with one model",
            "From exact distributions, for users who score ads by what they truly like: how often "
            "the best ad is shown, how much what is shown is liked, and how often one request "
            "names the candidate it is of, as in the attack on the favourite ad. Printed is the "
            "paper's noisy max; with the noise that keeps epsilon it is noisy-max.",
            ("epsilon", "proved", "choice", "best ad shown", "mean liking", "favourite named"),
            [row for _, row in sorted(rows.items())],
            ((Reading("{said}", _best_choices),), (Reading("{said}", _printed_names),)),
        )


def _printed_names(table: Table) -> Figures | None:
    """Compare the noisy max as printed with the one that keeps epsilon."""
    found: dict[str, list[float]] = {"printed": [], "noisy-max": []}
    for _, _, choice, _, _, named in table.rows:
        if str(choice) in found and isinstance(named, int | float):
            found[str(choice)].append(named)
    printed, kept = found.values()
    if not printed or len(printed) != len(kept):
        return None
    above = sum(one > other for one, other in zip(printed, kept, strict=True))
    return {
        "said": f"One request by the noisy max as printed names the favourite in "
        f"{readings.span(printed)}, by the one that keeps epsilon in {readings.span(kept)}: more "
        f"often at {above} of {len(kept)} epsilons."
    }


def _best_choices(table: Table) -> Figures | None:
    """Name the choice that keeps epsilon and shows what is liked best, at each epsilon."""
    best: dict[float, tuple[float, str]] = {}
    for epsilon, proved, choice, _, score, _ in table.rows:
        if any(isinstance(one, str | None) for one in (epsilon, proved, score)):
            continue
        claimed, least, liking = (float(str(one)) for one in (epsilon, proved, score))
        if least <= claimed + 1e-6:  # what proves more than it claims is no rival
            best[claimed] = max(best.get(claimed, (-math.inf, "")), (liking, str(choice)))
    if not best:
        return None
    counts = Counter(choice for _, choice in best.values())
    listed = ", ".join(
        f"{choice} at {times} of {len(best)}" for choice, times in counts.most_common()
    )
    return {"said": f"Of what keeps epsilon, the best liked ads are shown by {listed}."}
