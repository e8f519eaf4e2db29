"""The model publisher: publications against the ledger, each drawn once and kept for ever."""

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Response

from noisefloor.accounting import Amount, Ledger
from noisefloor.errors import BudgetExceeded
from noisefloor.privacy import Guarantee, TrustModel
from noisefloor.randomness import Source
from noisefloor.roles import LOADING, Audit, ModelPublisher, PublicationMethod, ReleaseRequest
from noisefloor.wire import messages
from noisefloor_services.http import UNAVAILABLE, Readiness, Rule, Service, ServiceSpec
from noisefloor_services.ledger import RedisLedger
from noisefloor_services.publisher.data_set_routes import RULES as DATA_SET_RULES
from noisefloor_services.publisher.data_set_routes import add_data_sets
from noisefloor_services.publisher.jobs import PublicationProgress
from noisefloor_services.publisher.state import PublisherState
from noisefloor_services.security import Role, check_source, secure_source
from noisefloor_services.settings import BadSetting, Settings
from noisefloor_services.store import Durability

NAME = "model-publisher"
RULES: Mapping[str, Rule] = {
    "POST /publications": Role.PUBLISH,
    "GET /publications/{publication_id}": Role.READ,
    "GET /publications/{publication_id}/card": Role.READ,
    "GET /ledger": Role.LEDGER,
    "GET /publications/{publication_id}/state": Role.READ,
    "GET /ledger/{subject}": Role.LEDGER,
    "GET /ledger/{subject}/chain": Role.LEDGER,
    "GET /ledger/{subject}/entries": Role.LEDGER,
    **DATA_SET_RULES,
}
DESCRIPTION = f"""Publishes from data sets, each with a privacy budget that cannot be overspent.

A publication is charged before anything is drawn, and what was drawn is kept: a retry with the
same id and the same request gets the same bytes and costs nothing. `dry_run` costs nothing and
says what would happen. Every route takes a bearer token with the role that it names.

What is published are safetensors files, each with a card: the guarantee in words and numbers, the
neighbouring relation, method, parameters, what the data set spent so far, and hashes. The
publisher signs it. Fetch both and load; whatever was changed is refused (`url` is the
publication's, `token` the header with a token that may read, `publisher.pub` the publisher's
public key, which comes from the publisher, once, and not from here):

    {LOADING[0]}
    {LOADING[1]}
    {LOADING[2]}

That takes numpy, safetensors and cryptography, and nothing more. What is no model is loaded by
`noisefloor.publication.load_table` in the same way.

A method that takes long is answered by 202 once it is paid for; poll `/state` until it is stored.

A data holder uploads a data set of its own in two steps (role admin): `PUT /data-sets/NAME` with
schema and budget, then `PUT /data-sets/NAME/records/VERSION` with the rows, again for every later
version. The publisher sees these rows and has to be trusted with them; they stay in its memory
until `DELETE /data-sets/NAME`. Ids of publications are of one data set then: the routes that read
take its name as `data_set`.
"""

PublicationId = Annotated[str, Path(pattern=r"^[a-z0-9-]{1,64}$")]
Subject = Annotated[str, Path(pattern=r"^[a-z0-9-]{1,64}$")]
OfDataSet = Annotated[
    str | None,
    Query(pattern=r"^[a-z0-9-]{1,64}$", description="The uploaded data set that it is of."),
]


def create(
    settings: Settings,
    methods: Mapping[str, PublicationMethod],
    *,
    data_sets: Collection[str],
    environment: Mapping[str, str] | None = None,
    source: Source | None = None,
    audit: Audit | None = None,
) -> Service:
    """Make the model publisher.

    Args:
        settings: Of the service.
        methods: How to publish from the operator's data sets, by name.
        data_sets: Their names, of lower-case letters, digits and hyphens.
        environment: As the process got it; a seed in it is refused.
        source: Nothing, or a SecureSource.
        audit: Plays the games of the cards of uploaded data sets, if there is an auditor.
    """
    if settings.experiments and data_sets:
        rule = "has to be off where data sets come from files: experiments have no guarantee"
        raise BadSetting("NOISEFLOOR_EXPERIMENTS", rule)
    drawn = secure_source(environment or {}, settings, source)
    shared = PublisherState(settings, methods, data_sets, drawn, audit)
    readiness = Readiness(settings.redis_url, Durability.DISK, (shared.lacks,))

    def add(router: APIRouter) -> None:
        for add_routes in (_add_publishing, _add_reading, _add_ledger, add_data_sets):
            add_routes(router, shared)

    listed = "\n".join(f"\n**{name}.** {one.help}" for name, one in methods.items() if one.help)
    described = f"{DESCRIPTION}\nMethods:\n{listed}\n" if listed else DESCRIPTION
    spec = ServiceSpec(NAME, described, add, RULES, shared.running, shared.samples)
    return Service(spec, settings, readiness)


def _add_publishing(router: APIRouter, shared: PublisherState) -> None:
    @router.post(
        "/publications",
        tags=["publication"],
        summary="Publish something, or find out by a dry run whether it would be.",
        responses={
            202: {
                "model": messages.PublicationOutcome,
                "description": "Paid for; poll `/state` until it is stored.",
            },
            409: {"description": "Too little is left, or the id stands for another request."},
            410: {"description": "It was paid for, and its method failed."},
            **UNAVAILABLE,
        },
    )
    def publish(
        message: messages.PublicationMessage, response: Response
    ) -> messages.PublicationOutcome:
        request, publisher = _request(message), shared.publisher(message.data_set)
        if message.dry_run:
            return _dry_run(message, request, publisher, shared)
        try:
            if publisher.is_long(request) and publisher.stored(request) is None:
                return _queued(message, request, publisher, shared, response)
            artefact = publisher.publish(request, check_source(shared.source))
        except BudgetExceeded:
            shared.outcomes.add("refused")
            raise
        shared.outcomes.add("stored")
        return _outcome(
            message,
            "Stored; a retry gets the same bytes.",
            card=artefact.card,
            state=PublicationProgress.STORED,
        )


def _queued(
    message: messages.PublicationMessage,
    request: ReleaseRequest,
    publisher: ModelPublisher,
    shared: PublisherState,
    response: Response,
) -> messages.PublicationOutcome:
    """Charge a publication that takes long, and let the worker make it."""
    source = check_source(shared.source)

    def make() -> None:
        publisher.publish(request, source)
        shared.outcomes.add("stored")

    key = shared.job_key(request.publication_id, request.data_set)
    progress = shared.jobs.submit(key, request, lambda: publisher.charge(request), make)
    response.status_code = 202
    response.headers["Location"] = f"/publications/{request.publication_id}/state"
    shared.outcomes.add("taken")
    return _outcome(message, progress.text, state=progress)


def _dry_run(
    message: messages.PublicationMessage,
    request: ReleaseRequest,
    publisher: ModelPublisher,
    shared: PublisherState,
) -> messages.PublicationOutcome:
    """Say what would happen; nothing does."""
    publisher.stored(request)  # the id may stand for another one
    price = shared.price(request)
    is_paid = not price.micro_epsilon and not price.delta
    is_allowed = is_paid or publisher.would_publish(request)
    would = shared.ledger(request.data_set).would_spend(
        request.data_set, request.cost, loss=shared.loss(request)
    )
    detail = "Dry run, nothing was spent: it is paid for already." if is_paid else str(would)
    shared.outcomes.add("dry-run")
    return _outcome(message, detail, is_allowed=is_allowed, price=price)


def _add_reading(router: APIRouter, shared: PublisherState) -> None:
    missing: dict[int | str, dict[str, Any]] = {
        404: {"description": "There is no such publication, or it is not stored yet."},
        410: {"description": "It was paid for, and its method failed."},
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
        publication_id: PublicationId,
        data_set: OfDataSet = None,
        if_none_match: Annotated[str | None, Header()] = None,
    ) -> Response:
        made = shared.found(publication_id, data_set)
        if if_none_match == made.etag:
            return Response(status_code=304, headers={"ETag": made.etag})
        return Response(made.content, media_type=made.media_type, headers={"ETag": made.etag})

    @router.get(
        "/publications/{publication_id}/card",
        tags=["publication"],
        summary="What was published, and what is guaranteed of it, signed.",
        responses={
            200: {"content": {"application/json": {"schema": {"type": "object"}}}},
            **missing,
        },
        response_class=Response,
    )
    def card(publication_id: PublicationId, data_set: OfDataSet = None) -> Response:
        # As it is: a signature is of these very bytes.
        content = shared.found(publication_id, data_set).card_bytes
        return Response(content, media_type="application/json")

    @router.get(
        "/publications/{publication_id}/state",
        tags=["publication"],
        summary="How far a publication is.",
        responses=missing,
    )
    def state(
        publication_id: PublicationId, data_set: OfDataSet = None
    ) -> messages.PublicationStatus:
        progress = shared.progress(publication_id, data_set)
        return messages.PublicationStatus(
            publication_id=publication_id, state=progress.value, detail=progress.text
        )


def _add_ledger(router: APIRouter, shared: PublisherState) -> None:
    @router.get(
        "/ledger",
        tags=["ledger"],
        summary="The budgets of all data sets that are published from.",
        responses=UNAVAILABLE,
    )
    def balances() -> list[messages.BudgetBalance]:
        names = sorted({*shared.data_sets, *shared.uploads.names()})
        return [_balance(shared.ledger(name), name) for name in names]

    @router.get(
        "/ledger/{subject}",
        tags=["ledger"],
        summary="A data set's budget, and what spent it.",
        responses={404: {"description": "Nothing is published from it."}, **UNAVAILABLE},
    )
    def statement(subject: Subject) -> messages.BudgetStatement:
        account = shared.ledger(subject).account(subject)
        lines = [
            _line(one.release, one.count, Amount(one.micro_epsilon, one.delta_units), one.share)
            for one in account.what_spent(subject)
        ]
        balance = _balance(account, subject).model_dump()
        return messages.BudgetStatement(**balance, what_spent_it=lines, why=account.why(subject))

    @router.get(
        "/ledger/{subject}/chain",
        tags=["ledger"],
        summary="A data set's terms and chained records as they are stored: check them yourself.",
        responses={404: {"description": "Nothing is published from it."}, **UNAVAILABLE},
    )
    def chain(subject: Subject) -> messages.LedgerChain:
        ledger = shared.ledger(subject)
        # As they are, unchecked: a broken chain is for the reader to find and to name.
        records = [content.decode("utf-8", "replace") for content in ledger.contents(subject)]
        terms = ledger.terms.content.decode("ascii")
        return messages.LedgerChain(subject=subject, terms=terms, records=records)

    @router.get(
        "/ledger/{subject}/entries",
        tags=["ledger"],
        summary="A data set's ledger: every entry, as `accounting.Ledger.restore` reads it.",
        responses={
            200: {"content": {"application/json": {"schema": {"type": "object"}}}},
            404: {"description": "Nothing is published from it."},
            **UNAVAILABLE,
        },
        response_class=Response,
    )
    def entries(subject: Subject) -> Response:
        # As it is: a snapshot has a checksum, and one form only.
        snapshot = shared.ledger(subject).account(subject).snapshot()
        return Response(snapshot, media_type="application/json")


def _request(message: messages.PublicationMessage) -> ReleaseRequest:
    cost = Guarantee(
        message.cost.epsilon, message.cost.neighbours, message.cost.delta, model=TrustModel.CENTRAL
    )
    values = message.parameters
    numbers = [one for one in values.values() if isinstance(one, float)]
    assert all(map(math.isfinite, numbers))  # noqa: S101  the message refused others
    return ReleaseRequest(message.publication_id, message.data_set, message.method, cost, values)


def _outcome(
    message: messages.PublicationMessage,
    detail: str,
    *,
    is_allowed: bool = True,
    card: dict[str, Any] | None = None,  # Any: JSON
    state: PublicationProgress | None = None,
    price: messages.PublicationPrice | None = None,
) -> messages.PublicationOutcome:
    return messages.PublicationOutcome(
        publication_id=message.publication_id,
        dry_run=message.dry_run,
        would_publish=is_allowed,
        detail=detail,
        card=card,
        state=state.value if state else None,
        price=price,
    )


def _balance(ledger: Ledger | RedisLedger, subject: str) -> messages.BudgetBalance:
    spent, left = ledger.spent(subject), ledger.left(subject)
    return messages.BudgetBalance(
        subject=subject,
        spent_micro_epsilon=spent.micro_epsilon,
        left_micro_epsilon=left.micro_epsilon,
        spent_delta=spent.delta,
        left_delta=left.delta,
    )


def _line(release: str, count: int, taken: Amount, share: float) -> messages.LedgerLine:
    return messages.LedgerLine(
        release=release, count=count, epsilon=taken.epsilon, delta=taken.delta, share=share
    )
