"""The claims of a run on its page: replicates share a row, the worst of them is shown."""

import pytest

from noisefloor.privacy import Claim, Guarantee, LowerBound, Neighbours
from noisefloor_sim.pipelines.api import Findings, NamedClaim
from noisefloor_sim.runs.pages import _claims
from noisefloor_sim.runs.results import PointResult

USER, BIT = Neighbours.USER, Neighbours.BIT


def claim(proved: float, audited: float, neighbours: Neighbours = USER) -> Claim:
    bound = LowerBound(audited, 0.99, 1_000, 6.0)
    return Claim(Guarantee(2.0, neighbours), Guarantee(proved, neighbours), bound)


def result(seed: int, *claims: Claim) -> PointResult:
    named = tuple(NamedClaim("response", one) for one in claims)
    findings = {"clicks": Findings((), named)}
    return PointResult(f"p{seed}", f"seed={seed}", seed, "paper", findings, 0.0, 0.0)


def test_the_worst_replicate_is_shown_and_the_confidence_pays_for_the_choice() -> None:
    # The second reached less than the first, but more than is proved of it.
    found = [claim(2.0, 1.5), claim(1.0, 1.2), claim(2.0, 0.0)]
    (row,) = _claims([result(seed, one) for seed, one in enumerate(found)])
    assert (row.verdict, row.point) == ("broken", "most of 3 seeds")
    assert row.audited is not None
    assert row.audited.epsilon == 1.2
    assert row.audited.confidence == pytest.approx(0.97)


def test_claims_about_other_neighbours_have_rows_of_their_own() -> None:
    rows = _claims([result(0, claim(1.0, 0.5), claim(1.0, 0.5, BIT))])
    assert [(row.neighbours, row.point) for row in rows] == [("user", ""), ("bit", "")]
