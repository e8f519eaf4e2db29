"""The data holder: collects the records of users and publishes through the publisher of the world.

It also notes by which day each user's record has arrived.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor import roles
from noisefloor.accounting import Ledger
from noisefloor.canonical_json import canonical_json
from noisefloor.errors import BudgetExceeded, ServicesRefused
from noisefloor.privacy import ClaimVerdict
from noisefloor.publication.methods import ModelPlan
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.api import SimulationContext
from noisefloor_sim.pipelines.models import publication_request
from noisefloor_sim.pipelines.models.block import ModelsBlock, block_of
from noisefloor_sim.pipelines.models.record_assignment import UserRecordAssignment
from noisefloor_sim.pipelines.models.release_fit import ReleaseResiduals, ledger_faults
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
        card: What the publisher says of it.
        plan: By which it was made; public.
        spent: Epsilon spent so far, this one included: the figure by which the ledger decides.
        left: What is left of the budget.
        proved: Epsilon proved so far, by adding up.
        residuals: What its noise was added to, where the publisher runs in this process.
    """

    day: int
    owners: NDArray[np.bool_]
    content: bytes
    card: dict[str, Any]  # Any: JSON
    plan: ModelPlan
    spent: float
    left: float
    proved: float
    residuals: ReleaseResiduals


@dataclass(slots=True)
class DataHolder:
    """Holds records of users, and publishes models of them under one budget.

    Attributes:
        scenario: Of the world.
        assignment: Who holds which record.
        planner: Plans releases.
        source: Of the noise of releases, where the publisher runs in this process.
        publisher: Charges and releases; set by ``open``.
        residuals: Of the release that is being made, for scoring.
        releases: What was published.
        refused: The days of releases that the budget did not cover.
        empty: The days by which fewer than two records had arrived.
    """

    scenario: Scenario
    assignment: UserRecordAssignment
    planner: publication_request.Planner
    source: SeededSource
    publisher: roles.PublicationServer = field(init=False)
    residuals: ReleaseResiduals = field(init=False)
    releases: list[Release] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)

    def open(self, context: SimulationContext) -> None:
        """Open the publisher of this data set, in process or at a service."""
        message = publication_request.data_set_message(
            self.block, self.scenario.variant, self.assignment.encoding
        )
        self.publisher = context.publisher(message, self.source, self._methods)

    def publish(self, day: int, owners: NDArray[np.bool_]) -> None:
        """Publish a model of the records that arrived, or note that it was refused."""
        if np.count_nonzero(owners) < FEWEST_OWNERS:
            self.empty.append(day)
            return
        number, size = len(self.releases) + len(self.refused), self._size(day, owners)
        records, plan = self.assignment.records[owners], self.planner.at(size)
        self.residuals = ReleaseResiduals(plan, records)
        self.publisher.update(records)
        try:
            artefact = self.publisher.publish(self._request(number, size))
        except BudgetExceeded:
            self.refused.append(day)
            return
        check_card(artefact, plan)
        account, subject = self.account(), self.publisher.data_set
        self.releases.append(
            Release(
                day,
                owners,
                artefact.content,
                artefact.card,
                plan,
                account.spent(subject).epsilon,
                account.left(subject).epsilon,
                account.proved(subject).epsilon,
                self.residuals,
            )
        )

    def _methods(self, data_sets: roles.DataSets) -> tuple[roles.PublicationMethod, ...]:
        """Return the method of a publisher in this process, with the observer of its noise."""
        return self.planner.methods(data_sets, self.residuals)

    def account(self) -> Ledger:
        """Return the ledger of the data set."""
        return self.publisher.account()

    def ledger_faults(self) -> tuple[str, ...]:
        """Say where the ledger's entries are not those of the releases that were made."""
        stored = {str(one.card["publication_id"]): one.plan for one in self.releases}
        return ledger_faults(stored, self.account(), self.publisher.data_set)

    @property
    def block(self) -> ModelsBlock:
        """The settings."""
        return block_of(self.scenario)

    def _request(self, number: int, size: int) -> roles.ReleaseRequest:
        parameters = publication_request.parameters_of(self.block, self.scenario.variant)
        parameters |= {"label": self.assignment.encoding.label, "size": size}
        return roles.ReleaseRequest(
            f"release-{number}",
            self.publisher.data_set,
            self.block.method,
            publication_request.cost_of(self.block),
            parameters,
        )

    def _size(self, day: int, owners: NDArray[np.bool_]) -> int:
        """Return the public number of records.

        Neighbours that swap a record have as many; where one may come or go, the number follows
        from public settings alone.
        """
        if self.block.neighbours == "substitute":
            return int(np.count_nonzero(owners))
        return declared_size(self.scenario, self.assignment.owners, day)


def check_card(artefact: roles.Artefact, plan: ModelPlan) -> None:
    """Raise ServicesRefused unless a card says what follows from the plan, which is public.

    Attacks and claims are computed from the plan: they would be about another release. Audits are
    not compared: a publisher may have an auditor or none. One that contradicts its own proof is
    refused.
    """
    if artefact.card["claims"]["verdict"] == ClaimVerdict.BROKEN:
        raise ServicesRefused(
            "The publisher's audit of its own noise contradicts what it proves: see `audit` on "
            f"the card of {artefact.card['publication_id']}."
        )
    expected = json.loads(canonical_json(roles.model_card(plan, artefact.content, "")))
    del expected["audit"]
    for name, value in expected.items():
        if artefact.card.get(name) != value:
            raise ServicesRefused(
                f"The publisher's card differs from the plan in {name}: use services of the same "
                "version as the simulator."
            )
