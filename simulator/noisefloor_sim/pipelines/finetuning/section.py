"""What the report shows of fine-tuning."""

from collections.abc import Sequence
from dataclasses import replace

from noisefloor_sim.pipelines.api import PointFindings
from noisefloor_sim.pipelines.finetuning import curve_figures
from noisefloor_sim.pipelines.finetuning.block import MADE_UP, block_of
from noisefloor_sim.pipelines.plotting import Axis, Groups, mean_rows
from noisefloor_sim.pipelines.releases import named_groups, noise_table, release_table
from noisefloor_sim.report import Section, Table, readings

USUAL = {
    "pipelines.finetuning.epsilon": "claimed epsilon of a release",
    "pipelines.finetuning.rank": "rank of the factors",
    "pipelines.finetuning.sparsity": "share of units left out",
}


def report_section(points: Sequence[PointFindings]) -> Section:
    """Describe accuracy, clipping, attacks and budgets of fine-tuned models."""
    axis = Axis.of(points, USUAL)
    groups = named_groups(axis, points)
    is_swept = len({place for by_place in groups.values() for place in by_place}) > 1
    plots = [*curve_figures.along_axis(groups, axis)] if is_swept else []
    plots += curve_figures.shown_examples(points)
    return Section(
        "Private fine-tuning",
        "Users' texts reach a data holder, who publishes a classifier of them through the model "
        "publisher: a head on a frozen pretrained encoder, or some of its layers, or adapters. "
        "Accuracy is that of people whose texts the holder never had. Attacks are played by the "
        "code that publishes." + _said(points),
        (*plots, *_tables(groups, axis)),
    )


def _said(points: Sequence[PointFindings]) -> str:
    """Say where texts and encoder come from, and what is shown that nobody may see."""
    blocks = [block_of(one.scenario) for one in points]
    said = []
    if any(block.source == MADE_UP for block in blocks):
        said.append(
            " Texts are made up, by a stated distribution: figures are about methods, and not "
            "about people."
        )
    if any(block.backbone == MADE_UP for block in blocks):
        said.append(" The encoder is a small random one: it was trained on nothing.")
    if any(block.experiment for block in blocks):
        said.append(
            " This is an experiment: clip factors, masks and maps are of private examples, "
            "without any noise. No guarantee covers them."
        )
    return "".join(said)


def _tables(groups: Groups, axis: Axis) -> list[Table]:
    """Return the tables; without those that have no figure."""
    tables = [
        accuracy_table(groups, axis),
        clipping_table(groups, axis),
        attack_table(groups, axis),
        noise_table(groups, axis),
        maps_table(groups, axis),
        release_table(groups, axis),
    ]
    return [
        dense
        for dense in map(_without_empty_columns, tables)
        if len(dense.header) > 2  # beyond curve and place
    ]


def _without_empty_columns(table: Table) -> Table:
    """Leave out what was measured at no point."""
    kept = [0, 1, *(at for at in range(2, len(table.header)) if _is_measured(table, at))]
    return replace(
        table,
        header=tuple(table.header[at] for at in kept),
        rows=[tuple(row[at] for at in kept) for row in table.rows],
    )


def _is_measured(table: Table, at: int) -> bool:
    return any(row[at] is not None for row in table.rows)


def accuracy_table(groups: Groups, axis: Axis) -> Table:
    """Show accuracy beside its baselines, and what is updated at what noise."""
    names = (
        "accuracy.last",
        "accuracy.open",
        "accuracy.majority",
        "model.parameters",
        "training.updated",
        "training.noise_multiplier",
        "model.claimed",
        "model.proved",
    )
    header = (
        "accuracy",
        "without privacy",
        "majority",
        "published",
        "updated",
        "noise multiplier",
        "claimed",
        "proved",
    )
    return Table(
        "How good the last release is, and what it costs",
        "Accuracy on people whose texts the holder never had. Without privacy: a head on the same "
        "frozen features. Published and updated are counts of numbers; where proved is empty, "
        "nothing is proved.",
        ("curve", axis.word, *header),
        mean_rows(groups, names),
    )


def clipping_table(groups: Groups, axis: Axis) -> Table:
    """Show what a canary adds to the sum of a step, beside what is declared."""
    names = (
        "clipping.groups",
        "clipping.filled",
        "clipping.longest",
        "clipping.sensitivity",
        "clipping.noised",
        "clipping.planted_found",
    )
    header = ("groups", "filled", "added", "sensitivity", "noise is for", "planted fault found")
    return Table(
        "Whether every group is clipped as declared",
        "A record whose gradient is far too long in every group is played through the training "
        "itself. Filled: groups in which it adds exactly the bound. Added: the length of all that "
        "it adds to a sum. Sensitivity: the most that is declared. Noise is for: what the noise "
        "multiplier is over; where that is less than the sensitivity, less is proved than is "
        "claimed. Planted: 1 where any one group that is not clipped would have been found.",
        ("curve", axis.word, *header),
        mean_rows(groups, names),
        (
            readings.column_count(
                "planted fault found",
                lambda found: found == 1,
                some="{k} of {n} checks would have found a group that is not clipped.",
                none="None of {n} checks would have found a group that is not clipped.",
            ),
        ),
    )


def attack_table(groups: Groups, axis: Axis) -> Table:
    """Show what attacks and audits reached, beside bounds, null and planted faults."""
    names = (
        "attack.canary.success",
        "attack.canary.bound",
        "attack.canary.audited",
        "attack.null.audited",
        "attack.planted.audited",
        "attack.loss.auc",
        "attack.lira.auc",
        "attack.lira.auc_bound",
        "attack.planted.auc",
        "attack.null.auc",
    )
    header = (
        "canary",
        "its bound",
        "audited",
        "null",
        "planted",
        "loss, area",
        "LiRA, area",
        "its bound",
        "planted, area",
        "null, area",
    )
    return Table(
        "What attacks and audits reached",
        "Canary: right guesses of whether a record is in that fills every group. Audited: the "
        "epsilon that its games prove, 0 if none; the null has one input twice; the planted fault "
        "is many draws for one charge. Areas are of membership; planted is a head without privacy "
        "on half of the pool.",
        ("curve", axis.word, *header),
        mean_rows(groups, names),
        (
            readings.column_count(
                "null",
                lambda audited: audited > 0,
                some="{k} of {n} null games raise a false alarm.",
                none="None of {n} null games raises a false alarm.",
            ),
        ),
    )


def maps_table(groups: Groups, axis: Axis) -> Table:
    """Show what diagnostics say of importances, masks and clip factors."""
    names = (
        "diagnostics.clipped.examples",
        "diagnostics.clipped.unmasked",
        "diagnostics.clipped.masked",
        "diagnostics.mean_clip_factor.unmasked",
        "diagnostics.mean_clip_factor.masked",
        "diagnostics.mask_overlap",
        "diagnostics.importance.rows.at_0.1",
        "diagnostics.importance.rows.at_0.9",
        "diagnostics.importance.columns.at_0.1",
        "diagnostics.importance.columns.at_0.9",
    )
    header = (
        "examples",
        "clipped without masks",
        "clipped with masks",
        "mean factor without",
        "mean factor with",
        "mask overlap",
        "rows, 10 %",
        "rows, 90 %",
        "columns, 10 %",
        "columns, 90 %",
    )
    return Table(
        "What private examples look like to the training",
        "Of an experiment alone. Rows and columns: quantiles of the sums of sizes of units, over "
        "their median in the same matrix; 1 would mean that all units weigh alike.",
        ("curve", axis.word, *header),
        mean_rows(groups, names),
    )
