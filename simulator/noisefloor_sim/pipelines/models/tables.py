"""Tables of the section on published models."""

from noisefloor_sim.pipelines.curves import Axis, Groups, mean_rows
from noisefloor_sim.report.spec import Table


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
    )


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
        "Audited 0: nothing was found. "
        "Null: both inputs are the same, so 0 (and an area of 0.5) is right. Planted: so many "
        "draws for one charge, or, of one draw, noise for one parameter where all are published; "
        "it should lie above the claim. Planted, LiRA: a network without noise.",
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
    )


def release_table(groups: Groups, axis: Axis) -> Table:
    """Show how many releases were made and refused, and what all of them cost."""
    names = (
        "releases.made",
        "releases.refused",
        "spent.claimed",
        "spent.proved",
        "spent.together",
        "spent.budget",
    )
    return Table(
        "What all releases cost",
        "Debited is what was claimed, added up; proved is the sum of what is proved. Together: "
        "what an accountant proves of all noise at once, where it knows its law.",
        (
            "curve",
            axis.word,
            "made",
            "refused",
            "debited",
            "proved, added up",
            "proved together",
            "budget",
        ),
        mean_rows(groups, names),
    )
