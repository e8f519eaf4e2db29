"""The aggregator: a worker that counts, and an API for what was counted.

Sums are shown once their epoch is closed, and never before: two looks at an open epoch would tell
what came in between.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from fastapi import APIRouter, HTTPException, Response
from pydantic import BaseModel

from noisefloor.errors import BadParameter, EpochOpen
from noisefloor.roles.collection import Collection
from noisefloor.roles.epochs import EpochSummary
from noisefloor.wire.kinds import Kind, Reduction
from noisefloor_services.apps import UNAVAILABLE, Parts, Service, rate_limit
from noisefloor_services.board import MODEL_TYPE, Board
from noisefloor_services.bodies import FRAME_TYPE
from noisefloor_services.counting import Counting
from noisefloor_services.metrics import Sample
from noisefloor_services.paths import EpochNumber, KindName
from noisefloor_services.readiness import Readiness
from noisefloor_services.registering import RULES as REGISTERING_RULES
from noisefloor_services.registering import Registering
from noisefloor_services.registry import Registry
from noisefloor_services.rooms import Rooms
from noisefloor_services.rounds import Rounds
from noisefloor_services.security.credentials import Role
from noisefloor_services.security.policy import Rule
from noisefloor_services.security.rate_limit import RateLimit
from noisefloor_services.security.secure_start import check_environment, check_settings
from noisefloor_services.settings import Settings
from noisefloor_services.streams.conservation import Conservation
from noisefloor_services.streams.durability import Durability
from noisefloor_services.streams.keys import Layout
from noisefloor_services.streams.server import Server
from noisefloor_services.streams.store import EpochStore

NAME = "aggregator"
RULES: Mapping[str, Rule] = {
    "GET /statistics/{kind}/{epoch}": Role.READ,
    "GET /epochs/{kind}/{epoch}": Role.READ,
    "POST /epochs/{kind}/{epoch}/close": Role.ADMIN,
    "POST /epochs/{kind}/{epoch}/retire": Role.ADMIN,
    "GET /conservation": Role.READ,
    "GET /state": Role.READ,
    "GET /model": Role.READ,
}
DESCRIPTION = """Counts reports exactly once, and shows the sums of epochs that are closed.

Kinds that are summed are answered as JSON: the cells in the order of the kind's columns. Kinds
that are collected are answered as an Arrow IPC stream of their rows, sorted by content.
Every route takes a bearer token with the role that it names.

Other collections are registered by `PUT /collections/NAME` with a document as the first one's
file: catalogue, kinds, training. Each is then served under `/collections/NAME`, here and by the
ad servers, with all routes and a description of its own.
"""


class Statistics(BaseModel):
    """The sums of a closed epoch, and how many reports are behind them."""

    kind: str
    epoch: int
    rows: int
    cells: list[int]


class Epoch(BaseModel):
    """One epoch in numbers."""

    epoch: int
    is_closed: bool
    frames: int
    rows: int
    late_frames: int
    late_rows: int


class KindState(BaseModel):
    """One kind of report and the epochs that something is kept of."""

    kind: str
    reduction: str
    cells: int
    columns: list[str]
    epochs: list[Epoch]


class Account(BaseModel):
    """Frames by what became of them; `missing` has to be 0."""

    accepted: int
    counted: int
    duplicates: int
    dead_letters: int
    late: int
    pending: int
    reports: int
    missing: int
    is_conserved: bool


class CollectionState(BaseModel):
    """The state of the collection."""

    durability: str
    promise: str
    unkept: list[str]
    lacks: list[str]
    partitions: int
    waiting: int
    kinds: list[KindState]


class _Aggregator:
    """What the routes share."""

    def __init__(self, settings: Settings, collection: Collection) -> None:
        self.settings = settings
        self.server = Server(settings.redis_url)
        layout, training = Layout(collection.namespace, settings.partitions), collection.training
        self.board = Board(self.server, layout)
        self.store = EpochStore(self.server, layout, collection.kinds.values())
        self.durability = Durability(settings.durability)
        self.counting = Counting(self.store, self.durability, collection.first_epoch)
        self.rounds: Rounds | None = None
        if training is not None:
            self.rounds = Rounds(self.store, self.board, training)
        self._has_started = training is None
        self.readiness = Readiness(
            settings.redis_url, self.durability, (self.counting.lacks, self.rounds_lack)
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Count beside the API."""
        self.counting.start()
        try:
            yield
        finally:
            await asyncio.to_thread(self.counting.stop)
            self.server.close()

    def rounds_lack(self) -> str:
        """Leave the first broadcast once Redis is there; say so while it is not."""
        if not self._has_started and self.rounds is not None:
            try:
                self.rounds.start()
                self._has_started = True
            except Exception:
                return "The first broadcast is not out."
        return ""

    def kind(self, name: str) -> Kind:
        """Return a kind, or answer 404."""
        if name not in self.store.kinds:
            raise HTTPException(404, "There is no such kind.")
        return self.store.kinds[name]

    def samples(self) -> Iterable[Sample]:
        """Return conservation, and what waits."""
        account = self.store.conservation()
        outcomes = asdict(account)
        reports = outcomes.pop("reports")
        for name, value in outcomes.items():
            yield Sample("frames", "Frames by what became of them.", value, {"outcome": name})
        yield Sample("reports_counted", "Reports that were counted.", reports)
        yield Sample("frames_missing", "Frames without an outcome: has to be 0.", account.missing)
        text = "Whether every accepted frame has one outcome or waits."
        yield Sample("conserved", text, int(account.is_conserved))
        yield Sample("stream_length", "Frames that wait in the streams.", account.pending)
        yield Sample("worker_up", "Whether frames are counted.", int(not self.counting.lacks()))
        for place, behind in enumerate(self.store.lags()):
            label = {"partition": str(place)}
            text = "Frames that no worker has been given."
            yield Sample("stream_undelivered", text, behind.undelivered, label)
            text = "Frames that a worker holds and has not settled."
            yield Sample("stream_unacknowledged", text, behind.unacknowledged, label)
            text = "Seconds for which the first of those has been held."
            yield Sample("stream_oldest_held_seconds", text, behind.oldest_held_s, label)


def create(
    settings: Settings,
    collection: Collection,
    *,
    environment: Mapping[str, str] | None = None,
) -> Service:
    """Make the aggregator, with rooms for collections that are registered beside its own.

    Args:
        settings: What it was told.
        collection: Catalogue, kinds, and what is learnt.
        environment: As the process got it; a seed in it is refused.
    """
    check_environment(environment or {})
    check_settings(settings)
    rate = rate_limit(settings)
    layout = Layout(collection.namespace, settings.partitions)
    registry = Registry(Server(settings.redis_url), layout)

    def room(other: Collection) -> Service:
        return _service(settings, _Aggregator(settings, other), rate=rate)

    rooms = Rooms(registry, room, is_eager=True)
    return _service(
        settings,
        _Aggregator(settings, collection),
        rate=rate,
        rooms=rooms,
        registering=Registering(settings, registry, rooms),
    )


def _service(
    settings: Settings,
    shared: _Aggregator,
    *,
    rate: RateLimit,
    rooms: Rooms | None = None,
    registering: Registering | None = None,
) -> Service:
    def add(router: APIRouter) -> None:
        for part in (_add_statistics, _add_closing, _add_state, _add_model):
            part(router, shared)
        if registering is not None:
            registering.add(router)

    rules = {**RULES, **(REGISTERING_RULES if registering is not None else {})}
    parts = Parts(NAME, DESCRIPTION, add, rules, shared.running, shared.samples)
    return Service(parts, settings, shared.readiness, rooms=rooms, rate=rate)


_UNKNOWN: dict[int | str, dict[str, Any]] = {
    404: {"description": "There is no such kind, or nothing is kept of this epoch."},
    **UNAVAILABLE,
}


def _add_statistics(router: APIRouter, shared: _Aggregator) -> None:
    @router.get(
        "/statistics/{kind}/{epoch}",
        tags=["statistics"],
        summary="The sums of a closed epoch, or the rows that it collected.",
        response_model=Statistics,
        responses={
            200: {"content": {FRAME_TYPE: {"schema": {"type": "string", "format": "binary"}}}},
            409: {"description": "The epoch is open."},
            **_UNKNOWN,
        },
    )
    def statistics(kind: KindName, epoch: EpochNumber) -> Any:  # Any: one of two forms
        known = shared.kind(kind)
        try:
            if known.reduction is Reduction.COLLECT:
                return Response(
                    _stream(shared.store.release_rows(kind, epoch)), 200, None, FRAME_TYPE
                )
            cells, rows = shared.store.release(kind, epoch)
        except BadParameter:
            raise HTTPException(404, "Nothing is kept of this epoch.") from None
        return Statistics(kind=kind, epoch=epoch, rows=rows, cells=cells.tolist())


def _add_closing(router: APIRouter, shared: _Aggregator) -> None:
    @router.post(
        "/epochs/{kind}/{epoch}/close",
        tags=["administration"],
        summary="Close an epoch, once or again; what comes later is refused and counted.",
        description="Frames that wait in the streams at this moment come too late: see `waiting` "
        "in the state. Where a model is learnt, the round's step is taken.",
        responses={422: {"description": "The epoch is too far ahead."}, **_UNKNOWN},
    )
    def close(kind: KindName, epoch: EpochNumber) -> Epoch:
        shared.kind(kind)
        shared.store.close(kind, epoch)
        if shared.rounds is not None:
            shared.rounds.closed(kind, epoch)
        return _epoch(epoch, shared.store.summary(kind, epoch))

    @router.post(
        "/epochs/{kind}/{epoch}/retire",
        tags=["administration"],
        summary="Drop what is kept of a closed epoch, once or again; it cannot be undone.",
        description="Sums, rows and the ids of its frames go. The epoch stays closed for ever: "
        "frames that come for it are still refused and counted.",
        responses={409: {"description": "The epoch is open."}, **_UNKNOWN},
    )
    def retire(kind: KindName, epoch: EpochNumber) -> Epoch:
        shared.kind(kind)
        try:
            shared.store.retire(kind, epoch)
        except EpochOpen:
            raise HTTPException(409, "The epoch is open: close it first.") from None
        return _epoch(epoch, shared.store.summary(kind, epoch))


def _add_model(router: APIRouter, shared: _Aggregator) -> None:
    @router.get(
        "/model",
        tags=["statistics"],
        summary="The current broadcast of the trainer; `roles.read_broadcast` reads it.",
        responses={
            200: {"content": {MODEL_TYPE: {"schema": {"type": "string", "format": "binary"}}}},
            404: {"description": "There is no model yet."},
            **UNAVAILABLE,
        },
        response_class=Response,
    )
    def model() -> Response:
        notice = shared.board.read()
        if notice is None:
            raise HTTPException(404, "There is no model yet.")
        return Response(notice.content, media_type=MODEL_TYPE, headers={"ETag": notice.etag})


def _add_state(router: APIRouter, shared: _Aggregator) -> None:
    @router.get(
        "/epochs/{kind}/{epoch}",
        tags=["state"],
        summary="One epoch in numbers, open or closed; its sums are not among them.",
        responses=_UNKNOWN,
    )
    def epoch_state(kind: KindName, epoch: EpochNumber) -> Epoch:
        shared.kind(kind)
        return _epoch(epoch, shared.store.summary(kind, epoch))

    @router.get(
        "/conservation",
        tags=["state"],
        summary="What became of every frame that was accepted.",
        responses=UNAVAILABLE,
    )
    def conservation() -> Account:
        return _account(shared.store.conservation())

    @router.get(
        "/state", tags=["state"], summary="The state of the collection.", responses=UNAVAILABLE
    )
    def state() -> CollectionState:
        readiness = shared.readiness
        return CollectionState(
            durability=shared.durability.value,
            promise=shared.durability.promise,
            unkept=[one.text for one in readiness.unkept],
            lacks=list(readiness.lacks),
            partitions=shared.store.layout.partitions,
            waiting=shared.store.waiting(),
            kinds=[_kind_state(shared.store, kind) for kind in shared.store.kinds.values()],
        )


def _kind_state(store: EpochStore, kind: Kind) -> KindState:
    """Describe a kind and its epochs in numbers; sums are not among them."""
    epochs = [_epoch(epoch, store.summary(kind.name, epoch)) for epoch in store.epochs(kind.name)]
    return KindState(
        kind=kind.name,
        reduction=kind.reduction.value,
        cells=kind.cells,
        columns=[name for name, _ in kind.columns],
        epochs=epochs,
    )


def _epoch(epoch: int, summary: EpochSummary) -> Epoch:
    return Epoch(epoch=epoch, **asdict(summary))


def _account(found: Conservation) -> Account:
    return Account(**asdict(found), missing=found.missing, is_conserved=found.is_conserved)


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content
