"""What is made again of every release after a run: its file, its scales, and what it cost."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from noisefloor.publication import NoisedVector
from noisefloor.publication.methods import TextNgramsPlan
from noisefloor.publication.text import Documents, read_documents
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.releases import DataHolder, Release
from noisefloor_sim.pipelines.texts.cost_check import charge_faults, plan_faults
from noisefloor_sim.pipelines.texts.derivation_check import check_cells, check_derivation
from noisefloor_sim.pipelines.texts.printed_plan import PrintedTextsPlan
from noisefloor_sim.pipelines.texts.text_noise import WithinSteps


@dataclass(slots=True)
class ReleaseAudit:
    """What was found of all releases of a world.

    Attributes:
        misfits: By release, where tables are not those that follow, in words.
        faults: Where a file has other bytes than follow, or too little was charged, in words.
        rederived: For each release that was written again, whether its bytes are the same.
    """

    misfits: dict[int, list[str]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    rederived: list[bool] = field(default_factory=list)

    def metrics(self) -> list[Metric]:
        """Return the share of releases whose bytes are the same; nothing if none was tried."""
        n = len(self.rederived)
        if not n:
            return []
        return [Metric("counting.rederived", sum(self.rederived) / n, n=n)]


def audit_releases(holder: DataHolder[TextNgramsPlan]) -> ReleaseAudit:
    """Make all releases again, as far as the observer saw them, and compute what they cost.

    Args:
        holder: After its last release.
    """
    audit = ReleaseAudit()
    for number, one in enumerate(holder.releases):
        if not isinstance(one.plan, PrintedTextsPlan):
            audit.faults += [f"release {number}: {text}" for text in _cost_faults(holder, one)]
        if one.source is not None:
            _make_again(audit, number, one, one.source)
    return audit


def _make_again(
    audit: ReleaseAudit,
    number: int,
    release: Release[TextNgramsPlan],
    source: SeededSource,
) -> None:
    plan, seen = release.plan, seen_tables(release)
    if set(seen) != set(plan.counting.multipliers):
        audit.faults.append(f"release {number}: not every table of the plan was seen")
        return
    if isinstance(plan, PrintedTextsPlan):  # it copies posts, and says so: its chain alone follows
        audit.misfits[number] = list(check_cells(plan, seen))
        return
    collected = collected_texts(release)
    found = check_derivation(plan, seen, release.content, collected, source)
    audit.misfits[number] = found.misfits
    audit.faults += [f"release {number}: {text}" for text in found.faults]
    audit.rederived.append(not found.faults)


def seen_tables(release: Release[TextNgramsPlan]) -> Mapping[str, NoisedVector]:
    """Return the tables that the observer of a release saw: none of a publisher at a service."""
    reference = release.residuals.reference
    return reference.seen if isinstance(reference, WithinSteps) else {}


def collected_texts(release: Release[TextNgramsPlan]) -> Documents | None:
    """Return what a release was made of, as it was collected; None of one at a service."""
    reference = release.residuals.reference
    if not isinstance(reference, WithinSteps) or reference.collected is None:
        return None
    return read_documents(reference.collected, release.plan.tokeniser)


def _cost_faults(
    holder: DataHolder[TextNgramsPlan], release: Release[TextNgramsPlan]
) -> Iterator[str]:
    """Compare the cost of the noise with what was proved, claimed and charged."""
    plan = release.plan
    yield from plan_faults(plan)
    name = str(release.card["publication_id"])
    for entry in holder.account().entries(holder.publisher.data_set):
        if entry.spend_id == name:
            yield from charge_faults(plan, entry)
