"""Tables of the section on a collection of records."""

from collections.abc import Mapping

from noisefloor_sim.pipelines.curves import Axis, Groups, along, mean_rows
from noisefloor_sim.report.spec import Cell, Table

_FLOWS = ("spent.selection_report", "spent.training_report", "spent.question")


def accuracy_table(groups: Groups) -> Table:
    """Show how often the true label is named, where there is one place along the axis."""
    names = [f"accuracy.{one}" for one in ("device", "question", "open", "majority")]
    return Table(
        "How often the true label is named",
        "Of users who did not train: on the device, by protected questions, by a model without "
        "privacy on the same users' records, and by always naming the more frequent label.",
        ("curve", "on the device", "question", "without privacy", "majority class"),
        [(row[0], *row[2:]) for row in mean_rows(groups, names, 0.0)],
    )


def attack_table(groups: Groups, games: Mapping[str, str], reading: str) -> Table:
    """Show what the adversary reached in each game, where there is one place along the axis."""
    rows: list[tuple[Cell, ...]] = []
    for game, what in games.items():
        for curve, by_place in sorted(groups.items()):
            names = [
                f"attack.{game}.{one}" for one in ("success", "closed_form", "bound", "prior")
            ]
            found = [along(by_place, name)[1] for name in names]
            if not found[0]:
                continue
            ends = found[0][0].low, found[0][0].high
            values = [one[0].value if one else None for one in found]
            rows.append((what, curve, values[0], *ends, *values[1:]))
    return Table(
        "How often the adversary is right",
        reading,
        ("guessed", "curve", "right", "from", "to", "closed form", "bound", "baseline"),
        rows,
    )


def spent_table(groups: Groups, axis: Axis) -> Table:
    """Show what each phase took of a mean user."""
    names = (*_FLOWS, "spent", "spent_share", "questions.refused")
    return Table(
        "What each phase took of a mean user",
        "Epsilon as debited, over all users, also those who took no part; the share is that of "
        "the budget. A question that is refused costs nothing.",
        ("curve", axis.word, "selection", "training", "questions", "in all", "share", "refused"),
        mean_rows(groups, names, 0.0),
    )


def sizes_table(groups: Groups, axis: Axis) -> Table:
    """Show what was chosen, and how much was learnt from."""
    names = ("sizes.attributes", "sizes.classes", "training.reports_counted", "model.bytes")
    return Table(
        "Sizes",
        "Where they are not given, attributes and classes follow from the number of owners and "
        "attributes and from epsilon alone: no record is looked at.",
        ("curve", axis.word, "attributes told of", "classes", "reports", "model, bytes"),
        mean_rows(groups, names, 0.0),
    )
