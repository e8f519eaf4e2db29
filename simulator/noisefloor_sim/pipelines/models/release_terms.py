"""What the pipeline of published models says of its releases to the data holder."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor import roles
from noisefloor.privacy import Guarantee
from noisefloor.publication import ResidualObserver
from noisefloor.publication.methods import ModelPlan, Parameter
from noisefloor.tables import Records
from noisefloor.wire.messages import DataSetMessage
from noisefloor_sim.pipelines.models.block import ModelsBlock, block_of
from noisefloor_sim.pipelines.models.publication_request import Planner, cost_of, parameters_of
from noisefloor_sim.pipelines.models.record_assignment import UserRecordAssignment
from noisefloor_sim.pipelines.models.release_residuals import residuals_of
from noisefloor_sim.pipelines.releases import (
    ReleaseResiduals,
    data_set_message,
    declared_size,
)
from noisefloor_sim.scenario import Scenario


@dataclass(frozen=True, slots=True, eq=False)
class ModelTerms:
    """Releases of tables of records.

    Attributes:
        scenario: Of the world.
        assignment: Who holds which record.
        planner: Plans releases.
    """

    scenario: Scenario
    assignment: UserRecordAssignment
    planner: Planner

    @property
    def block(self) -> ModelsBlock:
        """The settings."""
        return block_of(self.scenario)

    @property
    def method(self) -> str:
        """The method's name."""
        return self.block.method

    @property
    def cost(self) -> Guarantee:
        """What one release is claimed to cost."""
        return cost_of(self.block)

    @property
    def message(self) -> DataSetMessage:
        """What a publisher has to know of the data set."""
        return data_set_message(
            self.assignment.encoding.schema,
            self.block.total_budget,
            is_experiment=self.block.is_experiment(self.scenario.variant),
        )

    def parameters(self, size: int) -> dict[str, Parameter]:
        """Return the parameters of a request."""
        named = parameters_of(self.block, self.scenario.variant)
        return named | {"label": self.assignment.encoding.label, "size": size}

    def size(self, day: int, owners: NDArray[np.bool_]) -> int:
        """Return the public number of records.

        Neighbours that swap a record have as many; where one may come or go, the number follows
        from public settings alone.
        """
        if self.block.neighbours == "substitute":
            return int(np.count_nonzero(owners))
        return declared_size(self.assignment.owners, day, self.block.join_over_days)

    def records(self, owners: NDArray[np.bool_]) -> Records:
        """Return the records of some users."""
        return self.assignment.records[owners]

    def plan(self, size: int) -> ModelPlan:
        """Plan a release."""
        return self.planner.at(size)

    def residuals(self, plan: ModelPlan, owners: NDArray[np.bool_]) -> ReleaseResiduals:
        """Return an observer of a release."""
        return residuals_of(plan, self.records(owners))

    def methods(
        self, data_sets: roles.DataSets, residuals: ResidualObserver
    ) -> Iterable[roles.PublicationMethod]:
        """Return the method of a publisher in this process."""
        return self.planner.methods(data_sets, residuals)
