"""Asking for a prediction without sending the record.

With the published model on the device nothing has to be sent: that costs nothing, and is the way
to ask unless somebody else needs the answer. Who does gets one bit, the decision by randomised
response; epsilon is spent for each query, and budgets add up.

What no number of training records changes: the bit is right with p = e^eps / (1 + e^eps), so that
a model of accuracy s is seen with 1/2 + (2 p - 1) (s - 1/2). At epsilon 1 that is 0.73 at most.
"""

import math
from dataclasses import dataclass, field

from noisefloor.accounting import Ledger, group
from noisefloor.checks import check_count, check_finite
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import BinaryResponse
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.wire import Kind, bit_vector_kind

DECISIONS = "decisions"
"""The kind of frame that carries protected decisions."""


def decisions_kind() -> Kind:
    """Make the kind of protected decisions: one bit."""
    return bit_vector_kind(DECISIONS, 1)


def protected_accuracy(accuracy: float, epsilon: float) -> float:
    """Return how often a protected decision is the true label, by the flip as it is rounded.

    Args:
        accuracy: Of the decision before it is protected, in [0, 1].
        epsilon: Of the query.
    """
    if not 0 <= check_finite(accuracy, "accuracy") <= 1:
        raise BadParameter("accuracy", accuracy, "in [0, 1]")
    flip = BinaryResponse(epsilon).flip / ONE
    return (1 - flip) * accuracy + flip * (1 - accuracy)


def repeated_success(epsilon: float, queries: int) -> float:
    """Return how often the majority of fresh answers to one question is its true decision.

    What who asks the same device again and again learns; half of a draw is lost.

    Args:
        epsilon: Of each query.
        queries: How many, each with coins of its own.
    """
    count = check_count(queries, "queries", most=1 << 12)
    flip = BinaryResponse(epsilon).flip / ONE
    logs = math.log(flip), math.log1p(-flip)

    def of_wrong(wrong: int) -> float:
        ways = math.lgamma(count + 1) - math.lgamma(wrong + 1) - math.lgamma(count - wrong + 1)
        return math.exp(ways + wrong * logs[0] + (count - wrong) * logs[1])

    half = of_wrong(count // 2) / 2 if count % 2 == 0 else 0.0
    return math.fsum(of_wrong(wrong) for wrong in range((count + 1) // 2)) + half


def queries_guarantee(epsilon: float, queries: int) -> Guarantee:
    """Return what so many queries of one person are proved to cost."""
    return group(BinaryResponse(epsilon).guarantee(), queries, Neighbours.USER)


@dataclass(slots=True)
class ProtectedQueries:
    """Answers of one device, within a budget.

    A question that is asked again has the answer that it had: nothing new is told, and nothing is
    spent. So repeating it teaches nobody more than the first answer did.

    Attributes:
        epsilon: Of each question.
        ledger: That debits them, by user.
        answered: What was told before, by the question's name.
    """

    epsilon: float
    ledger: Ledger
    answered: dict[str, bool] = field(default_factory=dict)

    def answer(self, subject: str, question: str, decision: bool, source: Source) -> bool:
        """Return the protected decision, or raise BudgetExceeded and tell nothing.

        Args:
            subject: Whose record it is about.
            question: Names the question in the whole ledger.
            decision: What the model says of the record.
            source: Of this answer's coin.
        """
        if question in self.answered:
            return self.answered[question]
        response = BinaryResponse(self.epsilon)
        self.ledger.spend(subject, question, response.guarantee(), DECISIONS)
        answer_bit = bool(response.randomise([bool(decision)], source)[0])
        self.answered[question] = answer_bit
        return answer_bit
