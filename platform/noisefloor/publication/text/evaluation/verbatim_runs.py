"""Verbatim runs: how many consecutive pieces of a published text stand in a given corpus.

Exact for every text and every place: all positions of both corpora are sorted by the pieces that
follow, and a position's longest match with the corpus is with one of its two neighbours there.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.evaluation.windows import Numbers, number_prefixes

LONGEST = 64
"""The longest runs that are counted by default, in pieces."""


@dataclass(frozen=True, slots=True, eq=False)
class VerbatimRuns:
    """The longest run that each text shares with a corpus.

    Attributes:
        longest: For each text, in pieces; 0 where not even one piece is shared.
        begins: The place in its text where it begins.
        reach: Runs longer than this count as this.
    """

    longest: NDArray[np.int64] = field(repr=False)
    begins: NDArray[np.int64] = field(repr=False)
    reach: int

    def share(self, least: int) -> float:
        """Return the share of texts with a copied run of at least ``least`` pieces."""
        check_count(least, "least", most=self.reach)
        return float(np.mean(self.longest >= least)) if len(self.longest) else 0.0


def verbatim_runs(texts: Documents, corpus: Documents, reach: int = LONGEST) -> VerbatimRuns:
    """Return the longest run of pieces that each text shares with any document of a corpus.

    Args:
        texts: Published texts.
        corpus: Real texts, or a public corpus that a generator was crossed with.
        reach: Where counting stops.
    """
    check_count(reach, "reach", most=1 << 12)
    matched = _matches(texts, corpus, reach)
    longest = np.zeros(texts.count, dtype=np.int64)
    begins = np.zeros(texts.count, dtype=np.int64)
    some = np.flatnonzero(texts.lengths)
    if len(some):
        longest[some] = np.maximum.reduceat(matched, texts.offsets[some])
        is_best = matched == longest[texts.owners]
        places = np.flatnonzero(is_best)
        owners, first = np.unique(texts.owners[places], return_index=True)
        begins[owners] = places[first] - texts.offsets[owners]
    return VerbatimRuns(longest, begins, reach)


def _matches(texts: Documents, corpus: Documents, reach: int) -> Numbers:
    """Return how many pieces from each position of the texts on stand somewhere in the corpus."""
    pieces = np.concatenate([texts.pieces, corpus.pieces]).astype(np.int64)
    own = len(texts.pieces)
    ends = np.concatenate(
        [
            np.repeat(texts.offsets[1:], texts.lengths),
            np.repeat(corpus.offsets[1:], corpus.lengths) + own,
        ]
    )
    order = np.argsort(number_prefixes(pieces, ends, reach), kind="stable")
    is_corpus = order >= own
    spots = np.arange(len(order))
    before = np.maximum.accumulate(np.where(is_corpus, spots, -1))
    after = np.minimum.accumulate(np.where(is_corpus, spots, len(order))[::-1])[::-1]
    found = np.zeros(own, dtype=np.int64)
    mine = np.flatnonzero(~is_corpus)
    for neighbour in (before[mine], after[mine]):
        there = (neighbour >= 0) & (neighbour < len(order))
        first, second = order[mine[there]], order[neighbour[there]]
        found[first] = np.maximum(found[first], _common(pieces, ends, first, second, reach))
    return found


def _common(
    pieces: Numbers, ends: Numbers, first: Numbers, second: Numbers, reach: int
) -> Numbers:
    """Return how many pieces two positions have in common, both read onwards."""
    common = np.zeros(len(first), dtype=np.int64)
    still = np.arange(len(first))
    for step in range(reach):
        here, there = first[still] + step, second[still] + step
        inside = (here < ends[first[still]]) & (there < ends[second[still]])
        still, here, there = still[inside], here[inside], there[inside]
        still = still[pieces[here] == pieces[there]]
        if not len(still):
            break
        common[still] += 1
    return common
