"""The day on which each user's record arrives at the data holder, and how many should be there."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.api import SimulationContext
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import HOUR_S, Cohort, Steps, in_contact

DAY_S = 24 * HOUR_S
_AFTER_S = 0.5 * HOUR_S
"""How long after the end of a day a release is made: what came by then is in it."""

NEVER = np.iinfo(np.int32).max


@dataclass(slots=True)
class Arrivals:
    """The day on which each user's record arrived.

    Attributes:
        joins: The day from which each user is there.
        day: The day of the first contact from then on; ``NEVER`` so far for the others.
    """

    joins: NDArray[np.int32]
    day: NDArray[np.int32]

    @classmethod
    def of(cls, scenario: Scenario, pipeline: str, days: int) -> "Arrivals":
        """Draw when each user joins: evenly over the first days, cohort by cohort."""
        users, cohort = scenario.population.users, scenario.population.cohort
        source = SeededSource(scenario.seed, "pipeline", pipeline, "joins")
        drawn = [
            source.child(number).generator().integers(0, days, cohort)
            for number in range(-(-users // cohort))
        ]
        joins = np.concatenate(drawn)[:users].astype(np.int32)
        return cls(joins, np.full(users, NEVER, dtype=np.int32))

    def note(self, cohort: Cohort, day: int) -> None:
        """Let those in contact for the first time hand over their records."""
        contact = in_contact(cohort.owns, cohort.silent[:, :, day], cohort.leaves > day)
        own = slice(cohort.first, cohort.first + len(cohort))
        is_new = contact.any(axis=1) & (self.joins[own] <= day) & (self.day[own] == NEVER)
        self.day[own][is_new] = day

    def by(self, day: int) -> NDArray[np.bool_]:
        """Return whose records were there at the end of a day."""
        return self.day <= day


def declared_size(owners: int, day: int, join_over_days: int) -> int:
    """Return how many records there should be by a day: from public settings, not from records."""
    share = min(1.0, (day + 1) / join_over_days)
    return max(1, round(owners * share))


def release_days(days: int, every: int) -> range:
    """Return the days at whose end something is published."""
    return range(min(every, days) - 1, days, every)


def publishing(
    context: SimulationContext,
    days: Iterable[int],
    publish: Callable[[int], None],
    grace_h: float = 0.0,
) -> Steps:
    """Publish at the end of each of some days.

    Args:
        context: Of the world.
        days: At whose end something is published.
        publish: Publishes.
        grace_h: Hours for which it is waited for what is on its way.
    """
    for day in days:
        at = (day + 1) * DAY_S + grace_h * HOUR_S + _AFTER_S
        yield context.env.timeout(at - context.env.now)
        publish(day)
