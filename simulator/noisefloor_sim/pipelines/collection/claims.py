"""What is claimed, proved and audited of a collection: phase by phase, and for a whole owner.

What each phase is claimed to cost, what is proved of it, and what the ledger debits. What is
audited comes from witnesses among the users (``witness_audit``).

The ledger debits what is claimed. Classes that are sent without noise have no epsilon to debit:
nothing is debited, and the claim says infinity.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from noisefloor.accounting import Amount, sequential_as_written
from noisefloor.collection import collection_claim, selection_claim
from noisefloor.privacy import Claim, FlowEvidence, Guarantee, LowerBound, Neighbours
from noisefloor.tasks import ClassifierTrainer, RecordTask
from noisefloor_sim.pipelines.api import NamedClaim

_USER = Neighbours.USER


@dataclass(frozen=True, slots=True)
class PhaseCosts:
    """The claims of each phase; a selection without data and declared ranges cost nothing."""

    ranges: Claim
    selection: Claim
    training: Claim
    question: Claim

    @classmethod
    def of(cls, task: RecordTask, columns: Sequence[int] | None = None) -> "PhaseCosts":
        """Return the claims; they do not depend on which attributes were chosen, but on sizes.

        Args:
            task: What is run.
            columns: The attributes that were chosen, if they are known.
        """
        trainer = task.trainer
        epsilons = (task.training_epsilon, task.epsilon)
        chosen = widest(task) if columns is None else columns
        nothing = Guarantee(0.0, _USER)
        ranges = Claim(nothing, nothing)
        if task.range_phase is not None:
            said = Guarantee(task.range_epsilon, _USER)
            ranges = Claim(said, task.range_phase.guarantee())
        selection = selection_claim(task.selector, task.epsilon).claim
        if isinstance(trainer, ClassifierTrainer):
            training, question = (
                collection_claim(one, chosen, epsilon, "").claim
                for one, epsilon in zip((trainer.train, trainer.ask), epsilons, strict=True)
            )
            return cls(ranges, selection, training, question)
        train, ask = (Guarantee(one, _USER) for one in epsilons)
        return cls(
            ranges,
            selection,
            Claim(train, trainer.guarantee(chosen)),
            Claim(ask, trainer.query_guarantee(chosen)),
        )

    def of_phase(self, name: str) -> Claim:
        """Return the claim of a phase by its name."""
        claim: Claim = getattr(self, name)
        return claim

    def of_round(self, task: RecordTask, number: int) -> int:
        """Return what a report in a round is debited, in micro-epsilon."""
        return debited(self.of_phase(task.phases[number]))

    def covered_rounds(self, task: RecordTask, budget: int) -> int:
        """Return how many rounds, from the first, a budget in micro-epsilon covers."""
        for number in range(task.rounds):
            budget -= self.of_round(task, number)
            if budget < 0:
                return number
        return task.rounds


def debited(claim: Claim) -> int:
    """Return what a release is debited, in micro-epsilon."""
    return Amount.cost(claim.claimed).micro_epsilon if claim.claimed.is_finite else 0


def widest(task: RecordTask) -> list[int]:
    """Return as many attributes as are reported, those with most classes."""
    order = sorted(range(len(task.schema)), key=lambda one: -task.discretiser.sizes[one])
    return order[: task.chosen]


PHASES = ("ranges", "selection", "training", "question")
"""The phases that reports are sent in, as claims name them."""

_NO_BOUNDS: dict[str, LowerBound | None] = {"audited": None, "null": None, "planted": None}


def claims_of(
    task: RecordTask,
    columns: Sequence[int],
    *,
    budget: float,
    asked: int,
    asked_by_owners: int,
    bounds: Mapping[str, Mapping[str, LowerBound | None]],
    evidence: Mapping[str, FlowEvidence],
) -> tuple[NamedClaim, ...]:
    """Return the claims of each phase, of who only asks, and of an owner who is in all phases.

    Args:
        task: What was run.
        columns: The attributes that were chosen.
        budget: Of a user.
        asked: How often who did not train may ask the server; 0: the model is on the device.
        asked_by_owners: How often an owner of a training record may, besides.
        bounds: What witnesses prove of each claim: audited, null and planted.
        evidence: What was seen of the reports of each phase.
    """
    named = phase_claims(
        task,
        PhaseCosts.of(task, columns),
        budget=budget,
        asked=asked,
        asked_by_owners=asked_by_owners,
    )
    return tuple(
        NamedClaim(
            name,
            replace(
                claim,
                evidence=_seen(name, evidence, owners_ask=asked_by_owners > 0),
                audited=bounds.get(name, _NO_BOUNDS)["audited"],
                null=bounds.get(name, _NO_BOUNDS)["null"],
                planted=bounds.get(name, _NO_BOUNDS)["planted"],
            ),
        )
        for name, claim in named.items()
    )


def _seen(
    name: str, evidence: Mapping[str, FlowEvidence], *, owners_ask: bool
) -> tuple[FlowEvidence, ...]:
    """Return what was seen of the phases that a claim is about."""
    phases = {"asker": ("question",), "owner": PHASES if owners_ask else PHASES[:-1]}
    return tuple(evidence[one] for one in phases.get(name, (name,)) if one in evidence)


def phase_claims(
    task: RecordTask, costs: PhaseCosts, *, budget: float, asked: int, asked_by_owners: int
) -> dict[str, Claim]:
    """Return what is claimed and proved of each phase, of who only asks, and of an owner.

    Of a phase its epsilon is claimed. Of all that one person sends the configuration says no more
    than the budget does, and the paper says the epsilon of one phase. An owner whose budget covers
    no phase sends nothing, and there is no claim.

    Args:
        task: What is run.
        costs: Of its phases.
        budget: Of a user.
        asked: How often who did not train may ask the server.
        asked_by_owners: How often an owner of a training record may, besides.
    """
    rows = {name: [costs.of_phase(name)] for name in task.phases}
    if asked:
        rows |= {"question": [costs.question], "asker": [costs.question] * asked}
    # An owner takes part in as many rounds, from the first, as the budget covers.
    covered = costs.covered_rounds(task, Amount.budget(budget, 0.0).micro_epsilon)
    if covered:
        phases = [costs.of_phase(name) for name in task.phases[:covered]]
        rows["owner"] = [*phases, *[costs.question] * asked_by_owners]
    is_paper = task.variant == "paper"
    said = Guarantee(task.epsilon if is_paper else budget, _USER)
    return {
        name: _person(claims, said, is_paper=is_paper)
        if name in ("asker", "owner")
        else Claim(claims[0].claimed, claims[0].proved)
        for name, claims in rows.items()
    }


def _person(claims: Sequence[Claim], said: Guarantee, *, is_paper: bool) -> Claim:
    """Return the claim of all that one person sends: what is proved of each adds up.

    Only the paper says an epsilon of a whole of which some part is sent without noise.
    """
    open_ = [one.claimed for one in claims if not one.claimed.is_finite]
    claimed = open_[0] if open_ and not is_paper else said
    return Claim(claimed, sequential_as_written([one.proved for one in claims]))
