"""The data holder: publishes what users handed over through the publisher of the world."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from noisefloor import roles
from noisefloor.accounting import Ledger
from noisefloor.canonical_json import canonical_json
from noisefloor.errors import BudgetExceeded, ServicesRefused
from noisefloor.privacy import ClaimVerdict, Guarantee
from noisefloor.publication import ResidualObserver
from noisefloor.publication.methods import ModelPlan, Parameter, TextPlan
from noisefloor.randomness import SeededSource
from noisefloor.tables import DataRecords
from noisefloor.wire.messages import DataSetMessage
from noisefloor_sim.pipelines.api import SimulationContext
from noisefloor_sim.pipelines.releases.release_fit import ledger_faults
from noisefloor_sim.pipelines.releases.release_plan import AnyPlan
from noisefloor_sim.pipelines.releases.residuals import ReleaseResiduals

FEWEST_OWNERS = 2

PlanT = TypeVar("PlanT", bound=ModelPlan | TextPlan)


class PublicationTerms(Protocol[PlanT]):
    """What a pipeline says of its releases: what is requested, planned and published."""

    @property
    def method(self) -> str:
        """The method's name."""

    @property
    def cost(self) -> Guarantee:
        """What one release is claimed to cost; this is what the ledger debits."""

    @property
    def message(self) -> DataSetMessage:
        """What a publisher has to know of the data set."""

    def parameters(self, size: int) -> dict[str, Parameter]:
        """Return the parameters of a request."""

    def size(self, day: int, owners: NDArray[np.bool_]) -> int:
        """Return the public number of records at the end of a day."""

    def records(self, owners: NDArray[np.bool_]) -> DataRecords:
        """Return the records of some users."""

    def plan(self, size: int) -> PlanT:
        """Plan a release from a public number of records; no record is looked at."""

    def residuals(self, plan: PlanT, owners: NDArray[np.bool_]) -> ReleaseResiduals:
        """Return an observer of a release of some users' records."""

    def methods(
        self, data_sets: roles.DataSets, residuals: ResidualObserver
    ) -> Iterable[roles.PublicationMethod]:
        """Return the methods of a publisher in this process."""


@dataclass(frozen=True, slots=True, eq=False)
class Release(Generic[PlanT]):
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
        source: Of its random numbers; None where a publisher at a service draws its own.
    """

    day: int
    owners: NDArray[np.bool_]
    content: bytes
    card: dict[str, Any]  # Any: JSON
    plan: PlanT
    spent: float
    left: float
    proved: float
    residuals: ReleaseResiduals
    source: SeededSource | None


@dataclass(slots=True)
class DataHolder(Generic[PlanT]):
    """Holds records of users, and publishes models of them under one budget.

    Attributes:
        terms: What is requested, planned and published.
        source: Of the noise of releases, where the publisher runs in this process.
        publisher: Charges and releases; set by ``open``.
        residuals: Of the release that is being made, for scoring.
        releases: What was published.
        refused: The days of releases that the budget did not cover.
        empty: The days by which fewer than two records had arrived.
        is_observed: Whether the publisher runs in this process, with an observer of its noise.
    """

    terms: PublicationTerms[PlanT]
    source: SeededSource
    publisher: roles.PublicationServer = field(init=False)
    residuals: ReleaseResiduals = field(init=False)
    releases: list[Release[PlanT]] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)
    is_observed: bool = False

    def open(self, context: SimulationContext) -> None:
        """Open the publisher of this data set, in process or at a service."""
        terms = self.terms
        self.publisher = context.publisher(terms.message, self.source, self._methods, terms.method)

    def publish(self, day: int, owners: NDArray[np.bool_]) -> None:
        """Publish a model of the records that arrived, or note that it was refused."""
        if np.count_nonzero(owners) < FEWEST_OWNERS:
            self.empty.append(day)
            return
        number, size = len(self.releases) + len(self.refused), self.terms.size(day, owners)
        plan = self.terms.plan(size)
        self.residuals = self.terms.residuals(plan, owners)
        self.publisher.update(self.terms.records(owners))
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
                # As the publisher names them: a refused request has a stream as well.
                self.source.child("release", number) if self.is_observed else None,
            )
        )

    def account(self) -> Ledger:
        """Return the ledger of the data set."""
        return self.publisher.account()

    def ledger_faults(self) -> tuple[str, ...]:
        """Say where the ledger's entries are not those of the releases that were made."""
        stored = {str(one.card["publication_id"]): one.plan for one in self.releases}
        return ledger_faults(stored, self.account(), self.publisher.data_set)

    def _methods(self, data_sets: roles.DataSets) -> Iterable[roles.PublicationMethod]:
        """Return the method of a publisher in this process, with the observer of its noise."""
        self.is_observed = True
        return self.terms.methods(data_sets, self.residuals)

    def _request(self, number: int, size: int) -> roles.ReleaseRequest:
        return roles.ReleaseRequest(
            f"release-{number}",
            self.publisher.data_set,
            self.terms.method,
            self.terms.cost,
            self.terms.parameters(size),
        )


def check_card(artefact: roles.Artefact, plan: AnyPlan) -> None:
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


def use_one_thread() -> None:
    """Let torch sum in one order: the same bytes on any number of cores, and of jobs."""
    from torch import set_num_threads  # lazy: some methods need no torch

    set_num_threads(1)
