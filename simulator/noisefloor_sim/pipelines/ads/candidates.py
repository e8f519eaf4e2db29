"""The people that the adversary tells apart by their requests: the same ones whatever is swept.

They are made from the world alone. So candidates, their number and the prior do not depend on
epsilon, on the variant or on what was trained, and points of a curve can be compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.training import Ratings
from noisefloor.checks import Floats
from noisefloor_sim.pipelines.ads.ratings import kept_ratings
from noisefloor_sim.pipelines.api import SimulationContext
from noisefloor_sim.scenario import Scenario

MOST_CANDIDATES = 64
"""People among whom the adversary has to choose, at most."""


@dataclass(frozen=True, slots=True)
class CandidateProfiles:
    """One person for each ad that somebody truly likes best, all of them equally likely.

    Attributes:
        users: Of the first cohort.
        liking: How each would rate each ad: what a model predicts that makes no error.
        ratings: What the device of each holds, for scores by a model that was trained.
        topics: The topic of each one's favourite, numbered from 0.
    """

    users: NDArray[np.intp]
    liking: Floats
    ratings: Ratings
    topics: Sequence[int]

    @classmethod
    def of(cls, scenario: Scenario, context: SimulationContext) -> "CandidateProfiles":
        """Take from the first cohort the user most like all who share a favourite."""
        tastes, cohort = context.ad_world.tastes, context.cohort(0)
        liking = tastes.liking(cohort).astype(np.float64)
        best = liking.argmax(axis=1)
        ads = np.unique(best)[:MOST_CANDIDATES]
        users = np.array([_typical(liking, np.flatnonzero(best == ad)) for ad in ads])
        _, topics = np.unique(tastes.topic[ads], return_inverse=True)
        ratings = kept_ratings(scenario, tastes, cohort)[users]
        return cls(users, liking[users], ratings, topics.tolist())

    def __len__(self) -> int:
        return len(self.users)


def _typical(liking: Floats, users: NDArray[np.intp]) -> int:
    """Return the user nearest to the mean: the mean itself may have another favourite."""
    rows = liking[users]
    away = np.square(rows - rows.mean(axis=0)).sum(axis=1)
    return int(users[away.argmin()])
