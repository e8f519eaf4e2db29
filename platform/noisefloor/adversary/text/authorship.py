"""Authorship: who wrote it, by style. Known texts of each candidate train the attack.

A naive Bayes classifier over pieces and bigrams, whose evidence adds up over the texts of one
pseudonym. Its weights are sparse: a thousand authors take no more memory than their texts.

Topics give authors away as well as style does. To look at style alone, all but the most frequent
pieces are made one, which leaves function words, endings and punctuation.

The guarantee of one document says little of an author of several: bounds are for all texts of an
author that become those of another, by group privacy unless the guarantee is one for users.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import success
from noisefloor.adversary.audit import AttackOutcome, score
from noisefloor.adversary.text.relations import of_exchange
from noisefloor.checks import Floats, check_count, check_integers
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee
from noisefloor.publication.text import Documents
from noisefloor.publication.text.evaluation import pair_presence

_SMOOTHING = 0.1

Authors = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Stylometry:
    """A classifier of texts by their author.

    Attributes:
        authors: How many there are.
        size: Of the vocabulary.
        kept: Pieces that are looked at, all others count as one beyond the vocabulary; nothing if
            all are looked at.
        weights: What each feature adds for each author that has it: [features, authors], sparse.
        usual: What any feature adds for an author that does not have it.
    """

    authors: int
    size: int
    kept: NDArray[np.int64] | None
    weights: Any = field(repr=False)
    usual: Floats = field(repr=False)

    def scores(self, texts: Documents) -> Floats:
        """Return the log-likelihood of each text for each author, less the mean over authors."""
        seen = self.features(texts)
        found = (seen @ self.weights).toarray() + np.diff(seen.indptr)[:, None] * self.usual
        return np.asarray(found - found.mean(axis=1, keepdims=True), dtype=np.float64)

    def features(self, texts: Documents) -> Any:  # a sparse matrix
        """Return what the classifier sees of texts."""
        return _features(texts, self.size, self.kept)


def train_stylometry(
    known: Documents, authors: int, size: int, frequent: int | None = None
) -> Stylometry:
    """Train a classifier on known texts.

    Args:
        known: Texts of the candidates, their labels the authors.
        authors: How many candidates there are; each has a text at least.
        size: Of the vocabulary.
        frequent: How many of the most frequent pieces are features: style rather than topics.
    """
    from scipy.sparse import csr_matrix

    check_count(authors, "authors", least=2)
    labels = check_integers(known.labels, 0, authors - 1)
    if len(np.unique(labels)) < authors:
        raise BadParameter("known", "<texts>", f"a text at least of each of {authors} authors")
    kept = None
    if frequent is not None:
        order = np.argsort(-np.bincount(known.pieces, minlength=size), kind="stable")
        kept = np.sort(order[: check_count(frequent, "frequent")])
    seen = _features(known, size, kept)
    owned = csr_matrix((np.ones(len(labels)), (labels, np.arange(len(labels)))))
    counts = (owned @ seen).tocsr()
    totals = np.asarray(counts.sum(axis=1)).ravel() + _SMOOTHING * counts.shape[1]
    # ln((c + s) / total) is ln(s / total) for what an author does not have, and ln(1 + c / s) more
    # for what is there.
    counts.data = np.log1p(counts.data / _SMOOTHING)
    return Stylometry(authors, size, kept, counts.T.tocsr(), np.log(_SMOOTHING / totals))


def link_authors(
    style: Stylometry,
    published: Documents,
    truth: Authors,
    guarantee: Guarantee,
    *,
    pseudonyms: NDArray[np.integer] | None = None,
    texts: int = 1,
    background: Documents | None = None,
) -> AttackOutcome:
    """Name the author of each pseudonym.

    Sees:      published texts, and which of them come together: from one account, or in one
               corpus that was made from the texts of one author and of people who are known.
    Knows:     other texts of each candidate.
    Guesses:   the author under whom the texts are likeliest.
    Reference: Narayanan and others 2012 (authorship at scale), doi 10.1109/SP.2012.46.

    The bound is that of A equally likely candidates, any two an exchange of all texts of an author
    apart: ``(e^epsilon + (A - 1) delta) / (e^epsilon + A - 1)``.

    Args:
        style: Trained on known texts.
        published: All texts that were published.
        truth: The author behind each pseudonym, drawn uniformly.
        guarantee: Of what was published.
        pseudonyms: Of each text, counted from 0; each text has one of its own if not given.
        texts: The most texts that an author has in the corpus.
        background: Texts published without any candidate: what is usual of them is taken off.
    """
    groups = np.arange(published.count) if pseudonyms is None else pseudonyms
    count = len(truth)
    check_integers(truth, 0, style.authors - 1)
    check_integers(groups, 0, count - 1)
    if not count or len(groups) != published.count:
        raise BadParameter("pseudonyms", len(groups), f"one for each of {published.count} texts")
    evidence = style.scores(published)
    if background is not None:
        evidence = evidence - style.scores(background).mean(axis=0)
    summed = np.zeros((count, style.authors))
    np.add.at(summed, groups, evidence)
    return score(
        summed.argmax(axis=1),
        truth,
        baseline=1 / style.authors,
        bound=authorship_bound(guarantee, style.authors, texts),
        candidates=style.authors,
    )


def authorship_bound(guarantee: Guarantee, authors: int, texts: int = 1) -> float:
    """Bound how often the author is named among equally likely ones, each with as many texts."""
    exchange = of_exchange(guarantee, check_count(texts, "texts"))
    return float(success(exchange.epsilon, authors, exchange.delta))


def _features(texts: Documents, size: int, kept: NDArray[np.int64] | None) -> Any:
    """Return presence of pieces and bigrams, all but the kept pieces being one."""
    if kept is None:
        return pair_presence(texts, size)
    is_kept = np.zeros(size, dtype=np.bool_)
    is_kept[kept] = True
    pieces = np.where(is_kept[texts.pieces], texts.pieces, size).astype(np.int32)
    return pair_presence(Documents(pieces, texts.offsets, texts.labels), size + 1)
