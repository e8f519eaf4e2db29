"""The model publisher: publications against the ledger, each drawn once and kept for ever."""

import math
import threading
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Path, Response
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from noisefloor.accounting import Amount, Ledger
from noisefloor.errors import NoisefloorError
from noisefloor.privacy import Guarantee, Model
from noisefloor.randomness import Source
from noisefloor.roles.artefact import Artefact, unpack
from noisefloor.roles.model_publisher import Method, ModelPublisher, Request
from noisefloor_services.apps import UNAVAILABLE, Parts, Service
from noisefloor_services.ledger import RedisLedger
from noisefloor_services.ledger_terms import Terms
from noisefloor_services.metrics import Counter, Sample
from noisefloor_services.publication_messages import (
    Balance,
    LedgerLine,
    Outcome,
    Publication,
    Statement,
)
from noisefloor_services.readiness import Readiness
from noisefloor_services.security.credentials import Role
from noisefloor_services.security.policy import Rule
from noisefloor_services.security.secure_start import check_source, secure_source
from noisefloor_services.settings import Settings
from noisefloor_services.streams.durability import Durability

NAME = "model-publisher"
RULES: Mapping[str, Rule] = {
    "POST /publications": Role.PUBLISH,
    "GET /publications/{publication_id}": Role.READ,
    "GET /publications/{publication_id}/card": Role.READ,
    "GET /ledger": Role.LEDGER,
    "GET /ledger/{subject}": Role.LEDGER,
}
DESCRIPTION = """Publishes from data sets, each with a privacy budget that cannot be overspent.

A publication is charged before anything is drawn, and what was drawn is kept: a retry with the
same id and the same request gets the same bytes and costs nothing. `dry_run` costs nothing and
says what would happen. Every route takes a bearer token with the role that it names.
"""
TIMEOUT_S = 10.0

PublicationId = Annotated[str, Path(pattern=r"^[a-z0-9-]{1,64}$")]


class _Publisher:
    """What the routes share."""

    def __init__(
        self,
        settings: Settings,
        methods: Mapping[str, Method],
        data_sets: Collection[str],
        source: Source,
    ) -> None:
        self.settings = settings
        self.source = source
        self.methods = dict(methods)
        self.data_sets = frozenset(data_sets)
        self.client: Redis = Redis.from_url(
            settings.redis_url,
            socket_timeout=TIMEOUT_S,
            socket_connect_timeout=2.0,
            retry=Retry(NoBackoff(), 0),
        )
        self.outcomes = Counter(
            "publications", "Requests by what became of them.", "outcome", ("stored", "dry-run")
        )
        self._lock = threading.Lock()
        self._ledger: RedisLedger | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Close the connections in the end."""
        try:
            yield
        finally:
            self.client.close()

    def ledger(self) -> RedisLedger:
        """Open the ledger, once; it is never made here: an empty server is no full budget."""
        with self._lock:
            if self._ledger is None:
                self._ledger = RedisLedger.open(
                    self.client, self.settings.ledger, terms(self.settings)
                )
            return self._ledger

    def lacks(self) -> str:
        """Return what is wrong with the ledger, or nothing."""
        try:
            self.ledger().spent("<readiness>")
        except RedisError:
            return "The ledger does not answer."
        except NoisefloorError:
            return "The ledger is not there, has other terms, or lost what it held."
        return ""

    def publisher(self) -> ModelPublisher:
        """Return the role on the ledger."""
        if not self.methods:
            raise HTTPException(422, "No method of publication is installed here.")
        ledger = self.ledger()
        return ModelPublisher(ledger, ledger, self.methods.values(), data_sets=self.data_sets)

    def found(self, publication_id: str) -> Artefact:
        """Return what is stored of a publication, or answer 404."""
        stored = self.ledger().published(publication_id)
        if stored is None:
            raise HTTPException(404, "There is no such publication, or it is not stored yet.")
        return unpack(stored)

    def samples(self) -> Iterable[Sample]:
        """Return the ledger in numbers, by the data sets that are published from."""
        yield from self.outcomes.samples()
        ledger = self.ledger()
        for name in sorted(self.data_sets):
            spent, left = ledger.spent(name), ledger.left(name)
            label = {"data_set": name}
            text = "Spent budget in millionths of epsilon."
            yield Sample("ledger_spent_micro_epsilon", text, spent.micro_epsilon, label)
            text = "Budget that is left, in millionths of epsilon."
            yield Sample("ledger_left_micro_epsilon", text, left.micro_epsilon, label)
        yield Sample("ledger_entries", "Entries of the ledger at least.", ledger.entries_seen)


def terms(settings: Settings) -> Terms:
    """Return the terms of the ledger that the settings name."""
    return Terms.of(
        settings.ledger_epsilon,
        settings.ledger_delta,
        neighbours=settings.ledger_neighbours,
        model=Model.CENTRAL,
    )


def create_ledger(settings: Settings) -> None:
    """Make the ledger where there is none: an act of whoever runs the service, once."""
    with Redis.from_url(settings.redis_url, socket_timeout=TIMEOUT_S) as client:
        RedisLedger.create(client, settings.ledger, terms(settings))


def create(
    settings: Settings,
    methods: Mapping[str, Method],
    *,
    data_sets: Collection[str],
    environment: Mapping[str, str] | None = None,
    source: Source | None = None,
) -> Service:
    """Make the model publisher.

    Args:
        settings: What it was told.
        methods: What can be published, by name.
        data_sets: Of what; a name of lower-case letters, digits and hyphens each.
        environment: As the process got it; a seed in it is refused.
        source: Nothing, or a SecureSource.
    """
    drawn = secure_source(environment or {}, settings, source)
    shared = _Publisher(settings, methods, data_sets, drawn)
    readiness = Readiness(settings.redis_url, Durability.DISK, (shared.lacks,))

    def add(router: APIRouter) -> None:
        for part in (_add_publishing, _add_reading, _add_ledger):
            part(router, shared)

    parts = Parts(NAME, DESCRIPTION, add, RULES, shared.running, shared.samples)
    return Service(parts, settings, readiness)


def _add_publishing(router: APIRouter, shared: _Publisher) -> None:
    @router.post(
        "/publications",
        tags=["publication"],
        summary="Publish something, or ask by a dry run whether it would be.",
        responses={
            409: {"description": "Too little is left, or the id stands for another request."},
            **UNAVAILABLE,
        },
    )
    def publish(asked: Publication) -> Outcome:
        request, publisher = _request(asked), shared.publisher()
        if asked.dry_run:
            is_allowed = publisher.would_publish(request)
            would = shared.ledger().would_spend(request.data_set, request.cost)
            shared.outcomes.add("dry-run")
            return _outcome(asked, str(would), is_allowed=is_allowed)
        made = publisher.publish(request, check_source(shared.source))
        shared.outcomes.add("stored")
        return _outcome(asked, "Stored; a retry gets the same bytes.", card=made.card)


def _add_reading(router: APIRouter, shared: _Publisher) -> None:
    missing: dict[int | str, dict[str, Any]] = {
        404: {"description": "There is no such publication, or it is not stored yet."},
        **UNAVAILABLE,
    }

    @router.get(
        "/publications/{publication_id}",
        tags=["publication"],
        summary="The published bytes; the same for ever.",
        responses={
            200: {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}},
            304: {"description": "The caller has it already (If-None-Match)."},
            **missing,
        },
        response_class=Response,
    )
    def artefact(
        publication_id: PublicationId, if_none_match: Annotated[str | None, Header()] = None
    ) -> Response:
        made = shared.found(publication_id)
        if if_none_match == made.etag:
            return Response(status_code=304, headers={"ETag": made.etag})
        return Response(made.content, media_type=made.media_type, headers={"ETag": made.etag})

    @router.get(
        "/publications/{publication_id}/card",
        tags=["publication"],
        summary="What was published, and what is guaranteed of it.",
        responses=missing,
    )
    def card(publication_id: PublicationId) -> dict[str, Any]:  # Any: JSON
        return shared.found(publication_id).card


def _add_ledger(router: APIRouter, shared: _Publisher) -> None:
    @router.get(
        "/ledger",
        tags=["ledger"],
        summary="The budgets of all data sets that are published from.",
        responses=UNAVAILABLE,
    )
    def balances() -> list[Balance]:
        return [_balance(shared.ledger(), name) for name in sorted(shared.data_sets)]

    @router.get(
        "/ledger/{subject}",
        tags=["ledger"],
        summary="A data set's budget, and what spent it.",
        responses={404: {"description": "Nothing is published from it."}, **UNAVAILABLE},
    )
    def statement(subject: Annotated[str, Path(pattern=r"^[a-z0-9-]{1,64}$")]) -> Statement:
        if subject not in shared.data_sets:
            raise HTTPException(404, "Nothing is published from it.")
        account = shared.ledger().account(subject)
        lines = [
            _line(one.release, one.count, Amount(one.micro_epsilon, one.delta_units), one.share)
            for one in account.what_spent(subject)
        ]
        balance = _balance(account, subject).model_dump()
        return Statement(**balance, what_spent_it=lines, why=account.why(subject))


def _request(asked: Publication) -> Request:
    cost = Guarantee(
        asked.cost.epsilon, asked.cost.neighbours, asked.cost.delta, model=Model.CENTRAL
    )
    values = asked.parameters
    assert all(math.isfinite(one) for one in values.values() if isinstance(one, float))
    return Request(asked.publication_id, asked.data_set, asked.method, cost, values)


def _outcome(
    asked: Publication,
    detail: str,
    *,
    is_allowed: bool = True,
    card: dict[str, Any] | None = None,  # Any: JSON
) -> Outcome:
    return Outcome(
        publication_id=asked.publication_id,
        dry_run=asked.dry_run,
        would_publish=is_allowed,
        detail=detail,
        card=card,
    )


def _balance(ledger: Ledger | RedisLedger, subject: str) -> Balance:
    spent, left = ledger.spent(subject), ledger.left(subject)
    return Balance(
        subject=subject,
        spent_micro_epsilon=spent.micro_epsilon,
        left_micro_epsilon=left.micro_epsilon,
        spent_delta=spent.delta,
        left_delta=left.delta,
    )


def _line(release: str, count: int, taken: Amount, share: float) -> LedgerLine:
    return LedgerLine(
        release=release, count=count, epsilon=taken.epsilon, delta=taken.delta, share=share
    )
