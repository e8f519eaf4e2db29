"""Membership: was a text among those that a published corpus or generator was made from?

Scores come from a generator (its log-likelihood of the text, less that of a reference) or from
published texts alone (the nearest one, or shared runs of pieces). Members and others are real
texts drawn from the same population; the curve stands beside what the guarantee allows.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from noisefloor.accounting import (
    binary_success,
    gaussian_true_positive_rate,
    true_positive_rate,
)
from noisefloor.adversary.audit import REPORTED_RATES, RocCurve, one_run_bound
from noisefloor.adversary.text.relations import of_exchange, of_removal
from noisefloor.checks import Floats, blocks
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, LowerBound
from noisefloor.publication.text import Documents
from noisefloor.publication.text.evaluation import area_interval, ridf_vectors


@dataclass(frozen=True, slots=True, eq=False)
class TextMembership:
    """How well a score separates members of a corpus from others.

    Attributes:
        roc: The curve of all scores.
        interval: Of the area, 95 %, over the draw of texts.
        guarantee: Of what was published, for one text that is there or not.
        area_bound: What the mean area over publications cannot pass.
        bound: The epsilon that is proved; nothing where memberships were not drawn fairly.
        mu: Of Gaussian privacy, where the publication is known to have that as well.
    """

    roc: RocCurve = field(repr=False)
    interval: tuple[float, float]
    guarantee: Guarantee
    area_bound: float
    bound: LowerBound | None
    mu: float | None = None

    @property
    def auc(self) -> float:
        """How often a member scores above another; a tie counts half."""
        return self.roc.auc

    @property
    def allowed(self) -> Floats:
        """The most that the guarantee allows, at each false positive rate of the curve."""
        return self.allowed_at(self.roc.false_positive_rate)

    def allowed_at(self, rates: ArrayLike) -> Floats:
        """Return the most that the guarantee allows at some false positive rates.

        Formula: ``min(e^epsilon FPR + delta, 1 - e^-epsilon (1 - delta - FPR), 1)``, and with mu
        not above ``Phi(Phi^-1(FPR) + mu)`` either.
        """
        most = true_positive_rate(rates, self.guarantee.epsilon, self.guarantee.delta)
        if self.mu is not None:
            most = np.minimum(most, gaussian_true_positive_rate(rates, self.mu))
        return np.asarray(most, dtype=np.float64)

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the figures as one JSON object; a rate that is not resolved is null."""
        rates = {f"tpr_at_{rate:g}": tpr for rate, tpr in self.roc.resolved().items()}
        allowed = {f"allowed_at_{rate:g}": float(self.allowed_at(rate)) for rate in REPORTED_RATES}
        return {
            "auc": self.auc,
            "interval": list(self.interval),
            "area_bound": self.area_bound,
            "members": len(self.roc.members),
            "others": len(self.roc.others),
            **rates,
            **allowed,
        }


def attack_membership(
    scores: Floats,
    members: NDArray[np.bool_],
    guarantee: Guarantee,
    *,
    is_fair: bool = False,
    alpha: float = 1e-3,
    mu: float | None = None,
) -> TextMembership:
    """Infer membership from a score.

    Sees:      what was published.
    Knows:     each target's text; with a reference, other texts of the population.
    Guesses:   that a text of a high score was in the corpus.
    Reference: Carlini and others 2022 (low false positive rates), arXiv 2112.03570.

    Args:
        scores: Of each target: see ``nearest_scores`` and ``likelihood_scores``.
        members: Whether each was in the corpus.
        guarantee: Of what was published.
        is_fair: Whether each membership was drawn by a fair random bit of its own: only then
            one publication proves an epsilon.
        alpha: The probability that this epsilon is wrong.
        mu: Of Gaussian privacy; of a composition of sampled Gaussian noise about
            ``q sqrt(T (e^(1 / sigma^2) - 1))`` (central limit, no proof).
    """
    if np.shape(scores) != np.shape(members) or members.dtype != np.bool_:
        raise BadParameter("members", np.shape(members), "a boolean for each score")
    inside, outside = scores[members], scores[~members]
    removal, exchange = of_removal(guarantee), of_exchange(guarantee)
    bound = None
    if is_fair:
        bound = one_run_bound(scores, members, alpha=alpha, delta=removal.delta)
    return TextMembership(
        roc=RocCurve.of(inside, outside),
        interval=area_interval(inside, outside),
        guarantee=removal,
        area_bound=float(binary_success(exchange.epsilon, exchange.delta)),
        bound=bound,
        mu=mu,
    )


def nearest_scores(
    targets: Documents,
    published: Documents,
    weights: Floats,
    reference: Documents | None = None,
) -> Floats:
    """Score targets by the cosine with the nearest published text, less that with a reference.

    Args:
        targets: Real texts, members or not.
        published: All texts that were published.
        weights: Of pieces: residual IDF of texts that the adversary has.
        reference: Texts of the population; common texts lie near to everything.
    """
    near = _nearest(targets, published, weights)
    return near if reference is None else near - _nearest(targets, reference, weights)


def likelihood_scores(
    likelihoods: Floats, lengths: NDArray[np.integer], reference: Floats | None = None
) -> Floats:
    """Return log-likelihoods a piece, less those of a model that has seen none of the targets.

    Args:
        likelihoods: Of each target under the generator.
        lengths: Pieces of each target; one without a piece scores 0.
        reference: The same under a public or a shadow model.
    """
    gained = likelihoods if reference is None else likelihoods - reference
    return np.asarray(gained / np.maximum(lengths, 1), dtype=np.float64)


def _nearest(targets: Documents, others: Documents, weights: Floats) -> Floats:
    if not others.count:
        raise BadParameter("published", "<0 documents>", "at least 1")
    rows, columns = (ridf_vectors(some, weights) for some in (targets, others))
    turned = columns.T.tocsc()
    best = np.zeros(targets.count)
    for some in blocks(targets.count, others.count):
        best[some] = (rows[some] @ turned).max(axis=1).toarray().ravel()
    return best
