"""The headline counts what fails, what protects nothing and what holds, and mixes none of them."""

import math

from noisefloor.privacy import Claim, Guarantee, LowerBound, Neighbours
from noisefloor_sim.report import ClaimRow
from noisefloor_sim.report.wording import headline


def row(
    claimed: float,
    proved: float,
    audited: float | None = None,
    *,
    name: str = "training",
    variant: str = "corrected",
    ceiling: float = 6.0,
) -> ClaimRow:
    """Return the row of a claim whose verdict follows from its numbers."""
    said, shown = (
        Guarantee(one, Neighbours.USER, reason="none" if math.isinf(one) else "")
        for one in (claimed, proved)
    )
    bound = None if audited is None else LowerBound(audited, 0.99, 1_000, ceiling)
    return ClaimRow.of(Claim(said, shown, bound), name, pipeline="p", variant=variant)


def test_all_claims_hold_only_if_none_is_unprotected() -> None:
    fine, weak = row(1, 1, 0.5), row(math.inf, math.inf, 5.0, name="selection")
    assert headline([fine, fine]) == (
        "All 2 claims hold: each is proved; 2 were attacked, and no attack contradicts one."
    )
    assert headline([row(1, 1)]) == "All 1 claims hold: each is proved; none was attacked."
    assert headline([fine, weak, weak]) == (
        "2 of 3 claims are unprotected, with no epsilon: selection. 1 of 3 claims hold."
    )
    assert headline([weak]) == (
        "1 of 1 claims are unprotected, with no epsilon: selection. 0 of 1 claims hold."
    )
    assert headline([]) == "Nothing is claimed."


def test_the_worst_failure_is_named_and_a_sound_variant_too() -> None:
    rows = [
        row(1, 2, 1.5, variant="paper"),
        row(0.5, 10, 3.3219, name="owner", variant="paper"),
        row(1, 1, 0.5),
    ]
    assert headline(rows) == (
        "2 of 3 claims do not hold (paper): at worst owner claims 0.5, 10 is proved, and an "
        "attacker reached at least 3.321. All claims of the corrected variant hold."
    )
    unprotected = row(math.inf, math.inf, name="selection")
    assert headline([*rows, unprotected]).endswith(
        "1 of 4 claims are unprotected, with no epsilon: selection. 1 of 4 claims hold."
    )
    assert "nothing is proved." in headline([row(1, math.inf)])


def test_audits_that_decide_nothing_are_counted() -> None:
    silent, short, fine = row(1, 1, 0.0), row(8, 8, 5.9), row(1, 1, 0.5)
    assert headline([silent, short, fine, row(1, 1)]) == (
        "All 4 claims hold: each is proved; 3 were attacked, and no attack contradicts one. 2 of "
        "3 audits of claims that hold decide nothing: they found nothing, or could not have shown "
        "as much as is proved."
    )
