"""How varied a corpus is: distinct n-grams, self-BLEU, vocabulary, rare words.

All but self-BLEU depend on how many pieces a corpus has, so corpora are compared at one size.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, check_count
from noisefloor.errors import BadParameter
from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.evaluation.features import check_texts, piece_presence
from noisefloor.publication.text.evaluation.windows import number_windows
from noisefloor.randomness import Source

ORDERS = 4
"""The longest n-grams of BLEU."""

SAMPLE = 500
"""Texts that are compared with one another, if not said otherwise."""

RARE = 1e-3
"""A piece is rare if at most this share of the reference documents has it."""


@dataclass(frozen=True, slots=True)
class Diversity:
    """How varied a corpus is.

    Attributes:
        distinct_1: Different pieces by pieces.
        distinct_2: Different bigrams by bigrams.
        self_bleu: The mean BLEU of a text against the others of a sample: 1 if all are alike.
        vocabulary: Different pieces.
        rare_share: The share of pieces that are rare in the reference.
        rare_kinds: How many different rare pieces there are.
        texts: Documents.
        pieces: In all of them.
        compared: Texts that self-BLEU is over.
    """

    distinct_1: float
    distinct_2: float
    self_bleu: float
    vocabulary: int
    rare_share: float
    rare_kinds: int
    texts: int
    pieces: int
    compared: int

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the figures as one JSON object."""
        return asdict(self)


def measure_diversity(
    texts: Documents,
    reference: Documents,
    size: int,
    source: Source,
    sample: int = SAMPLE,
) -> Diversity:
    """Measure how varied a corpus is.

    Args:
        texts: Published texts, or real ones to compare with.
        reference: Says which pieces are rare: real or public texts, the same for all corpora.
        size: Of the vocabulary.
        source: Chooses the texts that are compared with one another.
        sample: How many.
    """
    check_texts("texts", texts, size, least=2)
    check_texts("reference", reference, size)
    chosen = source.permutation(texts.count)[: check_count(sample, "sample", least=2)]
    found = np.bincount(texts.pieces, minlength=size)
    presence = piece_presence(reference, size)
    shares = np.bincount(presence.indices, minlength=size) / reference.count
    rare = found[shares <= RARE]
    return Diversity(
        distinct_1=_distinct(texts, 1),
        distinct_2=_distinct(texts, 2),
        self_bleu=float(self_bleu(texts[np.sort(chosen)]).mean()),
        vocabulary=int(np.count_nonzero(found)),
        rare_share=float(rare.sum() / max(1, len(texts.pieces))),
        rare_kinds=int(np.count_nonzero(rare)),
        texts=texts.count,
        pieces=len(texts.pieces),
        compared=len(chosen),
    )


def self_bleu(texts: Documents) -> Floats:
    """Return the BLEU of each text, all others being its references.

    Runs of two pieces or more are counted with one more match and one more run, so that a text
    without a common run of four does not count as one without a common piece. Orders longer than
    the text are left out; a text without pieces has 0.

    Reference: Zhu and others 2018 (self-BLEU), arXiv 1802.01886; Lin and Och 2004 (smoothing).
    """
    if texts.count < 2:
        raise BadParameter("texts", f"<{texts.count} documents>", "at least 2")
    logs, orders = np.zeros(texts.count), np.minimum(texts.lengths, ORDERS)
    for order in range(1, ORDERS + 1):
        matches = _clipped_matches(texts, order) + (order > 1)
        runs = np.maximum(texts.lengths - order + 1, 1) + (order > 1)
        with np.errstate(divide="ignore"):
            logs += np.where(order <= orders, np.log(matches / runs), 0.0)
    bleu = np.exp(logs / np.maximum(orders, 1) + _brevity(texts.lengths))
    return np.where(orders > 0, bleu, 0.0)


def _distinct(texts: Documents, length: int) -> float:
    (windows,), _ = number_windows([texts], length)
    return len(np.unique(windows.numbers)) / max(1, len(windows.numbers))


def _clipped_matches(texts: Documents, order: int) -> NDArray[np.int64]:
    """Return how many runs of each text others have, each counted as often as one of them has it.

    The most that any other text has of a run is the largest count over all texts, or the second
    largest for the text that has the largest itself.
    """
    (windows,), different = number_windows([texts], order)
    keys = windows.numbers * texts.count + windows.owners
    pairs, counts = np.unique(keys, return_counts=True)
    runs, owners = pairs // texts.count, pairs % texts.count
    ranked = np.lexsort((-counts, runs))
    first = np.searchsorted(runs[ranked], np.arange(different))
    largest = np.zeros(different, dtype=np.int64)
    second = np.zeros(different, dtype=np.int64)
    holder = np.full(different, -1)
    present, sizes = np.unique(runs, return_counts=True)
    largest[present] = counts[ranked][first[present]]
    holder[present] = owners[ranked][first[present]]
    shared = present[sizes > 1]
    second[shared] = counts[ranked][first[shared] + 1]
    elsewhere = np.where(holder[runs] == owners, second[runs], largest[runs])
    clipped = np.minimum(counts, elsewhere)
    return np.bincount(owners, weights=clipped, minlength=texts.count).astype(np.int64)


def _brevity(lengths: NDArray[np.int64]) -> Floats:
    """Return the logarithm of BLEU's penalty for texts shorter than the nearest in length."""
    order = np.argsort(lengths, kind="stable")
    ranked = lengths[order].astype(np.float64)
    below = np.append(-np.inf, ranked[:-1])
    above = np.append(ranked[1:], np.inf)
    # Of two as near, the shorter.
    nearest = np.where(ranked - below <= above - ranked, below, above)
    penalty = np.empty(len(lengths))
    penalty[order] = np.minimum(0.0, 1 - nearest / np.maximum(ranked, 1))
    return penalty
