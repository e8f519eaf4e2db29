"""What people truly like, and the ratings that their devices hold of it.

A liking in [0, 1] for every ad decides both what a device has rated and how likely a click is.
Nothing here leaves a device; only scoring may look at it.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.training import Ratings, Single
from noisefloor.randomness import SeededSource
from noisefloor_sim.scenario import Behaviour
from noisefloor_sim.scenario import Tastes as Shape
from noisefloor_sim.world.population import Cohort

_MOST_RATED = 0.95
"""No ad is rated by everybody."""

_LEAST_AFFINITY = np.float32(1e-6)
"""Whoever likes nothing visits pages of all topics alike."""


@dataclass(frozen=True)
class TasteModel:
    """The tastes of all people over the ads of a world, made anew from streams.

    Attributes:
        shape: As the scenario describes them.
        ads: The ads of the world.
        topics: How many topics the ads speak to, in turn.
        source: The world's own.
    """

    shape: Shape
    ads: Behaviour
    topics: int
    source: SeededSource

    @cached_property
    def topic(self) -> NDArray[np.intp]:
        """The topic of each ad, in turn."""
        return np.arange(self.ads.ads) % self.topics

    @cached_property
    def appeal(self) -> Single:
        """By how much each ad is liked more than the mean ad."""
        spread = 0.1 if self.shape.source == "topics" else self.shape.appeal
        drawn = self.source.child("appeal").generator().normal(0.0, spread, self.ads.ads)
        return drawn.astype(np.float32)

    @cached_property
    def factors(self) -> Single:
        """The true factors of the ads in a low-rank world."""
        size = (self.ads.ads, self.shape.dimension)
        drawn = self.source.child("factors").generator().standard_normal(size, dtype=np.float32)
        return drawn * np.float32(self.shape.spread / self.shape.dimension**0.5)

    @cached_property
    def people(self) -> "_People":
        """The people of MovieLens, whose ratings the users of that world have."""
        return _People.load(self.ads.ads)

    def interest(self, cohort: Cohort) -> Single:
        """Return in [0, 1] how much each user cares for each ad: what lifts the click rate."""
        if self.shape.source == "topics":
            return np.asarray(cohort.interests[:, self.topic])
        return np.clip(2 * self.liking(cohort) - 1, 0, 1)

    def interest_in(
        self, cohort: Cohort, user: NDArray[np.int64], ad: NDArray[np.uint16]
    ) -> Single:
        """Return how much some users care for one ad each."""
        if self.shape.source == "topics":  # few topics, perhaps many ads: no table of all of them
            table, column = cohort.interests, self.topic[ad]
        else:
            table, column = self.interest(cohort), ad.astype(np.intp)
        return np.asarray(table.reshape(-1)[user * table.shape[1] + column])

    def topic_affinity(self, cohort: Cohort) -> Single:
        """Return above 0 how much each user cares for each topic: by what pages are visited.

        Where tastes are no mixture of topics it is the mean liking of the topic's ads; of a topic
        without ads, the mean liking of all.
        """
        if self.shape.source == "topics":
            return np.asarray(np.maximum(cohort.interests, _LEAST_AFFINITY))
        liking = self.liking(cohort)
        member = (self.topic[:, None] == np.arange(self.topics)).astype(np.float32)
        member[:, ~member.any(axis=0)] = 1
        return np.asarray(np.maximum(liking @ (member / member.sum(axis=0)), _LEAST_AFFINITY))

    def liking(self, cohort: Cohort) -> Single:
        """Return in [0, 1] how each user would rate each ad, without the noise of a rating."""
        if self.shape.source == "movielens-100k":
            return np.asarray(self.people.liking[self._person(cohort)])
        return np.clip(self._mean(cohort), 0, 1)

    def draw_ratings(self, cohort: Cohort) -> Ratings:
        """Make the ratings that devices hold: row by row, so that adding users moves nobody."""
        if self.shape.source == "movielens-100k":
            person = self._person(cohort)
            return Ratings(self.people.rated[person], self.people.rating[person])
        generator = self.source.child("ratings", cohort.number).generator()
        size, ads = len(cohort), self.ads.ads
        rows = generator.random((size, 2 * ads), dtype=np.float32).reshape(size, 2, ads)
        # Logistic noise: smooth, and one expression of one uniform number.
        uniform = np.clip(rows[:, 1], 1e-6, 1 - 1e-6)
        scale = 0.06 if self.shape.source == "topics" else self.shape.noise * 3**0.5 / np.pi
        mean = self._mean(cohort)
        rating = mean + np.float32(scale) * np.log(uniform / (1 - uniform))
        return Ratings(rows[:, 0] < self._rated_chance(mean), np.clip(rating, 0, 1))

    def _mean(self, cohort: Cohort) -> Single:
        """Return what ratings scatter around, before it is cut to the scale."""
        if self.shape.source == "topics":
            cared = np.minimum(cohort.interests[:, self.topic] * self.topics / 4, 1)
            return np.asarray(0.3 + 0.4 * cared + self.appeal, dtype=np.float32)
        size = (len(cohort), self.shape.dimension)
        generator = self.source.child("tastes", cohort.number).generator()
        taste = generator.standard_normal(size, dtype=np.float32)
        return np.asarray(np.float32(0.5) + self.appeal + taste @ self.factors.T)

    def _rated_chance(self, mean: Single) -> Single:
        """Return how likely each ad is rated: even, by rank, or likelier the more it is liked."""
        share = np.float32(self.ads.rated_share)
        if self.shape.source == "topics":
            return np.full(self.ads.ads, share)
        chance = (np.arange(self.ads.ads, dtype=np.float32) + 1) ** -self.shape.rated_skew
        chance *= share / chance.mean()
        if not self.shape.rated_for_liking:
            return np.asarray(np.minimum(chance, _MOST_RATED))
        raised = np.exp(np.float32(self.shape.rated_for_liking) * (np.clip(mean, 0, 1) - 0.5))
        return np.asarray(np.minimum(chance * raised, _MOST_RATED))

    def persons(self, cohort: Cohort) -> NDArray[np.int64] | None:
        """Return whose ratings each user has, where several users have those of one real person.

        A caller that holds ratings back has to hold the same ones back of all who share a person.
        """
        return self._person(cohort) if self.shape.source == "movielens-100k" else None

    def _person(self, cohort: Cohort) -> NDArray[np.int64]:
        """Return which real person each user's ratings are those of."""
        generator = self.source.child("person", cohort.number).generator()
        return generator.integers(0, len(self.people.rated), len(cohort))


@dataclass(frozen=True, slots=True)
class _People:
    """Real people: what they rated, and what they are taken to like of the rest."""

    rated: NDArray[np.bool_]
    rating: Single
    liking: Single

    @classmethod
    def load(cls, ads: int) -> "_People":
        """Load MovieLens; films that a person did not rate are filled in by a factorisation."""
        from noisefloor.ads.training import fit_tastes, nonprivate
        from noisefloor.tables import load_ratings

        data = load_ratings(most_ads=ads)
        ratings = Ratings(data.rated, data.rating)
        model = nonprivate(ratings, 5)
        filled = np.clip(model.predict(fit_tastes(model, ratings, 0.3)), 0, 1)
        return cls(data.rated, data.rating, np.where(data.rated, data.rating, filled))
