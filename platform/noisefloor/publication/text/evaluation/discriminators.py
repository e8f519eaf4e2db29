"""Discriminators: how well a classifier separates published texts from unseen real ones.

As many real texts as fake ones take part, half of each to learn from; the area under the curve
is that of the other half, with its interval. The area rises with the number of texts, so it is
never given without it.

*Pairs* sees which pieces and bigrams a text has: its grammar at arm's length. *Meaning* sees the
mean over pieces of the last layers of a pretrained encoder: what the text is about. Closeness in
meaning is no readability: fluency is a measure of its own.

Features of meaning are divided by their spread in the texts that are learned from. Without it a
penalty as strong as C 0.01 keeps the regression from using most of them, and fakes look better
than they are: 600 bigram texts of films had an area of 0.97 instead of 0.99.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, check_count, check_extra
from noisefloor.errors import BadParameter
from noisefloor.publication.fine_tuning import Backbone, TokenTable, check_pooled, run_frozen
from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.evaluation.area import area_interval, rank_area
from noisefloor.publication.text.evaluation.features import check_texts, pair_presence
from noisefloor.publication.text.tokeniser import EXTRA
from noisefloor.randomness import Source

FEWEST = 8
"""Texts of each kind; far more are needed to resolve anything."""

PAIRS_WEIGHT = 0.1
MEANING_WEIGHT = 0.01
MEANING_LAYERS = (4, 5, 6)

_LEAST_SPREAD = 1e-6  # some features of an encoder are the same for all texts


@dataclass(frozen=True, slots=True)
class Discrimination:
    """How well a classifier separates fake texts from real ones.

    Attributes:
        name: Of the discriminator.
        auc: How often a fake text scores above a real one; a tie counts half.
        interval: Of 95 %, over the draw of the texts that were tested on.
        n: Texts of each kind; half of them to learn from.
        tested: Texts of each kind that the area is over.
        scores: Of the tested texts, real ones first: for curves.
    """

    name: str
    auc: float
    interval: tuple[float, float]
    n: int
    tested: int
    scores: Floats = field(repr=False, compare=False)

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the figures as one JSON object."""
        found = {"name": self.name, "auc": self.auc, "interval": list(self.interval)}
        return {**found, "n": self.n, "tested": self.tested}


def discriminate_pairs(
    real: Documents, fake: Documents, size: int, source: Source, most: int | None = None
) -> Discrimination:
    """Classify texts as fake or real by the pieces and bigrams that they have.

    Args:
        real: Texts that no generator has seen.
        fake: Published texts.
        size: Of the vocabulary.
        source: Chooses the texts of both kinds.
        most: Texts of each kind; as many as both have if not given.
    """
    check_extra("Judging texts", EXTRA, "scikit-learn")
    check_texts("real", real, size)
    check_texts("fake", fake, size)

    def features(documents: Documents) -> Any:  # a sparse matrix
        return pair_presence(documents, size)

    return _discriminated("pairs", real, fake, features, PAIRS_WEIGHT, source, most)


def discriminate_meaning(
    real: Documents,
    fake: Documents,
    backbone: Backbone,
    source: Source,
    most: int | None = None,
    layers: tuple[int, ...] = MEANING_LAYERS,
    *,
    is_scaled: bool = True,
) -> Discrimination:
    """Classify texts as fake or real by the mean of layers of a pretrained encoder.

    Args:
        real: Texts that no generator has seen, in pieces of the backbone's own vocabulary.
        fake: Published texts, in the same pieces.
        backbone: A pretrained encoder; it is public.
        source: Chooses the texts of both kinds.
        most: Texts of each kind; as many as both have if not given.
        layers: Whose means over pieces are the features, counted from 1.
        is_scaled: Whether features are divided by their spread: the stricter measure.
    """
    check_extra("Judging texts", EXTRA, "scikit-learn")
    check_pooled(backbone, layers)

    def features(documents: Documents) -> Any:
        return run_frozen(backbone, token_table(documents, backbone), layers).pooled

    return _discriminated("meaning", real, fake, features, MEANING_WEIGHT, source, most, is_scaled)


def token_table(documents: Documents, backbone: Backbone) -> TokenTable:
    """Return documents as rows of an encoder, with the marks that it expects around each.

    A document that is longer than the encoder is cut; one without a piece has the marks alone.
    """
    first, last = _marks(backbone)
    room = backbone.positions - len(first) - len(last)
    kept = np.minimum(documents.lengths, room)
    lengths = kept + len(first) + len(last)
    width = int(lengths.max(initial=1))
    ids = np.full((documents.count, width), backbone.padding, dtype=np.int32)
    ids[:, : len(first)] = first
    places = np.arange(len(documents.pieces)) - np.repeat(
        documents.offsets[:-1], documents.lengths
    )
    fits = places < room
    ids[documents.owners[fits], places[fits] + len(first)] = documents.pieces[fits]
    ends = np.arange(len(last)) + (kept + len(first))[:, None]
    np.put_along_axis(ids, ends, np.asarray(last, dtype=np.int32)[None, :], axis=1)
    return TokenTable(ids, np.zeros(ids.shape, dtype=np.int8), lengths, {})


def _marks(backbone: Backbone) -> tuple[list[int], list[int]]:
    """Return the pieces that an encoder expects before and after a text."""
    tokenizer = backbone.tokenizer
    probe = tokenizer.encode("a", add_special_tokens=False)
    inner = len(probe.ids)
    marked = tokenizer.encode("a", add_special_tokens=True).ids
    for start in range(len(marked) - inner + 1):
        if marked[start : start + inner] == probe.ids:
            return marked[:start], marked[start + inner :]
    raise BadParameter("backbone", "<tokeniser>", "that leaves the pieces of a text as they are")


def _discriminated(
    name: str,
    real: Documents,
    fake: Documents,
    features: Callable[[Documents], Any],
    weight: float,
    source: Source,
    most: int | None,
    is_scaled: bool = False,
) -> Discrimination:
    """Train on half of the chosen texts and score the rest."""
    n = min(real.count, fake.count)
    n = n if most is None else min(n, check_count(most, "most"))
    if n < FEWEST:
        raise BadParameter("texts", n, f"at least {FEWEST} of each kind")
    half = n // 2
    chosen = [
        documents[source.child(kind).permutation(documents.count)[:n]]
        for kind, documents in (("real", real), ("fake", fake))
    ]
    matrices = [features(documents) for documents in chosen]
    learned = _stacked([one[:half] for one in matrices])
    unseen = _stacked([one[half:] for one in matrices])
    if is_scaled:
        centre, spread = learned.mean(axis=0), np.maximum(learned.std(axis=0), _LEAST_SPREAD)
        learned, unseen = (learned - centre) / spread, (unseen - centre) / spread
    scores = _scores(learned, half, unseen, weight)
    tested = n - half
    auc = rank_area(scores[tested:], scores[:tested])
    interval = area_interval(scores[tested:], scores[:tested])
    return Discrimination(name, auc, interval, n, tested, scores)


def _stacked(parts: list[Any]) -> Any:  # dense or sparse
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    from scipy.sparse import vstack

    return vstack(parts, format="csr")


def _scores(learned: Any, half: int, tested: Any, weight: float) -> Floats:
    """Return log-odds that texts are fake, by logistic regression on two halves."""
    from sklearn.linear_model import LogisticRegression

    labels: NDArray[np.int64] = np.repeat([0, 1], half)
    model = LogisticRegression(C=weight, max_iter=1000).fit(learned, labels)
    return np.asarray(model.decision_function(tested), dtype=np.float64)
