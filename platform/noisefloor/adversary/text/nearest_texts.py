"""Linkage by nearness: which original does a published text stand for, by its rare pieces?

The cosine of residual-IDF vectors, as the paper compares corpora. A permutation test says whether
published texts lie nearer to their own originals than to others of the same label: a generator
of each label is no link to a person. If published texts depend on originals by their labels alone,
every pairing within labels is as likely as another, and the test alarms with at most its level,
exactly, whatever the texts are. For the same reason a text has as many candidates as its label has
originals, and the bound of what is guessed right is the mean of those of the labels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import success
from noisefloor.adversary.audit import AttackOutcome, score
from noisefloor.adversary.text.relations import of_exchange
from noisefloor.checks import Floats, check_count
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee
from noisefloor.publication.text import Documents
from noisefloor.publication.text.evaluation import cosines
from noisefloor.randomness import Source

MOST_PAIRS = 4096
"""All cosines are in memory at once, 64 MB of them."""

PERMUTATIONS = 999


@dataclass(frozen=True, slots=True)
class TextLinkage:
    """What nearness gave away of the pairs.

    Attributes:
        links: How often the nearest original was the right one.
        paired: The mean cosine of a published text with its own original.
        unpaired: The mean cosine with all others of the same label; the same as paired if each
            label has one text.
        p_value: How often a random pairing has as large a mean: below a level alpha with
            probability alpha at most if nothing links the pairs.
        permutations: That were drawn for it; the smallest p-value is one by one more than these.
    """

    links: AttackOutcome
    paired: float
    unpaired: float
    p_value: float
    permutations: int

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the figures as one JSON object."""
        return {
            "linked": self.links.success,
            "interval": list(self.links.interval),
            "n": self.links.n,
            "chance": self.links.baseline,
            "bound": self.links.bound,
            "paired_cosine": self.paired,
            "unpaired_cosine": self.unpaired,
            "p_value": self.p_value,
            "permutations": self.permutations,
        }


def link_nearest(
    originals: Documents,
    published: Documents,
    weights: Floats,
    guarantee: Guarantee,
    source: Source,
    permutations: int = PERMUTATIONS,
) -> TextLinkage:
    """Name the original of each published text, and test whether pairs lie near.

    Sees:      the published texts.
    Knows:     the originals, and weights of pieces; not which text stands for which.
    Guesses:   of the originals of a text's label the one of the largest cosine; of equals the one
               that a random order has first. Chance is the number of labels by that of texts.
    Reference: Fisher 1935 (permutation test); Phipson and Smyth 2010 (its p-value), arXiv
               1603.05766.

    Args:
        originals: Texts of the corpus.
        published: As many and of the same labels, the i-th made from the i-th original: that is
            what is scored.
        weights: Residual IDF of each piece.
        guarantee: Of what was published.
        source: Draws pairings, and an order in which equal cosines are taken.
        permutations: How many pairings.
    """
    n = originals.count
    if not 2 <= n <= MOST_PAIRS or published.count != n:
        rule = f"as many as the originals, {n}, in [2, {MOST_PAIRS}]"
        raise BadParameter("published", published.count, rule)
    check_count(permutations, "permutations", most=1 << 16)
    if not np.array_equal(published.labels, originals.labels):
        raise BadParameter("published", "<labels>", "of the label of its original, each")
    found = cosines(published, originals, weights)
    own = found.diagonal().astype(np.float64)
    as_large = 0
    for draw in range(permutations):
        pairing = _within_labels(originals.labels, source.child("pairing", draw))
        drawn = found[np.arange(n), pairing].sum(dtype=np.float64)
        # A hair of rounding must not make the true pairing rarer than an equal one.
        as_large += int(drawn >= own.sum() - 1e-9 * n)
    is_alike = originals.labels[:, None] == originals.labels
    pairs = int(np.count_nonzero(is_alike)) - n
    total = float(found.sum(dtype=np.float64, where=is_alike) - own.sum())
    found[~is_alike] = -np.inf
    order = source.child("ties").permutation(n)
    guessed = order[found[:, order].argmax(axis=1)]
    return TextLinkage(
        score(
            guessed,
            np.arange(n),
            baseline=len(np.unique(originals.labels)) / n,
            bound=_bound(originals.labels, guarantee),
            candidates=n,
        ),
        paired=float(own.mean()),
        unpaired=total / pairs if pairs else float(own.mean()),
        p_value=(1 + as_large) / (1 + permutations),
        permutations=permutations,
    )


def _bound(labels: NDArray[np.int64], guarantee: Guarantee) -> float:
    """Bound how often the original is named, on average over texts of labels that are known."""
    # Two originals that change places are two texts that become others.
    exchange = of_exchange(guarantee, 2)
    _, of_text, counts = np.unique(labels, return_inverse=True, return_counts=True)
    bounds = np.asarray(success(exchange.epsilon, counts, exchange.delta))
    return min(1.0, float(bounds[of_text].mean()))


def _within_labels(labels: NDArray[np.int64], source: Source) -> NDArray[np.int64]:
    """Return a random pairing of texts with texts of the same label."""
    order = source.permutation(len(labels))
    pairing = np.empty(len(labels), dtype=np.int64)
    pairing[np.argsort(labels, kind="stable")] = order[np.argsort(labels[order], kind="stable")]
    return pairing
