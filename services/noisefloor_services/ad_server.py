"""The ad server: catalogue and model out, ad requests and frames of reports in.

Device routes carry no identity: no token, no cookie, no address is looked at or kept. What is
answered with 202 is with Redis, on disk where that is the promise; the aggregator counts it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Request, Response
from redis import Redis
from redis.exceptions import RedisError

from noisefloor.errors import NoisefloorError, OutOfDomain
from noisefloor.randomness import Source
from noisefloor.roles.ad_server import IMPRESSIONS
from noisefloor.roles.catalogue import Ad, Catalogue
from noisefloor.roles.collection import Collection
from noisefloor.wire.frames import MOST_BYTES, decode_frame, seal
from noisefloor.wire.kinds import Kind
from noisefloor_services.ad_messages import AdRequest, NewTokens, Report, ShownAd, ShownAds
from noisefloor_services.apps import UNAVAILABLE, Parts, Service, rate_limit
from noisefloor_services.board import MODEL_TYPE, Board, Notice
from noisefloor_services.bodies import (
    described,
    described_frame,
    frame_body,
    json_body,
)
from noisefloor_services.metrics import Counter, Sample
from noisefloor_services.paths import EpochNumber, KindName
from noisefloor_services.readiness import Readiness
from noisefloor_services.registry import Registry
from noisefloor_services.rooms import Rooms
from noisefloor_services.security.credentials import Role
from noisefloor_services.security.policy import Open, Rule
from noisefloor_services.security.rate_limit import RateLimit
from noisefloor_services.security.report_tokens import ReportTokens
from noisefloor_services.security.secure_start import secure_source
from noisefloor_services.settings import Settings
from noisefloor_services.streams.durability import Durability
from noisefloor_services.streams.errors import StoreAway
from noisefloor_services.streams.ingest import Ingest
from noisefloor_services.streams.keys import Layout
from noisefloor_services.streams.server import Server

NAME = "ad-server"
TOKEN_HEADER = "Report-Token"
_MODEL_EVERY_S = 0.2
_TIMEOUT_S = 5.0
"""For Redis; short enough that a stop has time for requests that wait for it."""

RULES: Mapping[str, Rule] = {
    "GET /catalogue": Open.DEVICE,
    "GET /model": Open.DEVICE,
    "POST /requests": Open.DEVICE,
    "POST /frames": Open.DEVICE,
    "POST /reports/{kind}": Open.DEVICE,
    "POST /tokens/{epoch}": Role.ADMIN,
}
DESCRIPTION = """Hands out the catalogue and the model, answers ad requests, takes reports.

Devices send **frames**: an Arrow IPC stream of one record batch whose schema has four entries of
metadata (version, kind, epoch, batch id). There is exactly one way to write a frame; see
`noisefloor.wire.encode_frame`. A frame that was answered with 202 counts exactly once, however
often it is sent: after any other answer, or none, send the **same bytes** again. 429 and 503 say
when, by Retry-After. No request needs a token, and none is looked at.

Collections that are registered at the aggregator are served under `/collections/NAME`, each with
all routes and a description of its own: `/collections/NAME/openapi.json`.
"""


class _AdServer:
    """What the routes share."""

    def __init__(
        self, settings: Settings, collection: Collection, source: Source, readiness: Readiness
    ) -> None:
        self.settings = settings
        self.catalogue: Catalogue = collection.catalogue
        self.kinds: Mapping[str, Kind] = collection.kinds
        self.layout = Layout(collection.namespace, settings.partitions)
        self.source = source
        self.readiness = readiness
        self.server = Server(settings.redis_url, timeout_s=_TIMEOUT_S)
        self.board = Board(self.server, self.layout)
        self.ingest: Ingest | None = None
        self.notice: Notice | None = None
        self.reports = Counter("reports_accepted", "Reports that were taken.", "kind", self.kinds)
        self.frames = Counter("frames_accepted", "Frames that were taken.", "kind", self.kinds)
        # Redis itself keeps the tokens; an extra client since theirs is redis-py's own.
        self.token_client = Redis.from_url(settings.redis_url, socket_timeout=_TIMEOUT_S)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take frames, and look for a new model now and then."""
        self.ingest = Ingest(
            self.settings.redis_url,
            self.layout,
            high_water=self.settings.high_water,
            timeout_s=_TIMEOUT_S,
        )
        await self.ingest.start()
        await asyncio.to_thread(self.look)
        watch = asyncio.create_task(self._watch(), name="model")
        try:
            yield
        finally:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch
            await self.ingest.stop()
            self.server.close()
            self.token_client.close()

    def look(self) -> None:
        """Look for a new model; without Redis the last one stays."""
        with suppress(NoisefloorError, RedisError):
            self.notice = self.board.read()

    async def take(self, data: bytes, kind: Kind, batch_id: bytes | None, rows: int) -> None:
        """Hand a checked frame to Redis, or raise and promise nothing."""
        if self.ingest is None or not self.readiness.is_promise_kept:
            raise StoreAway("it does not keep what is promised")
        await self.ingest.append(data, batch_id)
        self.frames.add(kind.name)
        self.reports.add(kind.name, rows)

    async def take_one(self, kind: Kind, epoch: int, columns: Mapping[str, Any]) -> None:
        """Hand one report to Redis, as a frame of one row."""
        data, batch_id = self.framed(kind, epoch, columns)
        await self.take(data, kind, batch_id, 1)

    def framed(self, kind: Kind, epoch: int, columns: Mapping[str, Any]) -> tuple[bytes, bytes]:
        """Write one report as a frame, and return its id as well; one row needs no order."""
        batch_id = self.source.words(2).tobytes()
        return seal(kind, epoch, kind.encode(columns), batch_id), batch_id

    async def admit(self, token: str | None, epoch: int, batch_id: bytes) -> None:
        """Spend a one-use token where reports need one."""
        if not self.settings.report_tokens:
            return
        tokens = self.tokens(epoch)
        if token is None or not await asyncio.to_thread(tokens.spend, token, batch_id):
            raise HTTPException(403, f"Reports take a one-use token here: header {TOKEN_HEADER}.")

    def tokens(self, epoch: int) -> ReportTokens:
        """Return the one-use tokens of an epoch."""
        return ReportTokens(self.token_client, epoch, namespace=self.layout.namespace)

    def samples(self) -> Iterable[Sample]:
        """Return what was taken and what waits."""
        yield from self.frames.samples()
        yield from self.reports.samples()
        if self.ingest is not None:
            text = "Requests that wait for the next micro-batch."
            yield Sample("ingest_waiting", text, self.ingest.waiting)
            text = "Frames that wait in the streams, when last looked at."
            yield Sample("stream_length", text, sum(self.ingest.lengths))

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_MODEL_EVERY_S)
            await asyncio.to_thread(self.look)


def create(
    settings: Settings,
    collection: Collection,
    *,
    environment: Mapping[str, str] | None = None,
    source: Source | None = None,
) -> Service:
    """Make the ad server, with rooms for collections that are registered beside its own.

    Args:
        settings: What it was told.
        collection: Catalogue and kinds.
        environment: As the process got it; a seed in it is refused.
        source: Nothing, or a SecureSource.
    """
    drawn = secure_source(environment or {}, settings, source)
    rate = rate_limit(settings)
    registry = Registry(
        Server(settings.redis_url, timeout_s=5.0),
        Layout(collection.namespace, settings.partitions),
    )

    def room(other: Collection) -> Service:
        return _service(settings, other, drawn, rate=rate)

    rooms = Rooms(registry, room, is_eager=False)
    return _service(settings, collection, drawn, rate=rate, rooms=rooms)


def _service(
    settings: Settings,
    collection: Collection,
    source: Source,
    *,
    rate: RateLimit,
    rooms: Rooms | None = None,
) -> Service:
    readiness = Readiness(settings.redis_url, Durability(settings.durability))
    shared = _AdServer(settings, collection, source, readiness)

    def add(router: APIRouter) -> None:
        for part in (_add_frames, _add_reports, _add_requests, _add_downloads, _add_tokens):
            part(router, shared)

    reports = {f"/reports/{name}": ("/reports/{kind}", {"kind": name}) for name in shared.kinds}
    direct: dict[str, tuple[str, dict[str, str]]] = {"/frames": ("/frames", {}), **reports}
    unlogged = (*direct, "/requests")
    parts = Parts(NAME, DESCRIPTION, add, RULES, shared.running, shared.samples, unlogged, direct)
    return Service(parts, settings, readiness, rooms=rooms, rate=rate)


_ACCEPTED = Response(status_code=202)  # it holds nothing of a request: one serves all
_UNCHANGED: dict[int | str, dict[str, Any]] = {
    304: {"description": "The device has this one already (If-None-Match)."}
}
_TAKEN: dict[int | str, dict[str, Any]] = {
    202: {"description": "Taken: it counts, once. The answer is empty."},
    403: {"description": "Reports take a one-use token here, and none that admits this came."},
    429: {"description": "Too much waits: send the same again after Retry-After seconds."},
    **UNAVAILABLE,
}
_TOKEN = {
    "parameters": [
        {
            "name": TOKEN_HEADER,
            "in": "header",
            "required": False,
            "description": "A one-use token of the epoch, where reports take one.",
            "schema": {"type": "string"},
        }
    ]
}


def _add_downloads(router: APIRouter, shared: _AdServer) -> None:
    @router.get(
        "/catalogue",
        tags=["device"],
        summary="The catalogue of ads; a place in it is the index that reports carry.",
        responses=_UNCHANGED,
    )
    async def catalogue(if_none_match: Annotated[str | None, Header()] = None) -> Response:
        made = shared.catalogue
        return _tagged(made.content, made.etag, if_none_match, "application/json")

    @router.get(
        "/model",
        tags=["device"],
        summary="The current broadcast of the trainer; `roles.read_broadcast` reads it.",
        responses={
            200: {"content": {MODEL_TYPE: {"schema": {"type": "string", "format": "binary"}}}},
            **_UNCHANGED,
            404: {"description": "There is no model yet."},
        },
        response_class=Response,
    )
    async def model(if_none_match: Annotated[str | None, Header()] = None) -> Response:
        notice = shared.notice
        if notice is None:
            raise HTTPException(404, "There is no model yet.")
        return _tagged(notice.content, notice.etag, if_none_match, MODEL_TYPE)


def _add_requests(router: APIRouter, shared: _AdServer) -> None:
    @router.post(
        "/requests",
        tags=["device"],
        summary="Ask for one ad by its index (counted as an impression), or for a slate.",
        description="Of a request for one ad its index is counted, and nothing else; sent again, "
        "it counts again. Of a slate nothing is counted: which ad was shown is the device's to "
        "report, protected.",
        openapi_extra=described(AdRequest),
        responses={429: _TAKEN[429], **UNAVAILABLE},
    )
    async def requests(request: Request) -> ShownAds:
        asked = await json_body(request, AdRequest)
        if (asked.index is None) == (asked.slate is None):
            raise HTTPException(422, "Expected either index or slate.")
        indices = [asked.index] if asked.index is not None else asked.slate or []
        if max(indices) >= len(shared.catalogue):
            raise HTTPException(422, f"Expected an index below {len(shared.catalogue)}.")
        if asked.index is not None:
            kind = shared.kinds[IMPRESSIONS]
            await shared.take_one(kind, asked.epoch, {kind.columns[0][0]: [asked.index]})
        ads = shared.catalogue.ads
        shown = [_shown(index, ads[index]) for index in indices]
        return ShownAds(catalogue_version=shared.catalogue.version, ads=shown)


def _add_frames(router: APIRouter, shared: _AdServer) -> None:
    most_bytes = min(shared.settings.body_bytes, MOST_BYTES)

    @router.post(
        "/frames",
        tags=["device"],
        status_code=202,
        summary="Send a frame of up to thousands of reports.",
        openapi_extra=described_frame() | _TOKEN,
        responses={400: {"description": "Not a frame; `field` and `rule` say why."}, **_TAKEN},
        response_class=Response,
    )
    async def frames(request: Request) -> Response:
        data = await frame_body(request)
        frame = decode_frame(data, shared.kinds, most_bytes=most_bytes)
        if shared.settings.report_tokens:
            token = request.headers.get(TOKEN_HEADER)
            await shared.admit(token, frame.epoch, frame.batch_id)
        await shared.take(data, frame.kind, frame.batch_id, frame.batch.num_rows)
        return _ACCEPTED


def _add_reports(router: APIRouter, shared: _AdServer) -> None:
    @router.post(
        "/reports/{kind}",
        tags=["device"],
        status_code=202,
        summary="Send one report as JSON, for people with curl; devices send frames.",
        description="The report has to be protected already: what is sent is what is counted. "
        "Sent again, it counts again.",
        openapi_extra=described(Report) | _TOKEN,
        responses={404: {"description": "There is no such kind."}, **_TAKEN},
        response_class=Response,
    )
    async def report(kind: KindName, request: Request) -> Response:
        known = shared.kinds.get(kind)
        if known is None:
            raise HTTPException(404, "There is no such kind.")
        told = await json_body(request, Report)
        try:
            columns = _columns(known, told.report)
            data, batch_id = shared.framed(known, told.epoch, columns)
        except (OutOfDomain, ValueError, TypeError, OverflowError):
            names = ", ".join(name for name, _ in known.columns)
            raise HTTPException(422, f"Not a report of this kind; its columns: {names}.") from None
        await shared.admit(request.headers.get(TOKEN_HEADER), told.epoch, batch_id)
        await shared.take(data, known, batch_id, 1)
        return _ACCEPTED


def _add_tokens(router: APIRouter, shared: _AdServer) -> None:
    @router.post(
        "/tokens/{epoch}",
        tags=["administration"],
        summary="Make one-use tokens, each of which admits one frame of an epoch.",
        responses={404: {"description": "Reports take no tokens here."}, **UNAVAILABLE},
    )
    def tokens(epoch: EpochNumber, wanted: NewTokens) -> list[str]:
        if not shared.settings.report_tokens:
            raise HTTPException(404, "Reports take no tokens here.")
        return shared.tokens(epoch).issue(wanted.count)


def _columns(kind: Kind, report: object) -> dict[str, list[object]]:
    """Return a report as columns of one row."""
    if isinstance(report, dict):
        return {str(name): [value] for name, value in report.items()}
    if len(kind.columns) != 1:
        raise OutOfDomain(f"Expected an object of the columns of {kind.name}.")
    return {kind.columns[0][0]: [report]}


def _shown(index: int, ad: Ad) -> ShownAd:
    return ShownAd(
        index=index, ad_id=ad.ad_id, topic=ad.topic, price_floor_micros=ad.price_floor_micros
    )


def _tagged(content: bytes, etag: str, held: str | None, media_type: str) -> Response:
    """Return the content, or 304 to whoever has it; ETags in a list are tried one by one."""
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    tags = {tag.strip().removeprefix("W/") for tag in (held or "").split(",")}
    if etag in tags or "*" in tags:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)
