"""What is claimed, proved and audited of releases: of one, of parts of one, of all together."""

from collections.abc import Sequence

from noisefloor import accounting
from noisefloor.privacy import Claim, FlowEvidence, Guarantee
from noisefloor_sim.pipelines.api import Metric, NamedClaim, PlannedClaim
from noisefloor_sim.pipelines.releases.canary_audit import CanaryAudit
from noisefloor_sim.pipelines.releases.release_plan import AnyPlan, planned_ledger
from noisefloor_sim.pipelines.releases.spending import all_releases_guarantee


def model_metrics(plans: Sequence[AnyPlan], parameters: int) -> list[Metric]:
    """Return size and epsilon of one release: nominal, and of the whole model."""
    plan = plans[0]
    metrics = [
        Metric("model.parameters", float(parameters)),
        Metric("model.claimed", plan.spec.cost.epsilon),
        Metric("model.delta", plan.proved.delta),
    ]
    if plan.proved.is_finite:
        metrics.append(Metric("model.proved", plan.proved.epsilon))
    return metrics


RELEASE, PARAMETER, EVERY, MEMBERS = "release", "parameter", "all_releases", "members"


def claims_of(
    plans: Sequence[AnyPlan],
    games: CanaryAudit | None,
    members: Claim | None,
    budget: Guarantee | None = None,
    evidence: FlowEvidence | None = None,
) -> tuple[NamedClaim, ...]:
    """Return the claims of a world.

    Args:
        plans: Of the releases that were made.
        games: What canaries gave, where the method has one.
        members: Of a small release, audited by shadow models.
        budget: Of the data set, which is claimed of all releases; None in the paper's variant,
            which claims the sum of what it claims of each.
        evidence: Of the noise and the ledger of all releases.
    """
    first = plans[0]
    seen = () if evidence is None else (evidence,)
    rows = [NamedClaim(RELEASE, _release_claim(first, games, seen))]
    rows += [NamedClaim(PARAMETER, part.claim) for part in first.claims if not part.is_whole]
    if len(plans) > 1:
        claimed = budget or accounting.sequential([plan.spec.cost for plan in plans])
        proved = all_releases_guarantee(plans, budget)
        every = games.every.audited(proved.delta) if games else None
        rows.append(NamedClaim(EVERY, Claim(claimed, proved, every, evidence=seen)))
    if members is not None:
        rows.append(NamedClaim(MEMBERS, members))
    return tuple(rows)


def _release_claim(
    plan: AnyPlan, games: CanaryAudit | None, evidence: tuple[FlowEvidence, ...]
) -> Claim:
    """Return the claim of one release, with the null and the planted fault of its audit."""
    cost, proved = plan.spec.cost, plan.proved
    if games is None:
        return Claim(cost, proved, evidence=evidence)
    found = games.release
    return Claim(cost, proved, found.audited, found.null, found.planted, evidence)


def planned_claims(
    plan: AnyPlan, requested: int, total: Guarantee, claimed: Guarantee | None
) -> tuple[PlannedClaim, ...]:
    """Return the claims of one release, and of all that the budget of the data set covers.

    For as many records as there should be: how many arrive is not known yet.

    Args:
        plan: Of each release.
        requested: How many releases are wanted.
        total: The budget of the data set.
        claimed: Of all releases; None if it is the sum of what is claimed of each.
    """
    ledger = planned_ledger(plan, total, requested)
    covered = len(ledger.entries("users"))
    named = claims_of([plan] * max(1, covered), None, None, claimed)
    whole_run = EVERY if covered > 1 else RELEASE
    spent = ledger.spent("users").epsilon if covered else plan.spec.cost.epsilon
    return tuple(
        PlannedClaim(
            one.mechanism,
            "run" if one.mechanism == EVERY else "release",
            one.claim,
            spent if one.mechanism == whole_run else None,
            total.epsilon,
        )
        for one in named
    )
