"""What the report shows of a collection of records.

Tables of the section on a collection of records.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from noisefloor_sim.pipelines import plotting
from noisefloor_sim.pipelines.api import PointFindings
from noisefloor_sim.pipelines.attack_figures import attack_figures
from noisefloor_sim.pipelines.collection.block import ATTACKS
from noisefloor_sim.report import Curve, Figures, Plot, Reading, Section, Table, readings

_FLOWS = (
    *("spent.range_report", "spent.selection_report", "spent.training_report"),
    "spent.question",
)


def accuracy_table(groups: plotting.Groups) -> Table:
    """Show how often the true label is named, where there is one place along the axis."""
    names = [f"accuracy.{one}" for one in ("device", "question", "open", "majority")]
    return Table(
        "How often the true label is named",
        "Of users who did not train: on the device, by protected questions, by a model without "
        "privacy on the same users' records, and by always naming the more frequent label.",
        ("curve", "on the device", "question", "without privacy", "majority class"),
        [(row[0], *row[2:]) for row in plotting.mean_rows(groups, names, 0.0)],
        ((Reading("{k} of {n} are above the majority class on the device.", _above_majority),),),
    )


def _above_majority(table: Table) -> Figures | None:
    device, majority = (
        readings.column(table, name) for name in ("on the device", "majority class")
    )
    pairs = list(zip(device, majority, strict=True))
    return {"k": sum(one > other for one, other in pairs), "n": len(pairs)} if pairs else None


def spent_table(groups: plotting.Groups, axis: plotting.Axis) -> Table:
    """Show what each phase took of a mean user."""
    names = (*_FLOWS, "spent", "spent_share", "questions.refused")
    return Table(
        "What each phase took of a mean user",
        "Epsilon as debited, over all users, also those who took no part; the share is that of "
        "the budget. A question that is refused costs nothing.",
        (
            *("curve", axis.word, "ranges", "selection", "training", "questions"),
            *("in all", "share", "refused"),
        ),
        plotting.mean_rows(groups, names, 0.0),
    )


def lead_table(groups: plotting.Groups, axis: plotting.Axis) -> Table:
    """Show by how much each model is better than naming the most frequent label."""
    names = ("accuracy.device", "accuracy.majority", "lead", "values.clipped")
    return Table(
        "Lead over the majority class",
        "What a model on the device names right beyond always naming the most frequent label: at "
        "0 or below, it is of no use. Beside it the share of owners' numbers that lay outside of "
        "their range, declared or learnt, and were moved to its end before they were reported.",
        ("curve", axis.word, "on the device", "majority class", "lead", "moved into range"),
        plotting.mean_rows(groups, names),
        (
            readings.column_count(
                "lead",
                lambda lead: lead <= 0,
                some="{k} of {n} models are at or below the majority class: they are of no use.",
                none="All {n} models are above the majority class.",
            ),
        ),
    )


def sizes_table(groups: plotting.Groups, axis: plotting.Axis) -> Table:
    """Show what was chosen, and how much was learnt from."""
    names = ("sizes.attributes", "sizes.classes", "training.reports_counted", "model.bytes")
    return Table(
        "Sizes",
        "Where they are not given, attributes and classes follow from the number of owners and "
        "attributes and from epsilon alone: no record is looked at.",
        ("curve", axis.word, "attributes reported", "classes", "reports", "model, bytes"),
        plotting.mean_rows(groups, names, 0.0),
    )


EPSILON = "pipelines.collection.epsilon"

_CANDIDATES = (
    "The adversary knows the records that an owner may hold, as many of either label, the same at "
    "every point whatever classes are made of them; of noise on single values it knows the two "
    "values."
)
_NOTES = {
    "label_known": "The guess without the reports names the more frequent label.",
    "attribute": _CANDIDATES,
    "label": _CANDIDATES,
    "record": _CANDIDATES,
    "class_zero": "As printed, only those who hold class 0 report it.",
    "products": "Nothing hides the products: the label follows from them, and every class from "
    "the label. The closed form is that of a single product.",
    "members": "Support vectors are training rows.",
    "repeated": "Every question has fresh noise.",
}
_ACCURACIES = {
    "accuracy.device": (
        "How often the true label is named, on the device",
        "The line without privacy is a model on the same users' records as they are, the majority "
        "class a guess that names the more frequent label.",
    ),
    "accuracy.question": (
        "How often the true label is named, by protected questions",
        "What is asked is protected, too. The line without privacy is a model on the same users' "
        "records as they are, asked in the open.",
    ),
}


def report_section(points: Sequence[PointFindings]) -> Section:
    """Describe accuracy, attacks, budgets and who holds what."""
    usual = {EPSILON: "claimed epsilon of a phase", "budget": "budget of a user"}
    axis = plotting.Axis.of(points, usual)
    groups = axis.grouped(points)
    return Section(
        "Collection of records",
        "Each user's wearable holds one record. Owners of training records report once for each "
        "phase; the server learns a classifier from what came and publishes it. It is scored on "
        "the true labels of users whose records nobody trained on." + _reuse(points),
        (
            *_curves(groups, axis),
            *_question_plots(points),
            lead_table(groups, axis),
            spent_table(groups, axis),
            sizes_table(groups, axis),
        ),
    )


def _curves(groups: plotting.Groups, axis: plotting.Axis) -> list[Plot | Table]:
    """Draw what runs along an axis; what was measured at one place only is a table."""
    if len({place for by_place in groups.values() for place in by_place}) == 1:
        return [accuracy_table(groups), *attack_figures(groups, axis, ATTACKS, _NOTES)]
    return [
        *_accuracy_plots(groups, axis),
        *attack_figures(groups, axis, ATTACKS, _NOTES),
        _spent_plot(groups, axis),
    ]


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


def _accuracy_plots(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot]:
    """Draw both ways to ask, beside a model without privacy; the majority class is one for all."""
    everybody = {
        place: [point for by_place in groups.values() for point in by_place.get(place, ())]
        for place in {place for by_place in groups.values() for place in by_place}
    }
    x, found = plotting.metric_along_axis(everybody, "accuracy.majority")
    majority = Curve("majority class", x, [one.value for one in found], role="baseline")
    for name, (title, describes) in _ACCURACIES.items():
        curves = plotting.curves_with_theory(groups, name, [("accuracy.open", "bound")])
        if curves and x:
            renamed = [
                replace(one, name=one.name.replace(", bound", ", without privacy"))
                for one in curves
            ]
            yield Plot(
                title,
                describes,
                axis.label,
                "right labels of users who did not train",
                (*renamed, majority),
                log_x=plotting.is_logarithmic(groups),
                readings=(readings.against("majority class"), readings.TREND),
            )


def _spent_plot(groups: plotting.Groups, axis: plotting.Axis) -> Plot:
    return Plot(
        "What a mean user has spent",
        "Phases add up: who takes part in selection and training and asks pays for each. What is "
        "sent without noise has no epsilon, and nothing is debited for it.",
        axis.label,
        "epsilon",
        plotting.measured_curves(groups, "spent"),
        log_x=plotting.is_logarithmic(groups),
    )


def _question_plots(points: Sequence[PointFindings]) -> list[Plot]:
    """Show the questions of each day where most were refused, if any were asked."""
    asked = [point for point in points if point.metric("questions.refused")]
    if not asked:
        return []
    point = max(asked, key=_refused)
    listed = range(point.scenario.days)
    days = [day for day in listed if point.metric(f"questions.asked.day_{day}")]
    curves = []
    for name in ("asked", "refused"):
        found = [point.metric(f"questions.{name}.day_{day}") for day in days]
        y = [one.value for one in found if one is not None]
        curves.append(Curve(name, [str(day + 1) for day in days], y))
    return [
        Plot(
            "Questions on each day",
            "At the point where most were refused. A question that the budget does not cover is "
            "refused, and nothing is sent.",
            "day",
            "questions",
            curves,
            kind="bar",
            readings=((Reading("{refused} were refused, {asked} asked.", _question_sums),),),
        )
    ]


def _question_sums(plot: Plot) -> Figures | None:
    sums = {curve.name: f"{sum(curve.y):,.0f}" for curve in plot.curves}
    return sums if sums.keys() >= {"asked", "refused"} else None


def _refused(point: PointFindings) -> float:
    found = point.metric("questions.refused")
    return 0.0 if found is None else found.value
