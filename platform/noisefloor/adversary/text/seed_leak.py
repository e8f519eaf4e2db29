"""Seeds and vocabulary: a piece that one text alone has, looked for in what was published.

Algorithm 2 of the paper draws each output's first piece from the counts of the originals. So a
piece of one text only is seen with the probability below; without that text it is never seen. No
epsilon covers that: delta has to be as large as the probability itself.
"""

import math

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import true_positive_rate
from noisefloor.adversary.audit import AttackOutcome, upper_limit
from noisefloor.adversary.text.relations import of_removal
from noisefloor.checks import check_count
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee
from noisefloor.publication.text import Documents

_MISSED = 0.025
"""The probability that the rate of pieces that were planted nowhere is underestimated."""


def leak_chance(occurrences: int, corpus_pieces: int, drawn: int) -> float:
    """Return the probability that a piece is among the seeds that are drawn from a corpus.

    Formula: ``1 - (1 - c / N)^d`` for c of N pieces and d seeds.
    """
    check_count(corpus_pieces, "corpus_pieces")
    check_count(occurrences, "occurrences", least=0, most=corpus_pieces)
    check_count(drawn, "drawn", least=0)
    if occurrences == corpus_pieces:
        return float(drawn > 0)
    return -math.expm1(drawn * math.log1p(-occurrences / corpus_pieces))


def search_pieces(published: Documents, sought: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return how often each sought piece occurs in published texts."""
    if not len(sought):
        return np.empty(0, dtype=np.int64)
    size = int(max(sought.max(), published.pieces.max(initial=0))) + 1
    counts = np.bincount(published.pieces, minlength=size)
    return np.asarray(counts[sought], dtype=np.int64)


def attack_seeds(
    published: Documents,
    planted: NDArray[np.integer],
    guarantee: Guarantee,
    *,
    chance: float | None = None,
    controls: NDArray[np.integer] | None = None,
) -> AttackOutcome:
    """Look for pieces that one text each had.

    Sees:      the published texts.
    Knows:     pieces that the target alone uses; pieces that nobody uses, as controls.
    Guesses:   that a target was in the corpus if one of the published texts has its piece.

    The bound is that on a true positive rate at the rate of the controls, from above: with no
    controls, at 0, where only delta is left.

    Args:
        published: All texts that were published.
        planted: Pieces, each in one text of the corpus.
        guarantee: Of what was published.
        chance: How often a planted piece is seen by its distribution: ``leak_chance``.
        controls: Pieces of the vocabulary that no text of the corpus has.
    """
    if not len(planted):
        raise BadParameter("planted", "<0 pieces>", "at least 1")
    found = int(np.count_nonzero(search_pieces(published, planted)))
    false, highest = 0.0, 0.0
    if controls is not None and len(controls):
        seen = int(np.count_nonzero(search_pieces(published, controls)))
        false = seen / len(controls)
        highest = float(upper_limit(seen, len(controls), _MISSED))
    removal = of_removal(guarantee)
    most = true_positive_rate(highest, removal.epsilon, removal.delta)
    return AttackOutcome(found, len(planted), false, float(most), closed_form=chance)
