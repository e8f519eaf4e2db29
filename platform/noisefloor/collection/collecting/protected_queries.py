"""Predictions without sending the record.

With the published model on the device nothing has to be sent: that costs nothing, and is the way
to ask unless somebody else needs the answer. Who does gets the decision by randomised response,
one bit where there are two labels; epsilon is spent for each query, and budgets add up.

What no number of training records changes: the bit is right with p = e^eps / (1 + e^eps), so that
a model of accuracy s is seen with 1/2 + (2 p - 1) (s - 1/2). At epsilon 1 that is 0.73 at most.
"""

import math

from noisefloor.checks import check_count
from noisefloor.distributions import ONE
from noisefloor.mechanisms import BinaryResponse
from noisefloor.wire import Kind, Symbols, bit_vector_kind, record_kind

DECISIONS = "decisions"
"""The kind of frame that carries protected decisions."""


def decisions_kind(labels: int = 2) -> Kind:
    """Make the kind of protected decisions: one bit, or one of more than two labels."""
    if labels == 2:
        return bit_vector_kind(DECISIONS, 1)
    return record_kind(DECISIONS, {"decision": Symbols(labels)})


def repeated_success(epsilon: float, queries: int) -> float:
    """Return how often the majority of fresh answers to one question is its true decision.

    What who asks the same device again and again learns; half of a draw is lost.

    Args:
        epsilon: Of each query.
        queries: How many, each with draws of its own.
    """
    count = check_count(queries, "queries", most=1 << 12)
    flip = BinaryResponse(epsilon).flip / ONE
    logs = math.log(flip), math.log1p(-flip)

    def of_wrong(wrong: int) -> float:
        ways = math.lgamma(count + 1) - math.lgamma(wrong + 1) - math.lgamma(count - wrong + 1)
        return math.exp(ways + wrong * logs[0] + (count - wrong) * logs[1])

    half = of_wrong(count // 2) / 2 if count % 2 == 0 else 0.0
    return math.fsum(of_wrong(wrong) for wrong in range((count + 1) // 2)) + half
