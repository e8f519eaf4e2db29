"""What all releases of a data set cost together: debited, claimed, proved."""

from collections.abc import Callable, Sequence

from noisefloor import accounting
from noisefloor.privacy import Guarantee
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.releases.data_holder import DataHolder, PlanT
from noisefloor_sim.pipelines.releases.release_plan import AnyPlan, charged_loss


def spending_metrics(
    holder: DataHolder[PlanT],
    together: Callable[[Sequence[PlanT], float], Guarantee | None],
) -> list[Metric]:
    """Return what was debited, what is proved, and how many releases were made and refused.

    Args:
        holder: After its last release.
        together: What an accountant proves of the noise of all releases at a delta, if it can.
    """
    releases, plans = holder.releases, [one.plan for one in holder.releases]
    made = len(releases)
    account, subject = holder.account(), holder.publisher.data_set
    proved = account.proved(subject)
    accounted = together(plans, account.budget.delta) if plans else None
    metrics = [
        Metric("releases.made", float(made)),
        Metric("releases.refused", float(len(holder.refused))),
        Metric("releases.empty", float(len(holder.empty))),
        Metric("spent.claimed", account.spent(subject).epsilon, n=made),
        Metric("spent.debited", account.debited(subject).epsilon, n=made),
        Metric("spent.budget", account.budget.epsilon, n=made),
    ]
    if proved.is_finite:
        metrics.append(Metric("spent.proved", proved.epsilon, n=made))
    if accounted is not None:
        metrics.append(Metric("spent.together", accounted.epsilon, n=made))
    for number, one in enumerate(releases):
        metrics += [
            Metric(f"spent.claimed.release_{number}", one.spent),
            Metric(f"releases.day.release_{number}", float(one.day)),
            Metric(f"releases.records.release_{number}", float(one.owners.sum())),
        ]
    return metrics


def all_releases_guarantee(plans: Sequence[AnyPlan], budget: Guarantee | None) -> Guarantee:
    """Return what is proved of all releases together: the figure by which the ledger decides.

    Without a budget there is no filter, and what is proved of each is added up.
    """
    summed = accounting.sequential_as_written([plan.proved for plan in plans])
    if budget is None or not summed.is_finite:
        return summed
    ledger = accounting.Ledger(
        budget.epsilon, budget.delta, neighbours=budget.neighbours, model=budget.model
    )
    for number, plan in enumerate(plans):
        spend = accounting.Spend(
            "users", f"{number}", plan.proved, plan.NAME, loss=charged_loss(plan)
        )
        ledger.write_all([spend.entry(ledger.terms, ledger.total("users"))])
    return ledger.terms.guarantee(ledger.total("users"))
