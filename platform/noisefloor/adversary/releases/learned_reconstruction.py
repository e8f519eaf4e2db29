"""A missing record from a release whose law is not known: a map learned from shadow releases.

The adversary knows all records but one, and how the release is made. So it makes shadow releases
with candidates of its own in the missing place, learns a map from release to record, and applies
it to the release that it was given. The map is ridge regression, linear or on a Gaussian kernel;
which, and how strong the ridge is, is chosen by the leave-one-out error, in closed form.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from noisefloor.adversary.audit import AttackOutcome, Indices, Prior, check_prior, draw_truth
from noisefloor.adversary.releases.reconstruction_bounds import candidate_bound, robustness_bound
from noisefloor.checks import Floats, blocks, check_count, check_finite
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee
from noisefloor.randomness import Source

Release = Callable[[Floats, Source], Floats]
"""Makes a release with a record in the missing place: all of its parameters in one row."""

_STRENGTHS = 10.0 ** np.arange(-8, 5)
"""Of the ridge, in units of the mean eigenvalue."""

_WIDTHS = np.array([0.01, 0.1, 1.0])
"""Of the nearness that counts as like, in units of the mean squared distance of two shadows."""

_LEAST_SHADOWS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Reconstructor:
    """A map from releases to records: ridge regression, linear or by the nearness of releases.

    Attributes:
        centre: The mean of the shadow releases.
        scale: Their standard deviations.
        shadows: The shadow releases, so centred and scaled.
        width: How near a release has to be, squared, to be like another; 0 for a linear map.
        prior_guess: The mean of the shadow records: what is said of a release that says nothing.
        weights: What each shadow adds to it.
    """

    centre: Floats
    scale: Floats
    shadows: Floats
    width: float
    prior_guess: Floats
    weights: Floats

    @classmethod
    def fit(cls, released: Floats, records: Floats) -> "Reconstructor":
        """Learn the map from shadow releases, a row each, and the records behind them."""
        if len(released) != len(records) or len(released) < _LEAST_SHADOWS:
            rule = f"one for each record, and at least {_LEAST_SHADOWS}"
            raise BadParameter("released", len(released), rule)
        centre, spread = released.mean(axis=0), released.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        shadows, prior_guess = (released - centre) / scale, records.mean(axis=0)
        # Scaled rows lie about twice the number of parameters apart, squared.
        widths = [0.0, *(_WIDTHS * 2 * shadows.shape[1])]
        fits = [_ridge(_likeness(shadows, shadows, one), records - prior_guess) for one in widths]
        best = min(range(len(widths)), key=lambda place: fits[place][0])
        return cls(centre, scale, shadows, widths[best], prior_guess, fits[best][1])

    def records(self, released: Floats) -> Floats:
        """Return the record that each release speaks of."""
        like = _likeness((released - self.centre) / self.scale, self.shadows, self.width)
        return np.asarray(self.prior_guess + like @ self.weights)


def _likeness(rows: Floats, shadows: Floats, width: float) -> Floats:
    """Return how like each release is to each shadow."""
    products = rows @ shadows.T
    if width == 0:
        return np.asarray(products)
    lengths = (rows**2).sum(axis=1)[:, None] + (shadows**2).sum(axis=1)
    return np.asarray(np.exp(-np.maximum(lengths - 2 * products, 0.0) / (2 * width)))


def _ridge(likeness: Floats, outputs: Floats) -> tuple[float, Floats]:
    """Return the least leave-one-out error over the strengths of the ridge, and its weights.

    In the dual form, a row and a column per shadow: parameters may be many more than shadows.
    """
    values, vectors = np.linalg.eigh(likeness)
    values = np.maximum(values, 0.0)
    turned = vectors.T @ outputs
    best, chosen = math.inf, np.zeros_like(outputs)
    for strength in _STRENGTHS * max(float(values.mean()), 1e-300):
        shrink = strength / (values + strength)
        # The leave-one-out residual of a row is its residual over one minus its own influence;
        # the mean that was taken from the outputs has a share in it too.
        left = (vectors**2) @ shrink - 1 / len(outputs)
        residual = vectors @ (shrink[:, None] * turned) / np.maximum(left, 1e-12)[:, None]
        error = float((residual**2).sum())
        if error < best:
            best, chosen = error, vectors @ (turned / (values + strength)[:, None])
    return best, np.asarray(chosen)


def nearest(records: Floats, candidates: Floats) -> Indices:
    """Return the candidate that lies nearest to each record; ties go to the first."""
    places = np.empty(len(records), dtype=np.intp)
    lengths = (candidates**2).sum(axis=1)
    for rows in blocks(len(records), len(candidates)):
        places[rows] = (lengths - 2 * records[rows] @ candidates.T).argmin(axis=1)
    return places


def within(candidates: Floats, shares: Floats, radius: float) -> float:
    """Return how often the best candidate, named without a look, is within the radius."""
    lengths, reached = (candidates**2).sum(axis=1), 0.0
    for rows in blocks(len(candidates), len(candidates)):
        apart = lengths[rows, None] + lengths - 2 * candidates[rows] @ candidates.T
        is_near = apart <= radius**2 + 1e-9 * (1 + lengths[rows, None] + lengths)
        reached = max(reached, float((is_near @ shares).max()))
    return reached


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """What a learned map reached.

    Attributes:
        outcome: How often the named candidate was near enough to the truth.
        error: Mean squared distance between the reconstructed and the true record.
        prior_error: The same for the best guess from the prior, its mean.
        standard_error: Of ``prior_error - error``, over the games.
    """

    outcome: AttackOutcome
    error: float
    prior_error: float
    standard_error: float


@dataclass(frozen=True, slots=True, eq=False)
class ReconstructionGame:
    """A record is drawn by the prior, released among the known ones, and reconstructed.

    Attributes:
        release: Makes a release: known to the adversary, but for its coins.
        candidates: Records that the missing one may be, one row each, all different.
        guarantee: Of a release; any two candidates are neighbours in its sense.
        prior: Of the candidates; without one, all are alike.
        radius: A named candidate counts as right within this distance of the truth.
    """

    release: Release
    candidates: Floats
    guarantee: Guarantee
    prior: Prior = None
    radius: float = 0.0

    def __post_init__(self) -> None:
        if self.candidates.ndim != 2 or len(self.candidates) < 2:
            raise BadParameter("candidates", self.candidates.shape, "at least two rows")
        if check_finite(self.radius, "radius") < 0:
            raise BadParameter("radius", self.radius, ">= 0")
        check_prior(len(self.candidates), self.prior)

    @property
    def shares(self) -> Floats:
        """The prior as shares."""
        return check_prior(len(self.candidates), self.prior)

    def releases(self, truth: Indices, source: Source) -> Floats:
        """Return a release for each record, with coins of its own."""
        made = [
            self.release(self.candidates[place], source.child("release", number))
            for number, place in enumerate(truth)
        ]
        return np.stack(made).astype(np.float64)

    def play(self, shadows: int, games: int, source: Source) -> Reconstruction:
        """Learn from so many shadow releases, then play so many games.

        Sees:      one release a game.
        Knows:     all records but one, the candidates and their prior, how a release is made.
        Guesses:   the record; its name is that of the nearest candidate.
        Reference: Balle, Cherubin and Hayes 2022, arXiv 2201.04845 (shadow models).
        """
        check_count(shadows, "shadows", least=_LEAST_SHADOWS)
        own, real = source.child("shadows"), source.child("games")
        known = draw_truth(self.shares, shadows, own)
        truth = draw_truth(self.shares, check_count(games, "games", least=2), real)
        learned = Reconstructor.fit(self.releases(known, own), self.candidates[known])
        return self._judge(learned.records(self.releases(truth, real)), truth)

    def _judge(self, found: Floats, truth: Indices) -> Reconstruction:
        records = self.candidates[truth]
        named = self.candidates[nearest(found, self.candidates)]
        apart = ((named - records) ** 2).sum(axis=1)
        right = int(np.count_nonzero(apart <= self.radius**2 * (1 + 1e-9)))
        error = ((found - records) ** 2).sum(axis=1)
        without = ((self.shares @ self.candidates - records) ** 2).sum(axis=1)
        spread = float(np.std(without - error, ddof=1)) / math.sqrt(len(truth))
        known = min(1.0, within(self.candidates, self.shares, self.radius))
        bound = robustness_bound(self.guarantee, known)
        if self.radius == 0:
            # Equal candidates are one: right or wrong is then a question of which, not how near.
            bound = candidate_bound(self.guarantee, np.array([known]))
        outcome = AttackOutcome(right, len(truth), known, bound)
        return Reconstruction(outcome, float(error.mean()), float(without.mean()), spread)
