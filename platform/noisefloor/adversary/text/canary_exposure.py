"""Canaries: secrets put into a corpus, and their rank among others that might have been put there.

One of R candidates is drawn, inserted, and looked for in what was published: by the likelihood
that a generator gives to each candidate, or, where only texts are published, by how many of its
runs of pieces stand there. Under (epsilon, delta) for one text a secret comes first with
probability at most e^epsilon / R + delta, since without it all candidates are alike.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit import AttackOutcome, lower_limit
from noisefloor.adversary.text.relations import of_removal
from noisefloor.checks import Floats, check_count, check_integers, check_probability
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, LowerBound
from noisefloor.publication.text import Documents
from noisefloor.publication.text.evaluation import number_windows
from noisefloor.randomness import Source

TextScore: TypeAlias = Callable[[Documents], Floats]
"""A generator's log-likelihood of each text, or anything else that is higher for likelier ones."""

DEFAULT_REACH = 5
"""The longest runs that are searched for, in pieces."""


@dataclass(frozen=True, slots=True, eq=False)
class CanaryExposure:
    """Where secrets stood among their candidates, one game for each insertion.

    Attributes:
        ranks: Of the secret, 1 if no candidate scored above it; ties are broken at random.
        candidates: R, among which each secret was drawn.
        guarantee: Of what was published, for the secret's presence.
    """

    ranks: NDArray[np.int64] = field(repr=False)
    candidates: int
    guarantee: Guarantee

    @property
    def exposures(self) -> Floats:
        """How many bits of each secret the publication gave away, of log2 R.

        Formula: ``log2 R - log2 rank``.
        Reference: Carlini and others 2019 (the secret sharer), arXiv 1802.08232.
        """
        return np.asarray(math.log2(self.candidates) - np.log2(self.ranks))

    @property
    def expected_exposure(self) -> float:
        """The mean exposure of secrets that nothing gives away: each rank as likely as another."""
        size = self.candidates
        return math.log2(size) - math.lgamma(size + 1) / math.log(2) / size

    @property
    def first(self) -> AttackOutcome:
        """How often the secret came first, beside the most that the guarantee allows.

        Formula: ``e^epsilon / R + delta``.
        """
        epsilon, delta = self.guarantee.epsilon, self.guarantee.delta
        most = math.exp(min(epsilon, 700.0)) / self.candidates + delta
        return AttackOutcome(
            right=int(np.count_nonzero(self.ranks == 1)),
            n=len(self.ranks),
            baseline=1 / self.candidates,
            bound=min(1.0, most),
            candidates=self.candidates,
        )

    def lower_bound(self, alpha: float, delta: float = 0.0) -> LowerBound:
        """Return the epsilon that the games prove; they have to be of independent publications.

        Formula: ``ln(R (p - delta))`` with p the lower Clopper-Pearson limit of coming first.

        Args:
            alpha: The probability that the bound is wrong.
            delta: Audits (epsilon, delta) at this delta.
        """
        check_probability(alpha, "alpha")
        n = len(self.ranks)
        reached, most = (
            self._epsilon(float(lower_limit(right, n, alpha)) - delta)
            for right in (self.first.right, n)
        )
        return LowerBound(reached, 1 - alpha, n, most)

    def _epsilon(self, share: float) -> float:
        return max(0.0, math.log(self.candidates * share)) if share > 0 else 0.0


def rank_canaries(
    scores: Floats, secrets: NDArray[np.integer], guarantee: Guarantee, source: Source
) -> CanaryExposure:
    """Rank the secret of each game among its candidates.

    Sees:      a score of each candidate from what was published: a likelihood or occurrences.
    Knows:     the candidates, and that each is as likely to have been inserted as another.
    Guesses:   the candidate of the highest score.
    Reference: Carlini and others 2019, arXiv 1802.08232.

    Args:
        scores: Games by candidates.
        secrets: The candidate that was inserted, of each game, drawn uniformly.
        guarantee: Of what was published.
        source: Breaks ties.
    """
    if np.ndim(scores) != 2 or not scores.size or np.isnan(scores).any():
        raise BadParameter("scores", np.shape(scores), "games by candidates, none of them NaN")
    games, size = scores.shape
    check_count(size, "candidates", least=2)
    secrets = check_integers(secrets, 0, size - 1).astype(np.int64)
    if len(secrets) != games:
        raise BadParameter("secrets", len(secrets), f"one for each of {games} games")
    own = np.take_along_axis(scores, secrets[:, None], axis=1)
    above = (scores > own).sum(axis=1)
    ties = (scores == own).sum(axis=1)
    broken = source.below(ties.astype(np.uint64), games).astype(np.int64)
    return CanaryExposure(above + broken + 1, size, of_removal(guarantee))


def occurrence_scores(
    candidates: Documents,
    published: Documents,
    reach: int = DEFAULT_REACH,
    reference: Documents | None = None,
) -> Floats:
    """Score candidates by how often their runs of pieces occur in published texts.

    Sees:      the published texts.
    Knows:     the candidates; with a reference, public texts as well.
    Guesses:   nothing by itself: scores are for ``rank_canaries`` or for membership.

    Each run of n pieces counts n times the logarithm of one plus its occurrences; with a
    reference, less what is expected from there. Candidates should be of one length.

    Args:
        candidates: One text for each.
        published: All texts that were published.
        reach: The longest runs that count, in pieces.
        reference: Texts of the same kind of which none holds a secret.
    """
    check_count(reach, "reach")
    scores = np.zeros(candidates.count)
    parts = [candidates, published] if reference is None else [candidates, published, reference]
    for length in range(1, reach + 1):
        numbered, different = number_windows(parts, length)
        seen = [np.bincount(one.numbers, minlength=different) for one in numbered[1:]]
        gain = np.log1p(seen[0])
        if len(seen) == 2:
            size = len(numbered[1].numbers) / max(1, len(numbered[2].numbers))
            gain = gain - np.log1p(seen[1] * size)
        mine = numbered[0]
        scores += length * np.bincount(
            mine.owners, weights=gain[mine.numbers], minlength=candidates.count
        )
    return scores
