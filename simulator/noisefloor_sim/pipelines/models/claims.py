"""What is claimed, proved and audited: of one parameter, of one release, of all releases.

What all releases of a data set cost: added up, and tighter where their noise allows it.
"""

from collections.abc import Sequence

from noisefloor import accounting
from noisefloor.privacy import Claim, FlowEvidence, Guarantee
from noisefloor.publication.methods import LogisticMethodPlan, ModelPlan, PrivateSgdPlan
from noisefloor_sim.pipelines.api import Metric, NamedClaim
from noisefloor_sim.pipelines.releases import CanaryAudit, all_releases_guarantee

NoiseEvent = accounting.LaplaceNoise | accounting.GaussianNoise | accounting.SampledGaussian


def accountant_guarantee(plans: Sequence[ModelPlan], delta: float) -> Guarantee | None:
    """Return what all releases cost together by the accountant, or None where it knows no law.

    It takes the noise of every release and not its epsilon, at the delta of the data set. Releases
    have to be fixed beforehand for this figure; the ledger's filter allows for any choice.
    """
    events: list[NoiseEvent] = []
    for plan in plans:
        if isinstance(plan, PrivateSgdPlan):
            events += plan.sgd.events
        elif isinstance(plan, LogisticMethodPlan):
            sums, step = plan.plan.multipliers
            events += [
                accounting.GaussianNoise(sums),
                accounting.GaussianNoise(step, plan.plan.steps),
            ]
        else:
            return None
    cost = plans[0].spec.cost
    return accounting.epsilon_at(events, delta, neighbours=cost.neighbours)


def model_metrics(plans: Sequence[ModelPlan], parameters: int) -> list[Metric]:
    """Tell size and epsilon of one release: nominal, and of the whole model."""
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
_WHOLE = "whole model"


def claims_of(
    plans: Sequence[ModelPlan],
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
    rows += [NamedClaim(PARAMETER, part.claim) for part in first.claims if part.about != _WHOLE]
    if len(plans) > 1:
        claimed = budget or accounting.sequential([plan.spec.cost for plan in plans])
        proved = all_releases_guarantee(plans, budget)
        every = games.every.audited(proved.delta) if games else None
        rows.append(NamedClaim(EVERY, Claim(claimed, proved, every, evidence=seen)))
    if members is not None:
        rows.append(NamedClaim(MEMBERS, members))
    return tuple(rows)


def _release_claim(
    plan: ModelPlan, games: CanaryAudit | None, evidence: tuple[FlowEvidence, ...]
) -> Claim:
    """Return the claim of one release, with the null and the planted fault of its audit."""
    cost, proved = plan.spec.cost, plan.proved
    if games is None:
        return Claim(cost, proved, evidence=evidence)
    found = games.release
    return Claim(cost, proved, found.audited, found.null, found.planted, evidence)
