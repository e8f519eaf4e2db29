"""The informed adversary: all records but one are known, which is the missing one?

What the others give is known, so each candidate for the missing record stands for a known centre
of the release, and only the noise is between them. This is for releases with a known
distribution: noisy counts, and parameters with noise of a known distribution.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary import audit
from noisefloor.adversary.releases import noise_distributions
from noisefloor.adversary.releases.reconstruction_bounds import as_substitution, candidate_bound
from noisefloor.checks import Floats, blocks, check_count
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Reports
from noisefloor.privacy import Guarantee
from noisefloor.randomness import Source

_LIKELY = 1e-13
"""Ratios that are rarer are left out of a closed form."""

_DIGITS = 7
"""Log-ratios that agree so far are one; rounding weights to 64 bits makes them differ later."""

_MOST_RATIOS = 1 << 24


@dataclass(frozen=True, slots=True)
class NoisyVectorRelease:
    """A release with independent noise on every coordinate, as ``posterior`` takes it."""

    noise: noise_distributions.Density

    def log_likelihood(self, reports: Reports, value: Reports) -> Floats:
        """Return ln P(release | its centre), one row per release."""
        return np.asarray(self.noise.log_density(reports - value).sum(axis=1))


def reconstruct(
    released: Reports,
    centres: Reports,
    noise: noise_distributions.Density,
    prior: audit.Prior = None,
) -> Floats:
    """Return the posterior of each candidate, one row per release.

    Sees:      the release: noisy counts, or noisy parameters.
    Knows:     all records but one, the candidates for it and their prior, the distribution of the
               noise.
    Guesses:   nothing yet; ``most_probable`` names the candidate.
    Reference: Bayes; the adversary is that of Balle, Cherubin and Hayes 2022, arXiv 2201.04845.

    Args:
        released: One row per release.
        centres: What would be released without noise, one row per candidate.
        noise: Its distribution.
        prior: Of the candidates.
    """
    if released.ndim != 2 or released.shape[1:] != centres.shape[1:]:
        raise BadParameter("released", released.shape, f"rows like the centres, {centres.shape}")
    return audit.posterior(NoisyVectorRelease(noise), released[:, None], centres, prior)


@dataclass(frozen=True, slots=True, eq=False)
class InformedGame:
    """A record is drawn by the prior, the release is made, and the record is guessed.

    Attributes:
        centres: What is released without noise, one row per candidate.
        noise: Its distribution.
        guarantee: What is proved of the release; any two candidates are neighbours in its sense.
        prior: Of the candidates; without one, all are alike.
        closed_form: The success of the best guess, where it is known.
        is_covered: Whether the guarantee speaks of this release at all.
    """

    centres: Reports
    noise: noise_distributions.NoiseDistribution
    guarantee: Guarantee
    prior: audit.Prior = None
    closed_form: float | None = None
    is_covered: bool = True

    def __post_init__(self) -> None:
        if self.centres.ndim != 2:
            raise BadParameter("centres", self.centres.shape, "a row for each candidate")
        audit.check_prior(len(self.centres), self.prior)

    @property
    def shares(self) -> Floats:
        """The prior as shares."""
        return audit.check_prior(len(self.centres), self.prior)

    @property
    def bound(self) -> float:
        """What no attack can pass."""
        return candidate_bound(self.guarantee, self.shares)

    def guess(self, released: Reports) -> audit.Guess:
        """Name the most probable candidate behind each release."""
        return audit.most_probable(reconstruct(released, self.centres, self.noise, self.prior))

    def play(self, games: int, source: Source) -> audit.AttackOutcome:
        """Play ``games`` games, each with a record, a release and a guess of its own."""
        truth = audit.draw_truth(self.shares, check_count(games, "games"), source)
        guessed, width = np.empty_like(truth), self.centres.shape[1]
        for number, rows in enumerate(blocks(games, width)):
            centres = self.centres[truth[rows]]
            noise = self.noise.draw(centres.shape, source.child("block", number))
            guessed[rows] = self.guess(centres + noise).candidate
        return audit.score(
            guessed,
            truth,
            baseline=float(self.shares.max()),
            bound=self.bound,
            closed_form=self.closed_form,
            is_covered=self.is_covered,
        )


def table_game(
    others: NDArray[np.int64],
    cells: NDArray[np.integer],
    noise: noise_distributions.NoiseDistribution,
    guarantee: Guarantee,
    prior: audit.Prior = None,
) -> InformedGame:
    """Return the game of the record that is missing from a table of noisy counts.

    Sees:      the noisy counts of all cells.
    Knows:     the counts of all other records, and the cell that each candidate would lie in.
    Guesses:   the candidate. Cells that no candidate lies in tell nothing, and are left out.
    Reference: Bayes; ``cells_success`` is the closed form.

    Args:
        others: Counts of the known records, cells in any number of axes.
        cells: The flat place of each candidate's cell.
        noise: Of one cell.
        guarantee: Of all cells together, for records added, removed or substituted.
        prior: Of the candidates.
    """
    occupied, place = np.unique(cells, return_inverse=True)
    centres = np.repeat(others.reshape(-1)[occupied][None], len(cells), axis=0)
    centres[np.arange(len(cells)), place] += 1
    shares = audit.check_prior(len(cells), prior)
    closed = (
        cells_success(noise, place, shares)
        if isinstance(noise, noise_distributions.CellNoiseDistribution)
        else None
    )
    return InformedGame(centres, noise, as_substitution(guarantee), prior, closed)


def cells_success(
    noise: noise_distributions.IntegerDistribution, place: NDArray[np.integer], shares: Floats
) -> float:
    """Return how often the best guess names the candidate whose cell got one more, exactly.

    Formula: the mean of the largest ``q P(k - 1) / P(k)`` over the cells, each with noise k of
    its own, q being the largest share of a candidate in the cell.
    """
    tops = np.zeros(int(place.max()) + 1)
    np.maximum.at(tops, place, shares)
    ratio, chance = _one_more(noise)
    levels = np.unique(tops[:, None] * ratio)
    below = np.ones_like(levels)
    order = np.argsort(ratio)
    sums = np.append(0.0, np.cumsum(chance[order]))
    for top in tops[tops > 0]:
        below *= sums[np.searchsorted(top * ratio[order], levels, side="right")]
    steps = np.diff(below, prepend=0.0)
    return float(levels @ steps)


def shift_success(noise: noise_distributions.IntegerDistribution, tables: int) -> float | None:
    """Return the success rate of detecting a record in ``tables`` tables; None if too large.

    Formula: ``E[max(1, e^L)] / 2`` with L the sum of a ratio ``ln P(k - 1) / P(k)`` per table.
    """
    ratio, chance = _one_more(noise)
    one = total = _merged(np.log(ratio), chance)
    for _ in range(check_count(tables, "tables") - 1):
        if len(total[0]) * len(one[0]) > _MOST_RATIOS:
            return None
        total = _sum_of(total, one)
    return float(np.maximum(1.0, np.exp(total[0])) @ total[1] / 2)


def pair_closed_form(
    centres: Reports, noise: noise_distributions.Density, shares: Floats
) -> float | None:
    """Return how often two candidates are distinguished by the best guess, where that is known.

    It is for Gaussian noise, and for counts that differ by one in some cells, equal priors given.
    """
    if len(centres) != 2:
        return None
    distribution = (
        noise.density if isinstance(noise, noise_distributions.DifferenceDistribution) else noise
    )
    apart = centres[1] - centres[0]
    if isinstance(distribution, noise_distributions.GaussianDistribution) and 0 < shares[0] < 1:
        return gaussian_pair_success(
            float(np.linalg.norm(apart / distribution.sigma)), float(shares[0])
        )
    changed = apart[apart != 0]
    is_alike = shares[0] == shares[1] and len(changed) > 0 and np.all(np.abs(changed) == 1)
    # The distributions are even: one less tells as much as one more.
    if (
        isinstance(
            distribution,
            noise_distributions.CellNoiseDistribution | noise_distributions.TabulatedDistribution,
        )
        and is_alike
    ):
        return shift_success(distribution, len(changed))
    return None


def gaussian_pair_success(distance: float, share: float = 0.5) -> float:
    """Return how often two candidates are distinguished under Gaussian noise.

    Args:
        distance: Between their centres, in standard deviations of the noise.
        share: The prior of the first.

    Formula: ``q Phi(d/2 + l/d) + (1 - q) Phi(d/2 - l/d)`` with ``l = ln q / (1 - q)``.
    """
    from scipy.special import ndtr  # lazy: scipy is slow to import

    if not 0 < share < 1:
        raise BadParameter("share", share, "strictly between 0 and 1")
    if distance <= 0:
        return max(share, 1 - share)
    lean = math.log(share / (1 - share)) / distance
    first, second = ndtr(distance / 2 + lean), ndtr(distance / 2 - lean)
    return float(share * first + (1 - share) * second)


def _one_more(noise: noise_distributions.IntegerDistribution) -> tuple[Floats, Floats]:
    """Return P(k - 1) / P(k) and P(k) for each noise k that is not too rare."""
    chances = noise.table.chances
    likely = np.flatnonzero(chances[1:] > _LIKELY) + 1
    return chances[likely - 1] / chances[likely], chances[likely]


def _merged(ratios: Floats, chances: Floats) -> tuple[Floats, Floats]:
    """Return the different log-ratios, and how likely each is."""
    kinds, place = np.unique(np.round(ratios, _DIGITS), return_inverse=True)
    weights = np.bincount(place, chances).astype(np.float64)
    likely = weights > _LIKELY
    return kinds[likely], weights[likely]


def _sum_of(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return the distribution of the sum of two log-ratios."""
    ratios = np.add.outer(first[0], second[0]).reshape(-1)
    return _merged(ratios, np.multiply.outer(first[1], second[1]).reshape(-1))
