"""What a corpus may cost, and what seeds as printed cost instead; torch-free."""

import math

from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor_sim.papers.text import printed

RELATION = Neighbours.RECORD_ADD_REMOVE
CLASSES = 2


def budget_of(epsilon: float, share: float = 1.0) -> Guarantee:
    """Return a part of what a corpus may cost."""
    delta = printed.DELTA * share
    return Guarantee(epsilon * share, RELATION, delta=delta, model=TrustModel.CENTRAL)


def seed_delta(pieces: int, texts: int, count: int = 1) -> float:
    """Return 1 - (1 - c/n)**d: the chance that a piece of one document is a seed.

    Without the document it is none, so no epsilon holds at a smaller delta.

    Args:
        pieces: Of all documents, n.
        texts: That are written, d.
        count: How often the piece stands in the one document, c.
    """
    return -math.expm1(texts * math.log1p(-count / pieces)) if pieces > count else 1.0
