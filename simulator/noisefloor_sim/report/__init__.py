"""The report: any pipeline says what it wants shown, and one page shows it.

``spec`` holds the values a pipeline fills in; ``page.write`` turns a ``Page`` into one file that
works offline. Neither knows a pipeline by name. ``page`` is not imported here: a pipeline that
only describes its section needs no template engine.
"""

from noisefloor_sim.report.spec import (
    ClaimRow,
    Curve,
    Page,
    Plot,
    RunCard,
    Section,
    Table,
)

__all__ = ["ClaimRow", "Curve", "Page", "Plot", "RunCard", "Section", "Table"]
