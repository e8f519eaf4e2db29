"""What is claimed, proved and audited of published texts: of a text, an author, each part."""

from collections.abc import Sequence
from dataclasses import replace

from noisefloor.accounting import group, integer_guarantee
from noisefloor.privacy import Claim, FlowEvidence, Guarantee, Neighbours
from noisefloor.publication.methods import TextNgramsPlan
from noisefloor_sim.pipelines import releases
from noisefloor_sim.pipelines.api import Metric, NamedClaim
from noisefloor_sim.pipelines.texts.attack_setting import FoundAttacks
from noisefloor_sim.pipelines.texts.block import TextsBlock
from noisefloor_sim.pipelines.texts.printed_plan import GENERALISATION, PrintedTextsPlan

AUTHOR, CORPUS = "author", "corpus"


def of_author(guarantee: Guarantee, posts: int) -> Guarantee:
    """Return what a guarantee for a text says of an author: all texts become somebody else's.

    Args:
        guarantee: For one text that is there or not.
        posts: Texts of an author at most; devices post no more.
    """
    return group(guarantee, 2 * posts, Neighbours.USER)


def release_metrics(plans: Sequence[TextNgramsPlan], block: TextsBlock) -> list[Metric]:
    """Return the epsilon of one release, and what that is of an author in all releases."""
    plan = plans[0]
    metrics = [
        Metric("model.claimed", plan.spec.cost.epsilon),
        Metric("model.delta", plan.spec.cost.delta),
    ]
    every = releases.all_releases_guarantee(plans, block.total_budget)
    if plan.proved.is_finite:
        metrics.append(Metric("model.proved", plan.proved.epsilon))
    author = of_author(every, block.posts)
    if author.is_finite:
        metrics.append(Metric("spent.author", author.epsilon))
    return metrics


def claims_of(
    plans: Sequence[TextNgramsPlan],
    found: FoundAttacks,
    block: TextsBlock,
    evidence: FlowEvidence,
) -> tuple[NamedClaim, ...]:
    """Return the claims of a world.

    Args:
        plans: Of the releases that were made.
        found: What attacks reached.
        block: The settings.
        evidence: Of the noise and the ledger of all releases.
    """
    first, last = plans[0], plans[-1]
    # The paper has no budget: all its releases claim what each of them does.
    budget = None if isinstance(first, PrintedTextsPlan) else block.total_budget
    rows = list(releases.claims_of(plans, found.games, None, budget, evidence))
    rows.append(NamedClaim(AUTHOR, _author_claim(first, block)))
    if found.corpus is not None:
        audited, null = found.corpus
        rows.append(NamedClaim(CORPUS, Claim(last.spec.cost, last.proved, audited, null)))
    parts = part_claims(first)
    if GENERALISATION in parts and found.boundary is not None:
        parts[GENERALISATION] = replace(parts[GENERALISATION], audited=found.boundary)
    rows += [NamedClaim(name, claim) for name, claim in parts.items()]
    return tuple(rows)


def _author_claim(plan: TextNgramsPlan, block: TextsBlock) -> Claim:
    """Return the claim of one release about an author: that of all texts together.

    The paper is about authors, and claims of them what it claims of a text.
    """
    cost, proved = (of_author(one, block.posts) for one in (plan.spec.cost, plan.proved))
    if isinstance(plan, PrintedTextsPlan):
        cost = replace(plan.spec.cost, neighbours=Neighbours.USER)
    return Claim(cost, proved)


def part_claims(plan: TextNgramsPlan) -> dict[str, Claim]:
    """Return what is proved of each noisy table alone, beside what all of them may cost.

    Of the paper's pipeline: what is proved of each of its parts.
    """
    if isinstance(plan, PrintedTextsPlan):
        return plan.part_claims
    cost, left = plan.spec.cost, plan.spec.cost.delta - plan.counting.cut_off
    return {
        name: Claim(cost, integer_guarantee([part], left, cost.neighbours))
        for name, part in plan.counting.continuous.items()
    }
