"""What owners send: collectors of records, and selections of attributes."""

from noisefloor.collection.collecting.class_selection import ResponseSelection, WeakSelection
from noisefloor.collection.collecting.collectors import (
    Collected,
    Collector,
    JointCollector,
    PrintedCollector,
    RawCollector,
    ReportingCollector,
    UnifiedCollector,
    WeakCollector,
)
from noisefloor.collection.collecting.piecewise_collectors import (
    LabelBy,
    PiecewiseCollector,
    SampledPiecewiseCollector,
)
from noisefloor.collection.collecting.protected_queries import (
    DECISIONS,
    decisions_kind,
    repeated_success,
)
from noisefloor.collection.collecting.selection import (
    SELECTION_VALUES,
    AttributeSelection,
    EveryAttribute,
    PiecewiseSelection,
    RandomSelection,
    ReportingSelector,
    ScoreForm,
    SelectionReports,
    Selector,
    selection_values_kind,
)

__all__ = [
    "DECISIONS",
    "SELECTION_VALUES",
    "AttributeSelection",
    "Collected",
    "Collector",
    "EveryAttribute",
    "JointCollector",
    "LabelBy",
    "PiecewiseCollector",
    "PiecewiseSelection",
    "PrintedCollector",
    "RandomSelection",
    "RawCollector",
    "ReportingCollector",
    "ReportingSelector",
    "ResponseSelection",
    "SampledPiecewiseCollector",
    "ScoreForm",
    "SelectionReports",
    "Selector",
    "UnifiedCollector",
    "WeakCollector",
    "WeakSelection",
    "decisions_kind",
    "repeated_success",
    "selection_values_kind",
]
