"""The report's section on clicks: figures agree with claims, and captions with figures."""

import pytest

from noisefloor.privacy import Claim, Guarantee, Neighbours
from noisefloor_sim.pipelines.api import Findings, Metric, NamedClaim, PointFindings
from noisefloor_sim.pipelines.clicks.section import report_section
from noisefloor_sim.report import Plot, readings
from worlds import small_world

DAYS = 3
UNUSED = dict.fromkeys(("fresh", "repeated", "refused"), 0.0)
"""What the section draws besides."""


def ledger(debited: float, proved: float, changing: float | None = None) -> Plot:
    """Return the plot of the budget, of a user who reports every day."""
    scenario = small_world(days=DAYS)
    metrics = [
        Metric(f"{name}.day_{day}", each * (day + 1))
        for name, each in (UNUSED | {"spent": debited, "spent_proved": proved}).items()
        for day in range(DAYS)
    ]
    said = Guarantee(4.0, Neighbours.USER)
    claims = []
    if changing is not None:
        whole = Claim(said, Guarantee(changing, Neighbours.USER))
        claims.append(NamedClaim("clicks-memoised-changing", whole))
    point = PointFindings((), scenario, Findings(tuple(metrics), tuple(claims)))
    items = report_section([point]).items
    return next(one for one in items if isinstance(one, Plot) and "has spent" in one.title)


@pytest.mark.parametrize(
    ("debited", "proved", "said"),
    [
        (1.0, 1.0, "Nowhere is less debited than is proved."),
        (1.0, 20.0, "Less is debited than is proved: corrected."),
    ],
)
def test_the_ledger_says_whether_it_debits_too_little(
    debited: float, proved: float, said: str
) -> None:
    assert readings.true_readings(ledger(debited, proved)) == [said]
