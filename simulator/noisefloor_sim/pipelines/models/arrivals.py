"""Whose records have reached the data holder by which day."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.randomness import SeededSource
from noisefloor_sim.devices import in_contact
from noisefloor_sim.pipelines.models.block import block_of
from noisefloor_sim.population import Cohort
from noisefloor_sim.scenario.model import Scenario

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
    def of(cls, scenario: Scenario) -> "Arrivals":
        """Draw when each user joins: evenly over the first days, cohort by cohort."""
        users, cohort = scenario.population.users, scenario.population.cohort
        source = SeededSource(scenario.seed, "pipeline", "models", "joins")
        days = block_of(scenario).join_over_days
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


def declared_size(scenario: Scenario, owners: int, day: int) -> int:
    """Return how many records there should be by a day: from public settings, not from records."""
    share = min(1.0, (day + 1) / block_of(scenario).join_over_days)
    return max(1, round(owners * share))
