"""What the report shows of a collection of records."""

from collections.abc import Sequence

from noisefloor_sim.pipelines.base import PointFindings
from noisefloor_sim.pipelines.collection.block import block_of
from noisefloor_sim.pipelines.curves import Axis, Groups, along
from noisefloor_sim.pipelines.figures import attack_plots, band, is_logarithmic
from noisefloor_sim.report.spec import Curve, Plot, Role, Section, Table

EPSILON = "pipelines.collection.epsilon"

GAMES = {
    "attribute": "one value, from one report in training",
    "label": "the label, from one report in training",
    "label_known": "the label, its shares known before",
    "record": "all that a report tells of, nothing known before",
    "record_known": "the whole record, all records and their shares known before",
    "class_zero": "a report that proves a minimum or a negative label",
    "products": "the label, from products of class and label without noise",
    "repeated": "one value or decision, from all questions of a user",
}
_READINGS = {
    "label_known": "Naming the more frequent label is right as often as the baseline says; a "
    "report that is worth little does not move the guess.",
    "record": "Guessing blindly is right once in the number of symbols that a report is one of.",
    "record_known": "Records go together: who knows them all starts from the most frequent one.",
    "class_zero": "As printed, class 0 is reported by nobody but those who hold it: each such "
    "report is a proof.",
    "products": "Nothing hides the products: the label follows from them, and every class from "
    "the label. The closed form is that of a single product.",
    "repeated": "Every question has fresh coins: the majority of them is right ever more often.",
}
_READING = (
    "Measured success lies on its closed form and below the bound that is proved; the baseline "
    "is a guess without the report."
)
_LINES: tuple[tuple[str, str, Role], ...] = (
    ("accuracy.device", "on the device", "measured"),
    ("accuracy.question", "protected question", "measured"),
    ("accuracy.open", "without privacy", "bound"),
    ("accuracy.majority", "majority class", "baseline"),
)
_FLOWS = (
    ("spent.selection_report", "selection"),
    ("spent.training_report", "training"),
    ("spent.question", "questions"),
)


def section(points: Sequence[PointFindings]) -> Section:
    """Describe accuracy, attacks, budgets and who holds what."""
    usual = {EPSILON: "claimed epsilon of a phase"}
    axis = Axis.of(points, usual)
    groups = axis.grouped(points)
    return Section(
        "Collection of records",
        "Each user's wearable holds one record. Owners of training records report once for each "
        "phase; the server learns a classifier from what came and publishes it. It is scored on "
        "the true labels of users whose records nobody trained on." + _reuse(points),
        (
            _accuracy_plot(groups, axis),
            *attack_plots(groups, axis, GAMES, _READINGS, usual=_READING),
            _spent_plot(groups, axis),
            *_question_plots(points, axis),
            _sizes_table(groups),
        ),
    )


def _reuse(points: Sequence[PointFindings]) -> str:
    """Say whether users share rows, and where ranges come from."""
    said = []
    if any((found := one.metric("data.reused")) and found.value for one in points):
        said.append(
            " There are more users than rows: users draw rows of their side with replacement, "
            "and intervals are those of as many rows."
        )
    if any((found := one.metric("data.ranges_public")) and not found.value for one in points):
        said.append(
            " Ranges are those of a public data set's own rows; of private data they would have "
            "to be declared, or asked for under a budget."
        )
    return "".join(said)


def _accuracy_plot(groups: Groups, axis: Axis) -> Plot:
    curves = []
    for name, by_place in sorted(groups.items()):
        for metric, said, role in _LINES:
            x, found = along(by_place, metric)
            if x:
                ends = band(found) if role == "measured" else (None, None)
                y = [one.value for one in found]
                curves.append(Curve(f"{name}, {said}", x, y, *ends, role=role, group=name))
    return Plot(
        "How often the true label is named",
        "A model is worth something where it lies above the majority class; the line without "
        "privacy is a model on the same users' records as they are. A protected question can "
        "never be better than its noise.",
        axis.label,
        "right labels of users who did not train",
        curves,
        log_x=is_logarithmic(groups),
    )


def _spent_plot(groups: Groups, axis: Axis) -> Plot:
    curves = []
    for name, by_place in sorted(groups.items()):
        for metric, said in _FLOWS:
            x, found = along(by_place, metric)
            if any(one.value for one in found):
                y = [one.value for one in found]
                curves.append(Curve(f"{name}, {said}", x, y, group=name))
    x, found = along(next(iter(groups.values())), "spent")
    curves = curves or [Curve("nothing", x, [one.value for one in found])]
    return Plot(
        "What a mean user has spent",
        "Phases add up: who takes part in selection and training and asks pays for each. What is "
        "sent without noise has no epsilon, and nothing is debited for it.",
        axis.label,
        "epsilon",
        curves,
        log_x=is_logarithmic(groups),
    )


def _question_plots(points: Sequence[PointFindings], axis: Axis) -> list[Plot]:
    """Show the questions of each day at the far end of the axis, if any were asked."""
    point = max(points, key=axis.place)
    days = [
        day for day in range(point.scenario.days) if point.metric(f"questions.asked.day_{day}")
    ]
    if not days:
        return []
    curves = []
    for name in ("asked", "refused"):
        found = [point.metric(f"questions.{name}.day_{day}") for day in days]
        y = [one.value for one in found if one is not None]
        curves.append(Curve(name, [str(day + 1) for day in days], y))
    return [
        Plot(
            "Questions on each day",
            f"At the largest {axis.word}. A question that the budget does not cover is refused, "
            "and nothing is sent.",
            "day",
            "questions",
            curves,
            kind="bar",
        )
    ]


def _sizes_table(groups: Groups) -> Table:
    """Show what was chosen, and how much was learnt from."""
    names = ("sizes.attributes", "sizes.classes", "training.reports_counted", "model.bytes")
    rows: list[tuple[str | int | float, ...]] = []
    for name, by_place in sorted(groups.items()):
        for place in sorted(by_place):
            point = by_place[place][0]
            found = [point.metric(one) for one in names]
            numbers = [int(one.value) if one is not None else 0 for one in found]
            rows.append((name, place, block_of(point.scenario).source, *numbers))
    return Table(
        "Sizes",
        "Where they are not given, attributes and classes follow from the number of owners and "
        "attributes and from epsilon alone: no record is looked at.",
        ("curve", "at", "records", "attributes told of", "classes", "reports", "model, bytes"),
        rows,
    )
