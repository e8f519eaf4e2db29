"""What the phases of a collection are claimed to cost, and what is proved of them.

Neighbours are two records of one owner. Phases add up: who takes part in selection and training
and asks T times pays for each. The paper's epsilon is that of one phase.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from noisefloor.accounting import sequential
from noisefloor.checks import check_count
from noisefloor.collection import collecting
from noisefloor.collection.cross_validation import CollectionPlan
from noisefloor.collection.encoding import Discretiser, PrintedDiscretiser
from noisefloor.privacy import Claim, Guarantee, Neighbours
from noisefloor.tables import ScaledSchema

_USER = Neighbours.USER
_WEAK = Guarantee.none("called weak: no epsilon is claimed", _USER)


@dataclass(frozen=True, slots=True)
class PhaseClaim:
    """A claim, and the phase or the phases that it is about."""

    phase: str
    claim: Claim


def selection_claim(selector: collecting.Selector, epsilon: float) -> PhaseClaim:
    """Return the claim of a selection, at the paper's epsilon for a phase."""
    if isinstance(selector, collecting.WeakSelection):
        said = _WEAK
    elif isinstance(selector, collecting.RandomSelection | collecting.EveryAttribute):
        said = Guarantee(0.0, _USER)
    else:
        said = Guarantee(epsilon, _USER)
    return PhaseClaim(selector.name, Claim(said, selector.guarantee()))


def collection_claim(
    collector: collecting.Collector, columns: Sequence[int], epsilon: float, phase: str
) -> PhaseClaim:
    """Return the claim of training, or of one question to the model."""
    is_weak = isinstance(collector, collecting.WeakCollector | collecting.RawCollector)
    said = _WEAK if is_weak else Guarantee(epsilon, _USER)
    name = f"{phase}: {collector.name}"
    return PhaseClaim(name, Claim(said, collector.guarantee(columns)))


def plan_claims(
    plan: CollectionPlan,
    columns: Sequence[int],
    *,
    epsilon: float,
    queries: int = 1,
) -> tuple[PhaseClaim, ...]:
    """Return the claims of each phase, and, last, of an owner who is in all of them.

    Args:
        plan: What is run.
        columns: The attributes that were chosen; the budget does not depend on which.
        epsilon: What the paper claims, of a phase and of the whole.
        queries: How often the owner asks the model; 0 where the model is asked on the device.
    """
    check_count(queries, "queries", least=0)
    phases = (
        selection_claim(plan.selection, epsilon),
        collection_claim(plan.train, columns, epsilon, "training"),
        collection_claim(plan.test, columns, epsilon, "question"),
    )
    spent = [phases[0].claim.proved, phases[1].claim.proved]
    spent += [phases[2].claim.proved] * queries
    questions = "1 question" if queries == 1 else f"{queries} questions"
    whole = Claim(Guarantee(epsilon, _USER), sequential(spent))
    return (*phases, PhaseClaim(f"owner: all phases and {questions}", whole))


def paper_claims(
    schema: ScaledSchema, *, count: int, classes: int, epsilon: float, queries: int = 1
) -> tuple[PhaseClaim, ...]:
    """Return the claims of the paper's phases as printed, and of their corrections.

    Args:
        schema: Of the records.
        count: K, the number of attributes that are collected.
        classes: L, the number of classes.
        epsilon: Of each phase.
        queries: How often an owner asks.
    """
    fair, columns = Discretiser(schema, classes), range(count)
    unified = collecting.UnifiedCollector(fair, epsilon)
    printed = collecting.PrintedCollector(PrintedDiscretiser(schema, classes), epsilon)
    random = CollectionPlan(collecting.RandomSelection(count), unified, unified)
    piecewise = CollectionPlan(collecting.PiecewiseSelection(count, epsilon), unified, unified)
    # The whole budget of a pipeline that is to cost epsilon: half for each of its two phases.
    half = collecting.UnifiedCollector(fair, epsilon / 2)
    corrected = CollectionPlan(collecting.ResponseSelection(count, fair, epsilon / 2), half, half)
    return (
        collection_claim(collecting.WeakCollector(fair), columns, epsilon, "training"),
        selection_claim(collecting.WeakSelection(count, fair), epsilon),
        collection_claim(printed, columns, epsilon, "training"),
        *_owner("DR.Rand", random, columns, epsilon, queries),
        *_owner("DR.PM", piecewise, columns, epsilon, queries),
        *_owner("DR.WALDP, half each", corrected, columns, epsilon, 0),
    )


def _owner(
    name: str, plan: CollectionPlan, columns: Sequence[int], epsilon: float, queries: int
) -> tuple[PhaseClaim, ...]:
    """Return the claims of selection, of training, and of an owner in both who then asks."""
    *_, trained = plan_claims(plan, columns, epsilon=epsilon, queries=0)
    rows = [PhaseClaim(f"{name} and training", trained.claim)]
    if queries:
        *_, whole = plan_claims(plan, columns, epsilon=epsilon, queries=queries)
        questions = "1 question" if queries == 1 else f"{queries} questions"
        rows.append(PhaseClaim(f"{name}, training and {questions}", whole.claim))
    return tuple(rows)
