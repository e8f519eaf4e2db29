"""What the report shows of published models."""

from collections.abc import Sequence

from noisefloor_sim.pipelines.base import PointFindings
from noisefloor_sim.pipelines.curves import Axis, Groups
from noisefloor_sim.pipelines.models.attack_figures import (
    curve_plots,
    success_plots,
    weekly_plots,
)
from noisefloor_sim.pipelines.models.model_figures import (
    accuracy_plots,
    parameter_plots,
    release_plots,
    whole_model_plot,
)
from noisefloor_sim.pipelines.models.naming import named_groups, widest
from noisefloor_sim.pipelines.models.tables import (
    accuracy_table,
    attack_table,
    auditor_table,
    release_table,
)
from noisefloor_sim.report.spec import Plot, Section, Table

USUAL = {
    "pipelines.models.epsilon": "claimed epsilon of a release",
    "pipelines.models.release_every_days": "days from release to release",
    "pipelines.models.budget": "budget of the data set",
}


def section(points: Sequence[PointFindings]) -> Section:
    """Describe accuracy, attacks and budgets of published models."""
    axis = Axis.of(points, USUAL)
    groups = named_groups(axis, points)
    shown = widest(points)
    return Section(
        "Published models",
        "Users' records reach a data holder day by day. Every so often it publishes a classifier "
        "through the model publisher, which charges the data set's budget before it draws. "
        "Accuracy is that of people whose records the holder never had. Attacks are played by "
        "the same code that publishes." + _said(points),
        (*_plots(named_groups(axis, shown), axis, points), *_tables(groups, axis)),
    )


def _plots(groups: Groups, axis: Axis, points: Sequence[PointFindings]) -> list[Plot]:
    """Draw what runs along the axis, if anything does, and what has an axis of its own."""
    is_swept = len({place for by_place in groups.values() for place in by_place}) > 1
    along_axis = [*accuracy_plots(groups, axis), *success_plots(groups, axis)]
    return [
        *(along_axis if is_swept else ()),
        *whole_model_plot(groups),
        *parameter_plots(points),
        *curve_plots(groups, axis),
        *release_plots(groups, axis),
        *(weekly_plots(groups, axis) if is_swept else ()),
    ]


def _tables(groups: Groups, axis: Axis) -> list[Table]:
    return [
        accuracy_table(groups, axis),
        attack_table(groups, axis),
        auditor_table(groups, axis),
        release_table(groups, axis),
    ]


def _said(points: Sequence[PointFindings]) -> str:
    """Say where records come from, if that limits what is shown."""
    sources = {getattr(one.scenario.pipelines["models"], "source", "") for one in points}
    said = []
    if "synthetic" in sources:
        said.append(
            " Records are synthetic, by a stated law: figures are about methods, not about people."
        )
    if len(widest(points)) < len(points):
        said.append(" Networks of several widths were run: curves are of the widest.")
    if any((found := one.metric("data.reused")) and found.value for one in points):
        said.append(
            " There are more users than rows: some rows are held by several users, and what is "
            "hidden is one user's record, not one row."
        )
    return "".join(said)
