"""Where commands publish: at a running publisher, or in a folder of this machine.

Both answer the same questions. What a ledger says is always checked here, link by link.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from noisefloor import errors
from noisefloor.accounting import Amount, ChainedLedger, LedgerTerms
from noisefloor.errors import BadParameter
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SecureSource
from noisefloor.roles import (
    Artefact,
    FilePublisher,
    MemoryArtefactStore,
    ModelPublisher,
    ReleaseRequest,
    methods_of,
)
from noisefloor.tables import data_schema_fields, load_data_schema
from noisefloor.wire.messages import DataSetBudget, DataSetMessage
from noisefloor_sim.cli.progress import TaskDisplay
from noisefloor_sim.cli.published_data import PublishedData
from noisefloor_sim.deploy import Deployment, NotRunning, running
from noisefloor_sim.deploy.hosting import PublisherClient, read_tokens

STORE = Path("noisefloor-store")
SERVICES = Path(".noisefloor")


class PriceTag(NamedTuple):
    """What a request would do.

    Attributes:
        is_paid: Whether it was charged before, so that it costs nothing.
        is_allowed: Whether it would be published.
        cost: What it would be charged.
        left: What is left now.
        after: What would be left.
        why: What runs out, in words.
    """

    is_paid: bool
    is_allowed: bool
    cost: Amount
    left: Amount
    after: Amount
    why: str = ""


class PublicationTarget(Protocol):
    """A publisher, wherever it is."""

    @property
    def where(self) -> str:
        """The folder or the address."""

    @property
    def key(self) -> Path | None:
        """The file of the public key of its cards, if it is known here."""

    def data_sets(self) -> list[str]:
        """Return the data sets that have a budget."""

    def ledger(self, name: str) -> ChainedLedger:
        """Return the ledger of a data set."""

    def relation(self, name: str) -> Neighbours | None:
        """Return the relation of a data set's budget, if it may be seen."""

    def stored_ids(self, name: str) -> list[str]:
        """Return the publications that are stored, where they can be listed."""

    def set_budget(self, data: PublishedData, terms: LedgerTerms, publisher: str) -> None:
        """Give a data set its budget, once."""

    def preview(self, request: ReleaseRequest, data: PublishedData) -> PriceTag:
        """Say what a request would cost; nothing is spent or sent."""

    def publish(
        self, request: ReleaseRequest, data: PublishedData, display: TaskDisplay
    ) -> Artefact:
        """Charge, draw and store once."""

    def artefact(self, name: str, publication_id: str) -> Artefact | None:
        """Return what was published, or None."""

    def close(self) -> None:
        """Give back what it holds."""


@dataclass(frozen=True, slots=True)
class StoreTarget:
    """A folder of this machine.

    Attributes:
        folder: Made by the first budget.
    """

    folder: Path

    @property
    def where(self) -> str:
        """The folder."""
        return str(self.folder)

    @property
    def key(self) -> Path | None:
        """The file of the public key."""
        return FilePublisher.open(self.folder).public_key

    def data_sets(self) -> list[str]:
        """Return the data sets that have a budget."""
        return FilePublisher.open(self.folder).data_sets()

    def ledger(self, name: str) -> ChainedLedger:
        """Return the ledger of a data set."""
        return FilePublisher.open(self.folder).ledger(name)

    def relation(self, name: str) -> Neighbours | None:
        """Return the relation of a data set's budget."""
        return self.ledger(name).neighbours

    def stored_ids(self, name: str) -> list[str]:
        """Return the publications that are stored."""
        return FilePublisher.open(self.folder).releases(name).ids()

    def set_budget(self, data: PublishedData, terms: LedgerTerms, publisher: str) -> None:
        """Give a data set its budget, once."""
        FilePublisher.create(self.folder, publisher=publisher).set_budget(data.name, terms)

    def preview(self, request: ReleaseRequest, data: PublishedData) -> PriceTag:
        """Say what a request would cost; nothing is spent."""
        publisher = FilePublisher.open(self.folder)
        publisher.ledger(data.name)  # before the table is read, which may take long
        found = publisher.preview(request, data.records)
        spend = found.spend
        if found.is_paid:
            return PriceTag(True, True, Amount(0), spend.left, spend.left)
        cost = spend.requested or Amount(0)
        return PriceTag(False, spend.is_allowed, cost, spend.left, spend.after, spend.why)

    def publish(
        self, request: ReleaseRequest, data: PublishedData, display: TaskDisplay
    ) -> Artefact:
        """Charge, draw and store once."""
        from noisefloor.adversary.models import audit_plan

        publisher = FilePublisher.open(self.folder)
        publisher.ledger(data.name)
        display.tell("reading the table")
        records = data.records
        display.tell("charging, drawing and storing")
        return publisher.publish(
            request,
            records,
            SecureSource(),
            audit_plan,
            progress=display.show,
            tell=display.warn,
        )

    def artefact(self, name: str, publication_id: str) -> Artefact | None:
        """Return what was published, or None."""
        return FilePublisher.open(self.folder).artefact(name, publication_id)

    def close(self) -> None:
        """Hold nothing."""


@dataclass(frozen=True, slots=True)
class ServiceTarget:
    """A publisher that runs.

    Attributes:
        client: Calls it.
        key: The file of the public key of its cards, if it is known here.
    """

    client: PublisherClient
    key: Path | None = None

    @property
    def where(self) -> str:
        """The address."""
        return self.client.url

    def data_sets(self) -> list[str]:
        """Return the data sets that have a budget."""
        return self.client.data_sets()

    def ledger(self, name: str) -> ChainedLedger:
        """Return a copy of the ledger of a data set, checked here."""
        return self.client.ledger(name)

    def relation(self, name: str) -> Neighbours | None:
        """Return the relation of a data set's budget, if the token may see it."""
        try:
            return self.client.ledger(name).neighbours
        except errors.ServicesRefused:
            return None

    def stored_ids(self, name: str) -> list[str]:
        """Return nothing: the service hands publications out by their ids alone."""
        return []

    def set_budget(self, data: PublishedData, terms: LedgerTerms, publisher: str) -> None:
        """Register a file with its schema and budget."""
        if not data.is_file:
            rule = "a file with its schema: the service registers both with the budget"
            raise BadParameter("data", data.named, rule)
        schema = load_data_schema(data.named)
        budget = DataSetBudget(
            epsilon=terms.budget.epsilon,
            delta=terms.budget.delta,
            neighbours=terms.neighbours,
        )
        message = DataSetMessage(declaration=data_schema_fields(schema), budget=budget)
        self.client.register(data.name, message)

    def preview(self, request: ReleaseRequest, data: PublishedData) -> PriceTag:
        """Say what a request would cost; of a file, its rows are not sent for that."""
        if data.is_file:
            return self._computed(request, data)
        outcome = self.client.send(request, is_dry=True)
        price = outcome.price
        if price is None:
            raise errors.ServicesRefused(f"{self.where}: the answer has no price.")
        cost = Amount(price.micro_epsilon, Amount.budget(0, price.delta).delta_units)
        left = Amount(price.left_micro_epsilon, Amount.budget(0, price.left_delta).delta_units)
        is_paid = cost == Amount(0)
        before = left if is_paid or not outcome.would_publish else self._left(data.name, left)
        why = "" if outcome.would_publish else outcome.detail
        return PriceTag(is_paid, outcome.would_publish, cost, before, left, why)

    def publish(
        self, request: ReleaseRequest, data: PublishedData, display: TaskDisplay
    ) -> Artefact:
        """Upload a file's rows, and let the service charge, draw and store once."""
        if data.is_file:
            display.tell("reading and uploading the table")
            self.client.upload(data.name, data.records)
        self.client.send(request)
        self.client.wait_stored(request, display.tell)
        found = self.client.artefact(request.publication_id, data.name)
        if found is None:
            raise errors.ServicesRefused(f"{self.where}: what was stored is not there.")
        return found

    def artefact(self, name: str, publication_id: str) -> Artefact | None:
        """Return what was published, or None."""
        return self.client.artefact(publication_id, name)

    def close(self) -> None:
        """Give the connection back."""
        self.client.close()

    def _computed(self, request: ReleaseRequest, data: PublishedData) -> PriceTag:
        """Compute what the service would answer, from its chain and the file's own schema."""
        ledger = self.client.ledger(data.name)
        methods = methods_of({data.name: data.records}).values()
        role = ModelPublisher(ledger, MemoryArtefactStore(), methods, data_sets=[data.name])
        loss = role.loss(request)
        spend = ledger.would_spend(data.name, request.cost, loss=loss)
        if ledger.entry(request.publication_id) is not None:
            return PriceTag(True, True, Amount(0), spend.left, spend.left)
        cost = spend.requested or Amount(0)
        return PriceTag(False, spend.is_allowed, cost, spend.left, spend.after, spend.why)

    def _left(self, name: str, otherwise: Amount) -> Amount:
        """Return what is left now, if the token may see it."""
        try:
            return self.client.ledger(name).left(name)
        except errors.ServicesRefused:
            return otherwise


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """Which publisher is meant; at most one is named.

    Attributes:
        store: A folder of this machine.
        services: The folder of ``noisefloor up``.
        address: Of a publisher, with ``token_file``.
        token_file: Of a token, or of tokens by role.
    """

    store: Path | None = None
    services: Path | None = None
    address: str | None = None
    token_file: Path | None = None

    @contextmanager
    def opened(self) -> Iterator[PublicationTarget]:
        """Open the publisher that is meant, for one command."""
        with closing(self._target()) as target:
            yield target

    def _target(self) -> PublicationTarget:
        named = [self.store is not None, self.services is not None, self.address is not None]
        if sum(named) > 1:
            raise BadParameter("target", "<several>", "one of --store, --services and --address")
        if (self.address is None) != (self.token_file is None):
            raise BadParameter("token-file", "<file>", "given with --address, and only then")
        if self.address is not None and self.token_file is not None:
            return ServiceTarget(PublisherClient(self.address, read_tokens(self.token_file)))
        if self.services is not None:
            return _at(running(self.services))
        return StoreTarget(self.store) if self.store is not None else _default()


def _default() -> PublicationTarget:
    """Return the services that run here, or the store of this folder; never guess among both."""
    try:
        topology = running(SERVICES)
    except NotRunning:
        return StoreTarget(STORE)
    if STORE.is_dir():
        rule = f"named: services run in {SERVICES}, and there is a store in {STORE}"
        raise BadParameter("target", "<none>", f"{rule}. Add --services or --store")
    return _at(topology)


def _at(topology: Deployment) -> ServiceTarget:
    key = topology.paths.signing_key
    public = key.with_name(f"{key.name}.pub")
    return ServiceTarget(PublisherClient.of(topology), public if public.exists() else None)


def found_publication(
    target: PublicationTarget, publication_id: str, data_set: str | None
) -> tuple[str, Artefact]:
    """Return a publication and its data set; the id may be of several."""
    names = [data_set] if data_set else target.data_sets()
    made = [(name, target.artefact(name, publication_id)) for name in names]
    found = [(name, one) for name, one in made if one is not None]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(name for name, _ in found)
        raise BadParameter("data-set", "<none>", f"named: the id is one of each of {listed}")
    rule = "of a publication that is stored there. See: noisefloor cards"
    raise BadParameter("id", publication_id, f"{rule} ({target.where})")
