"""What all releases of a data set cost: added up, and tighter where their noise allows it."""

from collections.abc import Sequence

from noisefloor.accounting.accountant import (
    GaussianNoise,
    LaplaceNoise,
    SampledGaussian,
    epsilon_at,
)
from noisefloor.privacy import Guarantee
from noisefloor.publication.model_methods import ModelPlan
from noisefloor.publication.model_methods.logistic_method import LogisticMethodPlan
from noisefloor.publication.model_methods.private_sgd_method import PrivateSgdPlan
from noisefloor_sim.pipelines.base import Metric
from noisefloor_sim.pipelines.models.asking import DATA_SET
from noisefloor_sim.pipelines.models.holder import DataHolder

Event = LaplaceNoise | GaussianNoise | SampledGaussian


def tight(plans: Sequence[ModelPlan]) -> Guarantee | None:
    """Return what all releases cost together by the accountant, or None where it knows no law.

    It is told the noise of every release and not its epsilon, at the delta of them all.
    """
    events: list[Event] = []
    for plan in plans:
        if isinstance(plan, PrivateSgdPlan):
            events += plan.sgd.events
        elif isinstance(plan, LogisticMethodPlan):
            sums, step = plan.plan.multipliers
            events += [GaussianNoise(sums), GaussianNoise(step, plan.plan.steps)]
        else:
            return None
    cost = plans[0].wanted.cost
    return epsilon_at(events, cost.delta * len(plans), neighbours=cost.neighbours)


def spending_metrics(holder: DataHolder) -> list[Metric]:
    """Tell what was debited, what is proved, and how many releases were made and refused."""
    releases, plans = holder.releases, [one.plan for one in holder.releases]
    made = len(releases)
    proved = holder.ledger.proved(DATA_SET)
    together = tight(plans) if plans else None
    metrics = [
        Metric("releases.made", float(made)),
        Metric("releases.refused", float(len(holder.refused))),
        Metric("releases.empty", float(len(holder.empty))),
        Metric("spent.claimed", holder.ledger.spent(DATA_SET).epsilon, n=made),
        Metric("spent.budget", holder.ledger.budget.epsilon, n=made),
    ]
    if proved.is_finite:
        metrics.append(Metric("spent.proved", proved.epsilon, n=made))
    if together is not None:
        metrics.append(Metric("spent.together", together.epsilon, n=made))
    for number, one in enumerate(releases):
        metrics += [
            Metric(f"spent.claimed.release_{number}", one.spent),
            Metric(f"releases.day.release_{number}", float(one.day)),
            Metric(f"releases.records.release_{number}", float(one.owners.sum())),
        ]
    return metrics


def model_metrics(plans: Sequence[ModelPlan], parameters: int) -> list[Metric]:
    """Tell size and epsilon of one release: nominal, and of the whole model."""
    plan = plans[0]
    metrics = [
        Metric("model.parameters", float(parameters)),
        Metric("model.claimed", plan.wanted.cost.epsilon),
        Metric("model.delta", plan.proved.delta),
    ]
    if plan.proved.is_finite:
        metrics.append(Metric("model.proved", plan.proved.epsilon))
    return metrics
