"""Whether what was released carries the noise that its plan declares, and was paid for.

In one process the publisher's method hands out what noise was added to; the difference over the
declared scale is tested against the declared distribution. A publisher at a service hands out
nothing: then nothing is tested, and the evidence is blind. The ledger is compared in both cases.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from noisefloor.accounting import NANO, Amount, Ledger, LedgerEntry, LossTotal
from noisefloor.adversary.releases import (
    ResidualFit,
    ResidualGroup,
    finds_quarter_less,
    fit_residuals,
)
from noisefloor.privacy import FlowEvidence
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.releases.release_plan import AnyPlan, charged_loss
from noisefloor_sim.pipelines.releases.residuals import ReleaseResiduals

FLOW = "release"


@dataclass(frozen=True, slots=True)
class ReleaseFit:
    """What was found about the noise of all releases of a run.

    Attributes:
        evidence: For the claims of a release.
        found: What the tests found; None where nothing was handed out.
        planted_found: Whether noise that is a quarter too small would have been found.
    """

    evidence: FlowEvidence
    found: ResidualFit | None
    planted_found: bool

    def metrics(self) -> list[Metric]:
        """Return draws, tests and p-value; nothing for a service, which has no residuals."""
        if self.found is None:
            return []
        return [
            Metric("residuals.draws", float(self.found.draws)),
            Metric("residuals.tests", float(self.found.tests), n=self.found.draws),
            Metric("residuals.p_value", self.found.p_value, n=self.found.draws),
            Metric("residuals.planted_found", float(self.planted_found), n=self.found.draws),
        ]


def fit_releases(
    releases: Sequence[ReleaseResiduals],
    accounted: Iterable[str],
    source: SeededSource,
    flow: str = FLOW,
) -> ReleaseFit:
    """Test the noise of all releases: each on its own, and all together.

    Args:
        releases: In their order.
        accounted: Where releases and ledger disagree, in words.
        source: Of the random points within the steps of integer noise.
        flow: What the evidence calls the releases.
    """
    faults = [*accounted]
    more, causes = [], []
    groups: list[list[ResidualGroup]] = []
    for number, one in enumerate(releases):
        name = f"release {number}"
        faults += [f"{name}: {text}" for text in one.faults]
        causes += [f"{name}, {text}" for text in one.causes.values()]
        more += one.tests(name)
        groups.append(one.groups(name, source.child(number)))
    if not any(one.is_seen for one in releases):
        return ReleaseFit(FlowEvidence(flow, faults=tuple(faults), is_blind=True), None, False)
    every = [group for some in groups for group in some]
    seen = [some for some in groups if some]
    pooled = [ResidualGroup.pooled("all releases", seen)] if len(every) > 1 else []
    found = fit_residuals(every, more, pooled)
    planted = finds_quarter_less([*every, *pooled])
    misfit = "; ".join([*causes, *((found.text,) if found.rejects else ())])
    evidence = FlowEvidence(
        flow, found.draws, found.tests, found.p_value, misfit, tuple(faults), is_blind=not planted
    )
    return ReleaseFit(evidence, found, planted)


def _entry_faults(name: str, plan: AnyPlan, entry: LedgerEntry, account: Ledger) -> Iterator[str]:
    """Compare what was charged with the plan, by the plain sum and by the filter."""
    cost = Amount.cost(plan.spec.cost)
    if entry.debited != cost:
        yield f"{name} was charged {entry.debited}, and its plan costs {cost}"
    loss = charged_loss(plan)
    renyi, failure = account.terms.filter(LossTotal()).cost(loss, account.neighbours)
    if (entry.renyi, entry.failure) != (renyi, failure):
        yield (
            f"{name} was charged a Renyi divergence of {entry.renyi / NANO:.9f}, and its plan "
            f"costs {renyi / NANO:.9f}"
        )


def ledger_faults(stored: Mapping[str, AnyPlan], account: Ledger, subject: str) -> tuple[str, ...]:
    """Say where the entries of a data set's ledger are not those of the releases that were made.

    Args:
        stored: The plans of the releases that are stored, by the id of the publication.
        account: The ledger.
        subject: The data set.
    """
    entries: Mapping[str, LedgerEntry] = {one.spend_id: one for one in account.entries(subject)}
    found = [
        f"{name} is stored and was not charged" for name in sorted(set(stored) - set(entries))
    ]
    found += [
        f"{name} was charged and is not stored" for name in sorted(set(entries) - set(stored))
    ]
    for name in sorted(set(stored) & set(entries)):
        found += _entry_faults(name, stored[name], entries[name], account)
    costs = sum((Amount.cost(plan.spec.cost) for plan in stored.values()), Amount(0))
    debited = account.debited(subject)
    if debited != costs:
        found.append(f"the ledger says {debited} debited, and the releases made cost {costs}")
    return tuple(found)
