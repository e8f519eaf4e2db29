"""The people: interests, engagement and devices of a cohort, made anew from its streams.

Nothing here is kept between wakes: a cohort's people follow from the seed and the cohort's number,
so that a million users cost a few bytes each. Population models use a numpy generator; mechanisms
that protect people never do.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.randomness import Generator, SeededSource
from noisefloor_sim.scenario import Devices, Population

DEVICES = ("phone", "laptop", "wearable")


@dataclass(frozen=True, slots=True)
class Cohort:
    """The people of one cohort, as they are for the whole run.

    Attributes:
        number: Which cohort.
        first: The number of its first user in the whole population.
        interests: One row of topic shares per user.
        engagement: Expected page views per day, heavy-tailed.
        owns: Which of the devices each user has, at least one.
        silent: For each user, device and day, whether the device is out of contact at the day's
            end: in a spell without a connection, or not in step with its siblings.
        leaves: The day on which the user has left, or a day after the end.
    """

    number: int
    first: int
    interests: NDArray[np.float32]
    engagement: NDArray[np.float64]
    owns: NDArray[np.bool_]
    silent: NDArray[np.bool_]
    leaves: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.engagement)


def cohort_sizes(users: int, cohort: int) -> list[int]:
    """Return how many users each cohort has; only the last may have fewer."""
    whole, rest = divmod(users, cohort)
    return [cohort] * whole + ([rest] if rest else [])


def make_cohort(
    people: Population, devices: Devices, days: int, number: int, source: SeededSource
) -> Cohort:
    """Make the people of a cohort from its own stream; a full cohort is drawn, and cut to size.

    Drawing the full cohort keeps everybody in place when users are added to the last one.
    """
    generator = source.child("population", number).generator()
    full = people.cohort
    size = min(full, people.users - number * full)
    interests = generator.standard_gamma(
        people.interests_concentration, (full, people.topics), dtype=np.float32
    )
    interests /= interests.sum(axis=1, keepdims=True)
    # Pareto with mean one: tail exponents above 1 have a mean at all.
    tail = people.engagement.tail_exponent
    heavy = (generator.pareto(tail, full) + 1) * (tail - 1) / tail
    shares = np.array([getattr(devices.shares, name) for name in DEVICES])
    owns = generator.random((full, len(DEVICES))) < shares
    owns[~owns.any(axis=1), shares.argmax()] = True
    silent = _silent_days(devices, (full, len(DEVICES), days), generator)
    leaves = _leaving_days(people.churn_per_day, full, days, generator)
    return Cohort(
        number,
        number * full,
        interests[:size],
        (people.engagement.mean_views_per_day * heavy)[:size],
        owns[:size],
        silent[:size],
        leaves[:size],
    )


def _silent_days(
    devices: Devices, shape: tuple[int, int, int], generator: Generator
) -> NDArray[np.bool_]:
    """Return when devices are out of contact at the end of a day.

    A spell starts by chance at some hour of a day and lasts exponentially long; on any day a
    device may also fail to sync.
    """
    starts = generator.random(shape) < devices.offline.start_per_day
    begin = 24 * (np.arange(shape[2]) + generator.random(shape))
    ends = np.where(starts, begin + generator.exponential(devices.offline.mean_h, shape), 0.0)
    offline = np.maximum.accumulate(ends, axis=2) > 24.0 * (np.arange(shape[2]) + 1)
    return np.asarray(offline | (generator.random(shape) >= devices.sync_per_day))


def _leaving_days(churn: float, size: int, days: int, generator: Generator) -> NDArray[np.int64]:
    """Return the day each user leaves; without churn nobody does."""
    drawn = generator.random(size)
    if churn == 0:
        return np.full(size, days, dtype=np.int64)
    with np.errstate(divide="ignore"):
        stay = np.floor(np.log(drawn) / np.log1p(-churn))
    return np.asarray(np.minimum(stay, days), dtype=np.int64)
