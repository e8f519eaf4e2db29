"""The headline counts what fails, what protects nothing and what holds, and mixes none of them."""

import itertools
import math
import re
from dataclasses import replace

import pytest

from noisefloor.privacy import Claim, ClaimVerdict, Guarantee, LowerBound, Neighbours
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


VERDICTS = (*(one.value for one in ClaimVerdict), "unheard-of")
"""All, and one that nobody knows."""

ENDING = ("broken", "misfit", "unaccounted")


@pytest.mark.parametrize("failed", [0, 1])
def test_no_failed_run_reads_as_if_every_claim_holds(failed: int) -> None:
    rows = [replace(row(1, 1, 0.5, variant=v), verdict=one) for one in VERDICTS for v in ("a", "")]
    for some in itertools.chain.from_iterable(
        itertools.combinations(rows, size) for size in (1, 2, 3)
    ):
        said = headline(some, failed_gates=failed, gates=3)
        is_failed = failed or any(one.verdict in ENDING for one in some)
        claims_all = re.search(r"all (\d+ )?claims .*hold", said, re.IGNORECASE)
        assert not (is_failed and claims_all), said
        if failed:
            assert said.startswith("1 of 3 gates failed.")
        if any(one.verdict != "holds" for one in some):
            assert not re.search(r"all \d+ claims hold", said, re.IGNORECASE), said


def test_claims_that_end_a_run_come_first_with_flow_and_cause() -> None:
    raw = replace(row(1, 1, name="report"), verdict="misfit", cause="clicks: bits are not flipped")
    lost = replace(row(1, 1, name="training"), verdict="unaccounted", pipeline="ads")
    assert headline([row(1, 1, 0.5), lost, raw, raw]) == (
        "2 of 4 claims: misfit. p report: clicks: bits are not flipped. 1 of 4 claims: "
        "unaccounted. ads training: Claims 1, proved 1; not attacked. Wire, server and ledger "
        "disagree. 1 of 4 claims hold."
    )


def test_the_heaviest_user_is_set_against_the_budget() -> None:
    light = replace(row(12, 3, name="heaviest-user"), pipeline="world", point="budget 12")
    heavy = replace(light, claimed=1000.0, proved=652.3456, point="budget 1000")
    said = headline([light, heavy, row(1, 1)])
    assert said.startswith(
        "The heaviest user (budget 1000): 652.4 is proved of the whole run, where 1,000 is "
        "claimed. All 3 claims hold"
    )


def test_what_is_undecided_is_counted_apart() -> None:
    blind = replace(row(1, 1), verdict="blind")
    assert headline([blind, row(1, 1)]) == "1 of 2 claims: blind. 1 of 2 claims hold."
