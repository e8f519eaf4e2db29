"""The names of the metrics and claims of a collection, for gates; ``*`` is a day."""

_GAMES = (
    *("attribute", "label", "label_known", "record", "class_zero"),
    *("products", "repeated", "members"),
)

_FIGURES = ("success", "prior", "advantage", "candidates", "bound", "closed_form")

METRIC_NAMES = (
    *(f"accuracy.{name}" for name in ("device", "majority", "question", "open")),
    *("lead", "values.clipped"),
    "accuracy.device_coverage",
    *(f"data.{name}" for name in ("rows", "rows_tested", "rows_trained", "reused")),
    "data.ranges_public",
    *(
        f"{phase}.{name}"
        for phase in ("ranges", "selection", "training")
        for name in ("reports", "reports_counted", "absent", "refused")
    ),
    *(f"questions.{name}" for name in ("asked", "refused", "absent", "answered")),
    *("questions.asked.day_*", "questions.refused.day_*"),
    *("spent.range_report", "spent.selection_report", "spent.training_report", "spent.question"),
    *("spent", "spent_share", "budget_overspent"),
    *("sizes.attributes", "sizes.classes", "model.bytes", "model.support_vectors"),
    *(f"attack.{game}.{name}" for game in _GAMES for name in _FIGURES),
)

CLAIM_NAMES = ("ranges", "selection", "training", "question", "asker", "owner")
