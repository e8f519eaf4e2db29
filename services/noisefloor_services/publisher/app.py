"""The model publisher: publications against the ledger, each drawn once and kept for ever."""

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Path, Response
from redis import Redis

from noisefloor.accounting import Amount, Ledger
from noisefloor.privacy import Guarantee, TrustModel
from noisefloor.randomness import Source
from noisefloor.roles import LOADING, ModelPublisher, PublicationMethod, ReleaseRequest
from noisefloor.wire.messages import (
    BudgetBalance,
    BudgetStatement,
    LedgerLine,
    PublicationMessage,
    PublicationOutcome,
    PublicationPrice,
    PublicationStatus,
)
from noisefloor_services.http import UNAVAILABLE, Readiness, Rule, Service, ServiceSpec
from noisefloor_services.ledger import (
    AnchoredLedger,
    LedgerAnchor,
    LedgerTerms,
    RedisLedger,
    RestorationSummary,
    restore,
)
from noisefloor_services.publisher.jobs import PublicationProgress
from noisefloor_services.publisher.state import TIMEOUT_S, PublisherState
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
}
DESCRIPTION = f"""Publishes from data sets, each with a privacy budget that cannot be overspent.

A publication is charged before anything is drawn, and what was drawn is kept: a retry with the
same id and the same request gets the same bytes and costs nothing. `dry_run` costs nothing and
says what would happen. Every route takes a bearer token with the role that it names.

What is published are safetensors files, each with a card: the guarantee in words and numbers, the
neighbouring relation, method, parameters and hashes. Fetch both, compare, load (`url` is the
publication's, `token` the header with a token that may read):

    file, card = (httpx.get(url + end, headers=token) for end in ("", "/card"))
    assert hashlib.sha256(file.content).hexdigest() == card.json()["content_sha256"]
    tensors = safetensors.numpy.load(file.content)

The comparison is not optional: the form has no checksum of its own. `noisefloor.publication.load`
takes content and card, and refuses a file that was changed. A model is loaded and asked in three
lines as well, with numpy and safetensors and nothing more:

    {LOADING[0]}
    {LOADING[1]}
    {LOADING[2]}

A method that takes long is answered by 202 once it is paid for; ask `/state` until it is stored.
"""

PublicationId = Annotated[str, Path(pattern=r"^[a-z0-9-]{1,64}$")]


def terms(settings: Settings) -> LedgerTerms:
    """Return the terms of the ledger that the settings name."""
    return LedgerTerms.of(
        settings.ledger_epsilon,
        settings.ledger_delta,
        neighbours=settings.ledger_neighbours,
        model=TrustModel.CENTRAL,
    )


def create_ledger(settings: Settings) -> None:
    """Make the ledger where there is none: an act of whoever runs the service, once.

    Its anchor is made with it. Where something was spent already and the anchor is missing it is
    not: that would forget what it said. ``restore_ledger`` makes it then.
    """
    with Redis.from_url(settings.redis_url, socket_timeout=TIMEOUT_S) as client:
        ledger = RedisLedger.create(client, settings.ledger, terms(settings))
        anchor = _anchor(settings)
        if anchor is not None and not ledger.subjects():
            anchor.create()


def restore_ledger(settings: Settings) -> RestorationSummary:
    """Raise a ledger that was set back to what its anchor says; see ``ledger_restoring``.

    Where the server holds no ledger at all and the anchor is there, the ledger is made first: it
    is raised to the anchor before anybody can spend from it.
    """
    anchor = _anchor(settings)
    if anchor is None:
        raise BadSetting("NOISEFLOOR_LEDGER_ANCHOR", "has to name the anchor to restore from")
    with Redis.from_url(settings.redis_url, socket_timeout=TIMEOUT_S) as client:
        make = RedisLedger.create if anchor.is_there else RedisLedger.open
        return restore(make(client, settings.ledger, terms(settings)), anchor)


def _anchor(settings: Settings) -> LedgerAnchor | None:
    if settings.ledger_anchor is None:
        return None
    return LedgerAnchor(settings.ledger_anchor, settings.ledger, terms(settings))


def _opened(client: "Redis", settings: Settings) -> RedisLedger:
    """Open the ledger with its anchor, if it has one."""
    anchor, agreed = _anchor(settings), terms(settings)
    if anchor is None:
        return RedisLedger.open(client, settings.ledger, agreed)
    return AnchoredLedger.open_at(client, settings.ledger, agreed, anchor)


def create(
    settings: Settings,
    methods: Mapping[str, PublicationMethod],
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
    shared = PublisherState(
        settings, methods, data_sets, drawn, lambda client: _opened(client, settings)
    )
    readiness = Readiness(settings.redis_url, Durability.DISK, (shared.lacks,))

    def add(router: APIRouter) -> None:
        for part in (_add_publishing, _add_reading, _add_ledger):
            part(router, shared)

    told = "\n".join(f"\n**{name}.** {one.help}" for name, one in methods.items() if one.help)
    described = f"{DESCRIPTION}\nMethods:\n{told}\n" if told else DESCRIPTION
    parts = ServiceSpec(NAME, described, add, RULES, shared.running, shared.samples)
    return Service(parts, settings, readiness)


def _add_publishing(router: APIRouter, shared: PublisherState) -> None:
    @router.post(
        "/publications",
        tags=["publication"],
        summary="Publish something, or ask by a dry run whether it would be.",
        responses={
            202: {
                "model": PublicationOutcome,
                "description": "Paid for; ask `/state` until it is stored.",
            },
            409: {"description": "Too little is left, or the id stands for another request."},
            410: {"description": "It was paid for, and its method failed."},
            **UNAVAILABLE,
        },
    )
    def publish(asked: PublicationMessage, response: Response) -> PublicationOutcome:
        request, publisher = _request(asked), shared.publisher()
        if asked.dry_run:
            return _dry_run(asked, request, publisher, shared)
        source = check_source(shared.source)
        if publisher.is_long(request) and publisher.stored(request) is None:
            far = shared.jobs.submit(
                request,
                charge=lambda: publisher.charge(request),
                work=lambda: publisher.publish(request, source),
            )
            response.status_code = 202
            response.headers["Location"] = f"/publications/{request.publication_id}/state"
            shared.outcomes.add("taken")
            return _outcome(asked, far.text, state=far)
        made = publisher.publish(request, source)
        shared.outcomes.add("stored")
        return _outcome(
            asked,
            "Stored; a retry gets the same bytes.",
            card=made.card,
            state=PublicationProgress.STORED,
        )


def _dry_run(
    asked: PublicationMessage,
    request: ReleaseRequest,
    publisher: ModelPublisher,
    shared: PublisherState,
) -> PublicationOutcome:
    """Say what would happen; nothing does."""
    publisher.stored(request)  # the id may stand for another one
    price = shared.price(request)
    is_paid = not price.micro_epsilon and not price.delta
    is_allowed = is_paid or publisher.would_publish(request)
    would = shared.ledger().would_spend(request.data_set, request.cost)
    detail = "Dry run, nothing was spent: it is paid for already." if is_paid else str(would)
    shared.outcomes.add("dry-run")
    return _outcome(asked, detail, is_allowed=is_allowed, price=price)


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

    @router.get(
        "/publications/{publication_id}/state",
        tags=["publication"],
        summary="How far a publication is.",
        responses=missing,
    )
    def state(publication_id: PublicationId) -> PublicationStatus:
        far = shared.progress(publication_id)
        return PublicationStatus(publication_id=publication_id, state=far.value, detail=far.text)


def _add_ledger(router: APIRouter, shared: PublisherState) -> None:
    @router.get(
        "/ledger",
        tags=["ledger"],
        summary="The budgets of all data sets that are published from.",
        responses=UNAVAILABLE,
    )
    def balances() -> list[BudgetBalance]:
        return [_balance(shared.ledger(), name) for name in sorted(shared.data_sets)]

    @router.get(
        "/ledger/{subject}",
        tags=["ledger"],
        summary="A data set's budget, and what spent it.",
        responses={404: {"description": "Nothing is published from it."}, **UNAVAILABLE},
    )
    def statement(subject: Annotated[str, Path(pattern=r"^[a-z0-9-]{1,64}$")]) -> BudgetStatement:
        if subject not in shared.data_sets:
            raise HTTPException(404, "Nothing is published from it.")
        account = shared.ledger().account(subject)
        lines = [
            _line(one.release, one.count, Amount(one.micro_epsilon, one.delta_units), one.share)
            for one in account.what_spent(subject)
        ]
        balance = _balance(account, subject).model_dump()
        return BudgetStatement(**balance, what_spent_it=lines, why=account.why(subject))


def _request(asked: PublicationMessage) -> ReleaseRequest:
    cost = Guarantee(
        asked.cost.epsilon, asked.cost.neighbours, asked.cost.delta, model=TrustModel.CENTRAL
    )
    values = asked.parameters
    assert all(math.isfinite(one) for one in values.values() if isinstance(one, float))
    return ReleaseRequest(asked.publication_id, asked.data_set, asked.method, cost, values)


def _outcome(
    asked: PublicationMessage,
    detail: str,
    *,
    is_allowed: bool = True,
    card: dict[str, Any] | None = None,  # Any: JSON
    state: PublicationProgress | None = None,
    price: PublicationPrice | None = None,
) -> PublicationOutcome:
    return PublicationOutcome(
        publication_id=asked.publication_id,
        dry_run=asked.dry_run,
        would_publish=is_allowed,
        detail=detail,
        card=card,
        state=state.value if state else None,
        price=price,
    )


def _balance(ledger: Ledger | RedisLedger, subject: str) -> BudgetBalance:
    spent, left = ledger.spent(subject), ledger.left(subject)
    return BudgetBalance(
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
