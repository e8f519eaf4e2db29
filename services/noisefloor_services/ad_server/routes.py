"""The routes of the ad server."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated, Any

import pyarrow as pa
from fastapi import APIRouter, Header, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from noisefloor.errors import BusFull, NotFitted, OutOfDomain
from noisefloor.roles import IMPRESSIONS, Catalogue
from noisefloor.tables import MOST_LABELS
from noisefloor.tasks import MOST_QUERIES
from noisefloor.wire import Kind
from noisefloor.wire.messages import AdRequest, AdResponse, CatalogueAd, SingleReport, TokenRequest
from noisefloor_services import http
from noisefloor_services.ad_server.state import TOKEN_HEADER, AdServerState
from noisefloor_services.store import MODEL_TYPE

_MOST_KEPT = 4096
"""Ads whose impression and answer are kept ready."""

_ACCEPTED = Response(status_code=202)  # it holds nothing of a request: one serves all
_UNCHANGED: dict[int | str, dict[str, Any]] = {
    304: {"description": "The device has this one already (If-None-Match)."}
}
_NO_ADS: dict[int | str, dict[str, Any]] = {
    404: {"description": "The collection has no catalogue: no ads are shown."}
}
_EPOCH: dict[int | str, dict[str, Any]] = {
    409: {"description": "The epoch is too far ahead: keep the bytes, send the same later."},
    410: {"description": "The epoch is closed or full: this counts no more, drop it."},
}
_TAKEN: dict[int | str, dict[str, Any]] = {
    202: {"description": "Taken: it counts, once. The answer is empty."},
    403: {"description": "Reports take a one-use token here, and none that admits this came."},
    **_EPOCH,
    429: {"description": "Too much waits: send the same again after Retry-After seconds."},
    **http.UNAVAILABLE,
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


def add_routes(router: APIRouter, shared: AdServerState) -> None:
    """Add every route."""
    adders = (_add_frames, _add_reports, _add_requests, _add_predictions, _add_downloads)
    for part in (*adders, _add_tokens):
        part(router, shared)


def _add_downloads(router: APIRouter, shared: AdServerState) -> None:
    @router.get(
        "/catalogue",
        tags=["device"],
        summary="The catalogue of ads; a place in it is the index that reports carry.",
        responses={**_UNCHANGED, **_NO_ADS},
    )
    async def catalogue(if_none_match: Annotated[str | None, Header()] = None) -> Response:
        made = _catalogue(shared)
        return _tagged(made.content, made.etag, if_none_match, "application/json")

    @router.get(
        "/model",
        tags=["device"],
        summary="The current broadcast to devices, such as a model, in the format of the task.",
        responses={
            200: {"content": {MODEL_TYPE: {"schema": {"type": "string", "format": "binary"}}}},
            **_UNCHANGED,
            404: {"description": "There is no model yet."},
        },
        response_class=Response,
    )
    async def model(if_none_match: Annotated[str | None, Header()] = None) -> Response:
        broadcast = shared.broadcast_content
        if broadcast is None:
            raise HTTPException(404, "There is no model yet.")
        return _tagged(broadcast.content, broadcast.etag, if_none_match, MODEL_TYPE)


def _add_requests(router: APIRouter, shared: AdServerState) -> None:
    # Neither depends on the caller, and building them costs more than the rest of the request.
    @lru_cache(_MOST_KEPT)
    def impression(index: int) -> pa.RecordBatch:
        kind = shared.kinds[IMPRESSIONS]
        return kind.encode({kind.columns[0][0]: [index]})

    @lru_cache(_MOST_KEPT)
    def answer(index: int) -> Response:
        return _shown([index], _catalogue(shared))

    @router.post(
        "/requests",
        tags=["device"],
        summary="Ask for one ad by its index (counted as an impression), or for a slate; or send "
        "a frame of requests, which are counted as such.",
        description="JSON: of a request for one ad its index is counted, and nothing else; sent "
        "again, it counts again. Of a slate nothing is counted: which ad was shown is the "
        "device's to report, protected. A frame: of the kinds `ad-requests`, `ad-slates` and "
        "`bid-requests` of the collection; it counts once, and the answer is empty, since devices "
        "hold the catalogue.",
        openapi_extra=http.openapi_json_body(AdRequest, or_frame=True) | _TOKEN,
        response_model=AdResponse,
        responses={
            **_TAKEN,
            202: {"description": "A frame was taken: it counts, once. The answer is empty."},
            400: {"description": "Not a frame of requests; `field` and `rule` say why."},
            403: {"description": "Frames take a one-use token here, and none that admits this."},
            **_NO_ADS,
        },
    )
    async def requests(request: Request) -> Response:
        if http.is_frame(request):
            data = await request.body()
            await shared.take_frame(data, _token(request, shared), shared.requests)
            return _ACCEPTED
        ad_request = await http.json_body(request, AdRequest)
        if (ad_request.index is None) == (ad_request.slate is None):
            raise HTTPException(422, "Expected either index or slate.")
        indices = [ad_request.index] if ad_request.index is not None else ad_request.slate or []
        listed = _catalogue(shared)
        if max(indices) >= len(listed):
            raise HTTPException(422, f"Expected an index below {len(listed)}.")
        if ad_request.index is None:
            return _shown(indices, listed)
        await shared.take_one(
            shared.kinds[IMPRESSIONS], ad_request.epoch, impression(ad_request.index)
        )
        return answer(ad_request.index)


def _add_predictions(router: APIRouter, shared: AdServerState) -> None:
    @router.post(
        "/predictions",
        tags=["device"],
        summary=f"Query the fitted model: a frame of up to {MOST_QUERIES} protected queries.",
        description="The frame is of the query kind of the task. The answer is the place of a "
        "label for each of its rows, 0 or 1 where there are two labels, in their order; nothing "
        "is kept.",
        openapi_extra=http.openapi_frame_body(),
        response_model=list[Annotated[int, Field(ge=0, lt=MOST_LABELS)]],
        responses={
            400: {"description": "Not a frame of queries; `field` and `rule` say why."},
            404: {"description": "The collection has no task that answers queries."},
            409: {"description": "There is no fitted model yet."},
            503: {
                "description": "Too many queries wait: send the same after Retry-After seconds."
            },
        },
    )
    async def predictions(request: Request) -> JSONResponse:
        data = await http.frame_body(request)
        task = shared.task
        if task is None or task.query_kind is None:
            raise HTTPException(404, "The collection has no task that answers queries.")
        try:
            found = await shared.predictions.answers(task, shared.broadcast_content, data)
        except NotFitted:
            detail = "There is no fitted model yet: send the same later."
            raise HTTPException(409, detail, http.RETRY_LATER) from None
        except BusFull:
            raise HTTPException(
                503, "Too many queries wait: send the same again.", http.RETRY_AFTER
            ) from None
        return JSONResponse(found.astype(int).tolist())


def _add_frames(router: APIRouter, shared: AdServerState) -> None:
    @router.post(
        "/frames",
        tags=["device"],
        status_code=202,
        summary="Send a frame of up to thousands of reports.",
        description="Every kind of the collection is taken here; frames of requests as well.",
        openapi_extra=http.openapi_frame_body() | _TOKEN,
        responses={400: {"description": "Not a frame; `field` and `rule` say why."}, **_TAKEN},
        response_class=Response,
    )
    async def frames(request: Request) -> Response:
        data = await http.frame_body(request)
        await shared.take_frame(data, _token(request, shared), shared.kinds)
        return _ACCEPTED


def _add_reports(router: APIRouter, shared: AdServerState) -> None:
    @router.post(
        "/reports/{kind}",
        tags=["device"],
        status_code=202,
        summary="Send one report as JSON, for people with curl; devices send frames.",
        description="The report has to be protected already: what is sent is what is counted. "
        "Sent again, it counts again.",
        openapi_extra=http.openapi_json_body(SingleReport) | _TOKEN,
        responses={404: {"description": "There is no such kind."}, **_TAKEN},
        response_class=Response,
    )
    async def report(kind: http.KindName, request: Request) -> Response:
        known = shared.kinds.get(kind)
        if known is None:
            raise HTTPException(404, "There is no such kind.")
        single = await http.json_body(request, SingleReport)
        try:
            row = known.encode(_columns(known, single.report))
            data, frame = shared.framed(known, single.epoch, row)
        except (OutOfDomain, ValueError, TypeError, OverflowError):
            names = ", ".join(name for name, _ in known.columns)
            raise HTTPException(422, f"Not a report of this kind; its columns: {names}.") from None
        await shared.admit(request.headers.get(TOKEN_HEADER), single.epoch, frame.batch_id)
        await shared.take(data, frame)
        return _ACCEPTED


def _add_tokens(router: APIRouter, shared: AdServerState) -> None:
    @router.post(
        "/tokens/{epoch}",
        tags=["administration"],
        summary="Make one-use tokens, each of which admits one frame of an epoch.",
        responses={404: {"description": "Reports take no tokens here."}, **http.UNAVAILABLE},
    )
    def tokens(epoch: http.EpochNumber, requested: TokenRequest) -> list[str]:
        if not shared.settings.report_tokens:
            raise HTTPException(404, "Reports take no tokens here.")
        return shared.tokens(epoch).issue(requested.count)


def _token(request: Request, shared: AdServerState) -> str | None:
    """Return the one-use token of a request, if tokens are looked at."""
    return request.headers.get(TOKEN_HEADER) if shared.settings.report_tokens else None


def _columns(kind: Kind, report: object) -> dict[str, list[object]]:
    """Return a report as columns of one row."""
    if isinstance(report, dict):
        return {str(name): [value] for name, value in report.items()}
    if len(kind.columns) != 1:
        raise OutOfDomain(f"Expected an object of the columns of {kind.name}.")
    return {kind.columns[0][0]: [report]}


def _catalogue(shared: AdServerState) -> Catalogue:
    """Return the catalogue; a collection without ads has none."""
    if shared.catalogue is None:
        raise HTTPException(404, "This collection has no catalogue.")
    return shared.catalogue


def _shown(indices: Iterable[int], catalogue: Catalogue) -> Response:
    """Answer with some ads of the catalogue."""
    pairs = [(index, catalogue.ads[index]) for index in indices]
    shown = [
        CatalogueAd(
            index=index, ad_id=ad.ad_id, topic=ad.topic, price_floor_micros=ad.price_floor_micros
        )
        for index, ad in pairs
    ]
    found = AdResponse(catalogue_version=catalogue.version, ads=shown)
    return Response(found.model_dump_json(), media_type="application/json")


def _tagged(content: bytes, etag: str, known_tags: str | None, media_type: str) -> Response:
    """Return the content, or 304 if the client has it; If-None-Match may list several ETags."""
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    tags = {tag.strip().removeprefix("W/") for tag in (known_tags or "").split(",")}
    if etag in tags or "*" in tags:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)
