"""Claims: phases add up, weak data promise nothing, corrections cost their budget."""

import math

import pytest

from collection_worlds import classes, schema
from noisefloor.collection.claims import paper_claims, plan_claims
from noisefloor.collection.collecting.class_selection import WeakSelection
from noisefloor.collection.collecting.collectors import UnifiedCollector, WeakCollector
from noisefloor.collection.collecting.selection import PiecewiseSelection, RandomSelection
from noisefloor.collection.cross_validation import CollectionPlan
from noisefloor.errors import BadParameter

WALDP = UnifiedCollector(classes(4), 2.0)


def test_who_asks_often_pays_for_each_question() -> None:
    for queries in (0, 1, 5):
        plan = CollectionPlan(RandomSelection(3), WALDP, WALDP)
        *_, whole = plan_claims(plan, range(3), epsilon=2.0, queries=queries)
        assert whole.claim.proved.epsilon == pytest.approx(2 * (1 + queries), abs=1e-5)
        assert whole.claim.verdict == ("overclaimed" if queries else "holds")


def test_selection_by_reports_is_paid_besides_training() -> None:
    plan = CollectionPlan(PiecewiseSelection(3, 2.0), WALDP, WALDP)
    *_, whole = plan_claims(plan, range(3), epsilon=2.0, queries=0)
    assert whole.claim.proved.epsilon == pytest.approx(4.0, abs=1e-5)


@pytest.mark.parametrize(
    "plan",
    [
        CollectionPlan(WeakSelection(3, classes(4)), WALDP, WALDP),
        CollectionPlan(RandomSelection(3), WeakCollector(classes(4)), WALDP),
        CollectionPlan(RandomSelection(3), WALDP, WeakCollector(classes(4))),
    ],
)
def test_one_weak_phase_leaves_no_guarantee_and_says_why(plan: CollectionPlan) -> None:
    *_, whole = plan_claims(plan, range(3), epsilon=2.0)
    assert math.isinf(whole.claim.proved.epsilon)
    assert "without noise" in whole.claim.proved.reason
    assert whole.claim.verdict == "overclaimed"


def test_the_papers_claims_are_as_audited() -> None:
    claims = paper_claims(schema(), count=2, classes=4, epsilon=10.0, queries=3)
    proved = {one.phase: one.claim.proved.epsilon for one in claims}
    assert proved == {
        "training: WA": math.inf,
        "DR.WA": math.inf,
        "training: WALDP as printed": math.inf,
        "DR.Rand and training": pytest.approx(10, abs=1e-4),
        "DR.Rand, training and 3 questions": pytest.approx(40, abs=1e-4),
        "DR.PM and training": pytest.approx(20, abs=1e-4),
        "DR.PM, training and 3 questions": pytest.approx(50, abs=1e-4),
        "DR.WALDP, half each and training": pytest.approx(10, abs=1e-4),
    }
    verdicts = {one.phase: one.claim.verdict for one in claims}
    assert verdicts["training: WALDP as printed"] == "overclaimed"
    assert verdicts["DR.WALDP, half each and training"] == "holds"
    reasons = [one.claim.proved.reason for one in claims if math.isinf(one.claim.proved.epsilon)]
    assert all(reasons)


def test_a_negative_number_of_questions_is_refused() -> None:
    with pytest.raises(BadParameter, match="queries"):
        plan_claims(CollectionPlan(RandomSelection(1), WALDP, WALDP), [0], epsilon=2.0, queries=-1)
