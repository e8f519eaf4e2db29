"""Tables and lines that the report shows of all releases: their noise, their costs, baselines."""

from collections.abc import Mapping, Sequence

from noisefloor_sim.pipelines import plotting
from noisefloor_sim.pipelines.api import PointFindings
from noisefloor_sim.pipelines.plotting import Axis, Groups, mean_rows
from noisefloor_sim.report import Curve, Role, Table


def named_groups(axis: plotting.Axis, points: Sequence[PointFindings]) -> plotting.Groups:
    """Return the points by curve; the variant is named where there are two.

    Methods are named without the word; what is the same for all curves is left out.
    """
    variants = {point.scenario.variant for point in points}
    groups: plotting.Groups = {}
    for name, by_place in axis.grouped(points).items():
        words = [word.removeprefix("method ") for word in name.split(", ")]
        kept = words if len(variants) > 1 or len(words) == 1 else words[1:]
        groups[", ".join(kept)] = by_place
    return groups


def shared_curves(groups: plotting.Groups, lines: Mapping[str, tuple[str, Role]]) -> list[Curve]:
    """Return metrics that are alike for all groups, averaged over them: one line each.

    Args:
        groups: The points.
        lines: Name and role of each line, by its metric.
    """
    everybody: dict[float, list[PointFindings]] = {}
    for by_place in groups.values():
        for place, some in by_place.items():
            everybody.setdefault(place, []).extend(some)
    curves = []
    for metric, (name, role) in lines.items():
        x, found = plotting.metric_along_axis(everybody, metric)
        if x:
            curves.append(Curve(name, x, [one.value for one in found], role=role))
    return curves


def noise_table(groups: Groups, axis: Axis) -> Table:
    """Show what the tests of the noise of all releases found."""
    names = (
        "residuals.draws",
        "residuals.tests",
        "residuals.p_value",
        "residuals.planted_found",
    )
    return Table(
        "Whether releases carry the declared noise",
        "What was released less a noiseless recomputation, over the declared scale, against the "
        "declared distribution. P-value: the smallest of all tests times their number; 1e-9 or "
        "less is a misfit. Planted: 1 where as many draws of noise a quarter too small would have "
        "been rejected, 0 where they would not and nothing may be concluded.",
        ("curve", axis.word, "draws", "tests", "p-value", "planted fault found"),
        mean_rows(groups, names),
    )


def release_table(groups: Groups, axis: Axis) -> Table:
    """Show how many releases were made and refused, and what all of them cost."""
    names = (
        "releases.made",
        "releases.refused",
        "spent.debited",
        "spent.claimed",
        "spent.proved",
        "spent.together",
        "spent.budget",
    )
    return Table(
        "What all releases cost",
        "Debited is what was claimed, added up. Spent is what the ledger decides by: the smaller "
        "of that sum and what its filter proves of releases that are chosen one after the other. "
        "Proved is the sum of what is proved of each. Together: what an accountant proves of all "
        "noise at once, where it knows its distribution.",
        (
            "curve",
            axis.word,
            "made",
            "refused",
            "debited",
            "spent",
            "proved, added up",
            "proved together",
            "budget",
        ),
        mean_rows(groups, names),
    )
