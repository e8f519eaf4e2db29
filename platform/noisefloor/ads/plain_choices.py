"""What private delivery is measured against: an ad at random, and the best ad in the open."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.slates import favourites_of
from noisefloor.checks import Floats, blocks
from noisefloor.mechanisms.base import Reports
from noisefloor.mechanisms.scores import Chooser, Scores
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source


@dataclass(frozen=True, slots=True)
class RandomAd(Chooser):
    """Ask for an ad that is drawn without looking at anything.

    Guarantee:  pure DP, epsilon = 0: the request does not depend on the user.
    Neighbours: all of them (local model).
    Domain:     rows of reals in the range of ``scores``; others are refused.
    Reference:  none needed.
    """

    scores: Scores

    def randomise(self, values: object, source: Source) -> NDArray[np.unsignedinteger]:
        """Return the index of the ad each user asks for."""
        rows, picks = self.scores.check(values), source.stage("pick")
        reports = np.empty(len(rows), dtype=np.min_scalar_type(self.scores.size - 1))
        for some in blocks(len(rows)):
            reports[some] = picks.below(self.scores.size, len(reports[some]))
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return zero."""
        return Guarantee(0.0, neighbours)

    def chances(self, value: object) -> Floats:
        """Return the chance of each ad: all alike."""
        return np.full(self.scores.size, 1 / self.scores.size)


@dataclass(frozen=True, slots=True)
class BestAd(Chooser):
    """Ask for the best ad, in the open: what an advertiser who tracks everybody gets.

    Guarantee:  none: the request is a function of the scores.
    Neighbours: none (local model).
    Domain:     rows of reals in the range of ``scores``; others are refused. Ties go to the first.
    Reference:  none needed.
    """

    scores: Scores

    def randomise(self, values: object, source: Source) -> NDArray[np.unsignedinteger]:
        """Return the index of the ad each user asks for; no coin is tossed."""
        places = favourites_of(self.scores.check(values))
        return places.astype(np.min_scalar_type(self.scores.size - 1))

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return no guarantee, and why."""
        return Guarantee.none("the best ad is requested in the open", neighbours)

    def chances(self, value: object) -> Floats:
        """Return the chance of each ad: one for the best."""
        row = self.scores.check(np.asarray(value, dtype=np.float64)[None]).reshape(-1)
        return np.asarray(np.arange(len(row)) == row.argmax(), dtype=np.float64)

    def log_likelihood(self, reports: Reports, value: object) -> Floats:
        """Return 0 for the best ad and minus infinity for the others."""
        best = int(self.chances(value).argmax())
        return np.where(np.asarray(reports) == best, 0.0, -np.inf)
