"""What an accountant proves of all releases of a data set at once, where it knows their noise."""

from collections.abc import Sequence

from noisefloor import accounting
from noisefloor.privacy import Guarantee
from noisefloor.publication.methods import LogisticMethodPlan, ModelPlan, PrivateSgdPlan

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
