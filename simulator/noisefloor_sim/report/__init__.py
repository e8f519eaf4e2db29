"""The report: any pipeline says what it wants shown, and one page shows it.

``spec`` holds the values a pipeline fills in; ``page.write`` turns a ``Page`` into one file that
works offline. Neither knows a pipeline by name. ``page`` is not imported here: a pipeline that
only describes its section needs no template engine.
"""

from noisefloor_sim.report import readings
from noisefloor_sim.report.page import write
from noisefloor_sim.report.spec import (
    Cell,
    CheckRow,
    CheckState,
    ClaimRow,
    Curve,
    Figures,
    Page,
    Plot,
    Reading,
    Role,
    RunCard,
    Section,
    Table,
)
from noisefloor_sim.report.wording import headline, lower, number, upper

__all__ = [
    "Cell",
    "CheckRow",
    "CheckState",
    "ClaimRow",
    "Curve",
    "Figures",
    "Page",
    "Plot",
    "Reading",
    "Role",
    "RunCard",
    "Section",
    "Table",
    "headline",
    "lower",
    "number",
    "readings",
    "upper",
    "write",
]
