"""The data holder: publishes through the role of a publisher, which charges before it draws.

Whose records have reached the data holder by which day.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import Ledger
from noisefloor.errors import BudgetExceeded
from noisefloor.privacy import TrustModel
from noisefloor.publication.methods import ModelPlan
from noisefloor.randomness import SeededSource
from noisefloor.roles import MemoryArtefactStore, ModelPublisher, ReleaseRequest
from noisefloor_sim.pipelines.models.block import ModelsBlock, block_of
from noisefloor_sim.pipelines.models.publication_request import (
    DATA_SET,
    Planner,
    cost_of,
    is_experiment,
    parameters_of,
    relation_of,
)
from noisefloor_sim.pipelines.models.record_assignment import UserRecordAssignment
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import Cohort, in_contact

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


FEWEST_OWNERS = 2


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """What was published at the end of a day.

    Attributes:
        day: When.
        owners: Whose records it was made from, of all users.
        content: The file.
        plan: By which it was made; public.
        spent: Epsilon debited so far, this one included.
        left: What is left of the budget.
        proved: Epsilon proved so far, by adding up.
    """

    day: int
    owners: NDArray[np.bool_]
    content: bytes
    plan: ModelPlan
    spent: float
    left: float
    proved: float


@dataclass(slots=True)
class DataHolder:
    """Holds records of users, and publishes models of them under one budget.

    Attributes:
        scenario: Of the world.
        assignment: Who holds which record.
        planner: Plans releases.
        source: Of the noise of releases.
        ledger: Of the data set.
        shelf: Where releases are kept.
        releases: What was published.
        refused: The days of releases that the budget did not cover.
        empty: The days on which nobody's record had come.
    """

    scenario: Scenario
    assignment: UserRecordAssignment
    planner: Planner
    source: SeededSource
    ledger: Ledger = field(init=False)
    shelf: MemoryArtefactStore = field(default_factory=MemoryArtefactStore)
    releases: list[Release] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        block = block_of(self.scenario)
        self.ledger = Ledger(
            block.budget,
            block.budget_delta,
            neighbours=relation_of(block),
            model=TrustModel.CENTRAL,
        )

    def publish(self, day: int, owners: NDArray[np.bool_]) -> None:
        """Publish a model of the records that came, or note that it was refused."""
        if np.count_nonzero(owners) < FEWEST_OWNERS:
            self.empty.append(day)
            return
        number, size = len(self.releases) + len(self.refused), self._size(day, owners)
        publisher = self._publisher(owners)
        try:
            made = publisher.publish(
                self._request(number, size), self.source.child("release", number)
            )
        except BudgetExceeded:
            self.refused.append(day)
            return
        parameters = self.ledger.spent(DATA_SET), self.ledger.left(DATA_SET)
        self.releases.append(
            Release(
                day,
                owners,
                made.content,
                self.planner.at(size),
                parameters[0].epsilon,
                parameters[1].epsilon,
                self.ledger.proved(DATA_SET).epsilon,
            )
        )

    @property
    def block(self) -> ModelsBlock:
        """The settings."""
        return block_of(self.scenario)

    def _publisher(self, owners: NDArray[np.bool_]) -> ModelPublisher:
        """Return the role, for the records that came so far; budget and shelf stay the same."""
        records = self.assignment.records[owners]
        return ModelPublisher(
            self.ledger,
            self.shelf,
            [self.planner.method(records)],
            data_sets=[DATA_SET],
            is_experiment=is_experiment(self.block, self.scenario.variant),
        )

    def _request(self, number: int, size: int) -> ReleaseRequest:
        parameters = parameters_of(self.block, self.scenario.variant)
        parameters |= {"label": self.assignment.encoding.label, "size": size}
        return ReleaseRequest(
            f"release-{number}", DATA_SET, self.block.method, cost_of(self.block), parameters
        )

    def _size(self, day: int, owners: NDArray[np.bool_]) -> int:
        """Return how many records there are, as everybody may know it.

        Neighbours that swap a record have as many; where one may come or go, the number follows
        from public settings alone.
        """
        if self.block.neighbours == "substitute":
            return int(np.count_nonzero(owners))
        return declared_size(self.scenario, self.assignment.owners, day)
