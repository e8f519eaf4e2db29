"""What the report shows of published models.

Tables of the section on published models.
"""

from collections.abc import Sequence

from noisefloor_sim.pipelines.api import PointFindings
from noisefloor_sim.pipelines.models import figures
from noisefloor_sim.pipelines.plotting import Axis, Groups, mean_rows
from noisefloor_sim.pipelines.releases import named_groups, noise_table, release_table
from noisefloor_sim.report import Figures, Plot, Reading, Section, Table, readings


def accuracy_table(groups: Groups, axis: Axis) -> Table:
    """Show accuracy and F of the last release, beside its baselines and its price."""
    names = (
        "accuracy.last",
        "f1.last",
        "accuracy.open",
        "accuracy.majority",
        "model.parameters",
        "model.claimed",
        "model.proved",
    )
    return Table(
        "How good the last release is, and what it costs",
        "Accuracy and macro F1 on people whose records the holder never had. Proved is of the "
        "whole model; where it is empty nothing is proved.",
        (
            "curve",
            axis.word,
            "accuracy",
            "macro F1",
            "without privacy",
            "majority",
            "parameters",
            "claimed",
            "proved",
        ),
        mean_rows(groups, names),
        ((Reading("{k} of {n} are above the majority class.", _above_majority),),),
    )


def _above_majority(table: Table) -> Figures | None:
    pairs = [
        (row[2], row[5])
        for row in table.rows
        if isinstance(row[2], float) and isinstance(row[5], float)
    ]
    return {"k": sum(one > other for one, other in pairs), "n": len(pairs)} if pairs else None


def attack_table(groups: Groups, axis: Axis) -> Table:
    """Show what each attack reached, beside its bound."""
    names = (
        "attack.canary.success",
        "attack.canary.bound",
        "attack.loss.auc",
        "attack.lira.auc",
        "attack.lira.auc_bound",
        "attack.lira.tpr.at_0.01",
        "attack.newcomer.auc",
        "attack.nearest.auc",
        "attack.missing_value.advantage",
    )
    return Table(
        "What each attack reached",
        "Canary: right guesses of one record that changes as much as any can. Areas: 0.5 is "
        "guessing. TPR: true positives at 1 % false ones. Differencing: who came between two "
        "releases. Nearest: of synthetic records. Missing value: how much more often it is named "
        "for members than for others. Empty: not played, or not resolved.",
        (
            "curve",
            axis.word,
            "canary",
            "its bound",
            "loss, area",
            "LiRA, area",
            "its bound",
            "LiRA, TPR",
            "differencing, area",
            "nearest, area",
            "missing value",
        ),
        mean_rows(groups, names),
    )


def auditor_table(groups: Groups, axis: Axis) -> Table:
    """Show what the auditor says where nothing leaks and where a fault was planted."""
    names = (
        "attack.canary.audited",
        "attack.stayer.audited",
        "attack.null.audited",
        "attack.planted.audited",
        "attack.planted.draws",
        "attack.null.auc",
        "attack.planted.auc",
    )
    return Table(
        "Whether the auditor can be trusted",
        "Audited 0: nothing was found. Gaussian noise of one release is audited by its trade-off "
        "curve, other noise and all releases by epsilon. "
        "Null: both inputs are the same, so 0 (and an area of 0.5) is right. Planted: so many "
        "draws for one charge, or, of one draw, noise for one parameter where all are published; "
        "an auditor that finds it audits more than is claimed. Planted, LiRA: a network without "
        "noise.",
        (
            "curve",
            axis.word,
            "audited, one release",
            "audited, all",
            "null",
            "planted",
            "draws",
            "null, LiRA",
            "planted, LiRA",
        ),
        mean_rows(groups, names),
        (
            readings.column_count(
                "null",
                lambda audited: audited > 0,
                some="{k} of {n} null games raise a false alarm.",
                none="None of {n} null games raises a false alarm.",
            ),
            readings.column_range(
                "planted, LiRA",
                "LiRA reaches an area of {span} on the planted network.",
            ),
        ),
    )


USUAL = {
    "pipelines.models.epsilon": "claimed epsilon of a release",
    "pipelines.models.release_every_days": "days from release to release",
    "pipelines.models.budget": "budget of the data set",
}


def report_section(points: Sequence[PointFindings]) -> Section:
    """Describe accuracy, attacks and budgets of published models."""
    axis = Axis.of(points, USUAL)
    groups = named_groups(axis, points)
    shown = figures.widest(points)
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
    along_axis = [*figures.accuracy_plots(groups, axis), *figures.success_plots(groups, axis)]
    return [
        *(along_axis if is_swept else ()),
        *figures.whole_model_plot(groups),
        *figures.parameter_plots(points),
        *figures.curve_plots(groups, axis),
        *figures.release_plots(groups, axis),
        *(figures.weekly_plots(groups, axis) if is_swept else ()),
    ]


def _tables(groups: Groups, axis: Axis) -> list[Table]:
    """Return the tables; of attacks and of noise only where there are figures."""
    attacks = [
        attack_table(groups, axis),
        auditor_table(groups, axis),
        noise_table(groups, axis),
    ]
    mounted = [
        table
        for table in attacks
        if any(cell is not None for row in table.rows for cell in row[2:])
    ]
    return [accuracy_table(groups, axis), *mounted, release_table(groups, axis)]


def _said(points: Sequence[PointFindings]) -> str:
    """Say where records come from, if that limits what is shown."""
    sources = {getattr(one.scenario.pipelines["models"], "source", "") for one in points}
    said = []
    if "synthetic" in sources:
        said.append(
            " Records are synthetic, by a stated law: figures are about methods, not about people."
        )
    if len(figures.widest(points)) < len(points):
        said.append(" Networks of several widths were run: curves are of the widest.")
    if any((found := one.metric("data.reused")) and found.value for one in points):
        said.append(
            " There are more users than rows: some rows are held by several users, and what is "
            "hidden is one user's record, not one row."
        )
    return "".join(said)
