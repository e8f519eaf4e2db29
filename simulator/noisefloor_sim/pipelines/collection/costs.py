"""What each phase is claimed to cost, what is proved of it, and what the ledger debits.

The ledger debits what is claimed. Classes that are sent without noise have no epsilon to debit:
nothing is debited, and the claim says infinity.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from noisefloor.accounting.entry import Amount
from noisefloor.collection.claims import collection_claim, selection_claim
from noisefloor.collection.course import RecordCourse
from noisefloor.collection.lessons import RowsLesson
from noisefloor.collection.selection import Asking
from noisefloor.privacy import Claim, Guarantee, Neighbours

_USER = Neighbours.USER


@dataclass(frozen=True, slots=True)
class Costs:
    """The claims of a course's phases; the selection costs nobody anything if it uses no data."""

    selection: Claim
    training: Claim
    question: Claim

    @classmethod
    def of(cls, course: RecordCourse, columns: Sequence[int] | None = None) -> "Costs":
        """Return the claims; they do not depend on which attributes were chosen, but on sizes.

        Args:
            course: What is run.
            columns: The attributes that were chosen, if they are known.
        """
        lesson, epsilon = course.lesson, course.epsilon
        chosen = widest(course) if columns is None else columns
        selection = selection_claim(course.selector, epsilon).claim
        if isinstance(lesson, RowsLesson):
            training, question = (
                collection_claim(one, chosen, epsilon, "").claim
                for one in (lesson.train, lesson.ask)
            )
            return cls(selection, training, question)
        said = Guarantee(epsilon, _USER)
        return cls(
            selection,
            Claim(said, lesson.guarantee(chosen)),
            Claim(said, lesson.query_guarantee(chosen)),
        )

    def of_round(self, course: RecordCourse, number: int) -> int:
        """Return what a report in a round is debited, in micro-epsilon."""
        is_selection = isinstance(course.selector, Asking) and number == 0
        return debited(self.selection if is_selection else self.training)


def debited(claim: Claim) -> int:
    """Return what a release is debited, in micro-epsilon."""
    return Amount.cost(claim.claimed).micro_epsilon if claim.claimed.is_finite else 0


def widest(course: RecordCourse) -> list[int]:
    """Return as many attributes as are told of, those with most classes."""
    order = sorted(range(len(course.schema)), key=lambda one: -course.cut.sizes[one])
    return order[: course.chosen]
