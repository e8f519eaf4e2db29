"""A trigram model of public texts: how fluent a text is, without any library.

Interpolated Kneser-Ney smoothing with one discount for each order: shorter runs count the
different contexts that a piece comes in, and what is left goes to all pieces alike. All counts are
sorted keys in rows of numpy; a million pieces are scored in a second or two.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, check_count
from noisefloor.errors import BadParameter
from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.evaluation.features import check_texts

Keys = NDArray[np.int64]

MOST_PIECES = 1 << 20
"""Of a vocabulary: three pieces are one 64-bit integer."""


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """Counts of one order: of runs, and of the contexts that they begin with."""

    runs: Keys
    counts: Floats
    contexts: Keys
    totals: Floats
    kinds: Floats
    discount: float

    @classmethod
    def of(cls, runs: Keys, counts: NDArray[np.int64], base: int) -> "_Order":
        """Sum up the counts of runs, given in rising order, by the run without its last piece."""
        contexts, place, kinds = np.unique(runs // base, return_inverse=True, return_counts=True)
        totals = np.bincount(place, weights=counts, minlength=len(contexts)).astype(np.float64)
        once, twice = (np.count_nonzero(counts == times) for times in (1, 2))
        discount = once / (once + 2 * twice) if once else 0.5
        kept = float(np.clip(discount, 0.1, 0.9))
        return cls(runs, counts.astype(np.float64), contexts, totals, kinds.astype(float), kept)

    def interpolated(self, runs: Keys, base: int, shorter: Floats) -> Floats:
        """Return the probability of the last piece of each run, given those of shorter runs."""
        own = _at(self.runs, self.counts, runs)
        total = _at(self.contexts, self.totals, runs // base)
        kinds = _at(self.contexts, self.kinds, runs // base)
        known = np.maximum(total, 1.0)
        found = (np.maximum(own - self.discount, 0.0) + self.discount * kinds * shorter) / known
        return np.where(total > 0, found, shorter)


@dataclass(frozen=True, slots=True, eq=False)
class TrigramModel:
    """A trigram model with interpolated Kneser-Ney smoothing.

    Attributes:
        size: Of the vocabulary.
        trained: Pieces that it was trained on.
    """

    size: int
    trained: int
    _orders: tuple[_Order, _Order, _Order] = field(repr=False)

    @classmethod
    def train(cls, corpus: Documents, size: int) -> "TrigramModel":
        """Count the runs of a corpus; it should be public, and none of what is judged.

        Reference: Kneser and Ney 1995, doi 10.1109/ICASSP.1995.479394; Chen and Goodman 1999
        (interpolation), doi 10.1006/csla.1999.0128.
        """
        check_count(size, "size", most=MOST_PIECES)
        check_texts("corpus", corpus, size)
        if not len(corpus.pieces):
            raise BadParameter("corpus", "<0 pieces>", "at least one piece")
        base = size + 1
        three, counts = np.unique(_keys(corpus, size), return_counts=True)
        # Of a shorter run it counts how many different pieces come before it.
        two, before_two = np.unique(three % base**2, return_counts=True)
        one, before_one = np.unique(two % base, return_counts=True)
        orders = (
            _Order.of(one, before_one, base),
            _Order.of(two, before_two, base),
            _Order.of(three, counts, base),
        )
        return cls(size, len(corpus.pieces), orders)

    def log_probabilities(self, texts: Documents) -> Floats:
        """Return ln P(piece | the two before it) of every piece; none is minus infinity."""
        check_texts("texts", texts, self.size, least=0)
        base = self.size + 1
        keys = _keys(texts, self.size)
        chance = np.full(len(keys), 1 / self.size)
        for width, order in zip((base, base**2, base**3), self._orders, strict=True):
            chance = order.interpolated(keys % width, base, chance)
        return np.asarray(np.log(chance), dtype=np.float64)

    def nats(self, texts: Documents) -> Floats:
        """Return the negative log-likelihood of each text; one without pieces has 0."""
        costs = -self.log_probabilities(texts)
        found = np.bincount(texts.owners, weights=costs, minlength=texts.count)
        return found.astype(np.float64)


def _keys(texts: Documents, size: int) -> Keys:
    """Return each piece with the two before it as one integer; before a text there is a mark."""
    pieces = texts.pieces.astype(np.int64)
    places = np.arange(len(pieces)) - np.repeat(texts.offsets[:-1], texts.lengths)
    base, key = size + 1, pieces
    for back in (1, 2):
        earlier = np.full(len(pieces), size, dtype=np.int64)
        earlier[back:] = pieces[: len(pieces) - back]
        key = key + np.where(places >= back, earlier, size) * base**back
    return key


def _at(keys: Keys, values: Floats, sought: Keys) -> Floats:
    """Return the value of each sought key, 0 where there is none."""
    place = np.minimum(np.searchsorted(keys, sought), len(keys) - 1)
    return np.where(keys[place] == sought, values[place], 0.0)
