"""The data holder: publishes through the role of a publisher, which charges before it draws."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import Ledger
from noisefloor.errors import BudgetExceeded
from noisefloor.privacy import Model
from noisefloor.publication.model_methods import ModelPlan
from noisefloor.randomness import SeededSource
from noisefloor.roles.model_publisher import MemoryShelf, ModelPublisher, Request
from noisefloor_sim.pipelines.models.arrivals import declared_size
from noisefloor_sim.pipelines.models.asking import (
    DATA_SET,
    Planner,
    cost_of,
    is_experiment,
    parameters_of,
    relation_of,
)
from noisefloor_sim.pipelines.models.block import ModelsBlock, block_of
from noisefloor_sim.pipelines.models.held import Holdings
from noisefloor_sim.scenario.model import Scenario

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
        holdings: Who holds which record.
        planner: Plans releases.
        source: Of the noise of releases.
        ledger: Of the data set.
        shelf: Where releases are kept.
        releases: What was published.
        refused: The days of releases that the budget did not cover.
        empty: The days on which nobody's record had come.
    """

    scenario: Scenario
    holdings: Holdings
    planner: Planner
    source: SeededSource
    ledger: Ledger = field(init=False)
    shelf: MemoryShelf = field(default_factory=MemoryShelf)
    releases: list[Release] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        block = block_of(self.scenario)
        self.ledger = Ledger(
            block.budget,
            block.budget_delta,
            neighbours=relation_of(block),
            model=Model.CENTRAL,
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
        told = self.ledger.spent(DATA_SET), self.ledger.left(DATA_SET)
        self.releases.append(
            Release(
                day,
                owners,
                made.content,
                self.planner.at(size),
                told[0].epsilon,
                told[1].epsilon,
                self.ledger.proved(DATA_SET).epsilon,
            )
        )

    @property
    def block(self) -> ModelsBlock:
        """The settings."""
        return block_of(self.scenario)

    def _publisher(self, owners: NDArray[np.bool_]) -> ModelPublisher:
        """Return the role, for the records that came so far; budget and shelf stay the same."""
        records = self.holdings.records[owners]
        return ModelPublisher(
            self.ledger,
            self.shelf,
            [self.planner.method(records)],
            data_sets=[DATA_SET],
            is_experiment=is_experiment(self.block, self.scenario.variant),
        )

    def _request(self, number: int, size: int) -> Request:
        told = parameters_of(self.block, self.scenario.variant)
        told |= {"label": self.holdings.encoding.label, "size": size}
        return Request(f"release-{number}", DATA_SET, self.block.method, cost_of(self.block), told)

    def _size(self, day: int, owners: NDArray[np.bool_]) -> int:
        """Return how many records there are, as everybody may know it.

        Neighbours that swap a record have as many; where one may come or go, the number follows
        from public settings alone.
        """
        if self.block.neighbours == "substitute":
            return int(np.count_nonzero(owners))
        return declared_size(self.scenario, self.holdings.owners, day)
