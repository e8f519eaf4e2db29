"""From values to classes, and the responses that protect a record."""

from noisefloor.collection.encoding.discretisation import (
    Codes,
    Discretiser,
    PrintedDiscretiser,
    check_columns,
)
from noisefloor.collection.encoding.joint_response import JointResponse, kept_share, response_over
from noisefloor.collection.encoding.printed_response import Lies, PrintedUnified
from noisefloor.collection.encoding.private_ranges import (
    RANGE_ROWS,
    RangePhase,
    Ranges,
    range_rows_kind,
    within_ranges,
)
from noisefloor.collection.encoding.report_columns import (
    JOINT_ROWS,
    QUERY_VALUES,
    TRAINING_VALUES,
    ReportColumns,
    columns_of,
    joint_rows,
    joint_rows_kind,
    query_values_kind,
    reports_of,
    training_values_kind,
)
from noisefloor.collection.encoding.sizing import (
    QueryMode,
    ReportSize,
    joint_choice,
    tuple_choice,
    unified_choice,
)
from noisefloor.collection.encoding.unified_response import (
    UnifiedResponse,
    check_codes,
    listed_rows,
    share_of,
)

__all__ = [
    "JOINT_ROWS",
    "QUERY_VALUES",
    "RANGE_ROWS",
    "TRAINING_VALUES",
    "Codes",
    "Discretiser",
    "JointResponse",
    "Lies",
    "PrintedDiscretiser",
    "PrintedUnified",
    "QueryMode",
    "RangePhase",
    "Ranges",
    "ReportColumns",
    "ReportSize",
    "UnifiedResponse",
    "check_codes",
    "check_columns",
    "columns_of",
    "joint_choice",
    "joint_rows",
    "joint_rows_kind",
    "kept_share",
    "listed_rows",
    "query_values_kind",
    "range_rows_kind",
    "reports_of",
    "response_over",
    "share_of",
    "training_values_kind",
    "tuple_choice",
    "unified_choice",
    "within_ranges",
]
