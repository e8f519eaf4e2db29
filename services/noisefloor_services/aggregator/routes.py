"""The routes of the aggregator for one collection."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, HTTPException, Response

from noisefloor.errors import BadParameter, EpochOpen
from noisefloor.roles import BatchTerms, EpochSummary
from noisefloor.wire import Kind, Reduction, messages
from noisefloor_services.aggregator.state import AggregatorState, Alarm
from noisefloor_services.http import FRAME_TYPE, JSON, UNAVAILABLE, EpochNumber, KindName
from noisefloor_services.store import MODEL_TYPE
from noisefloor_services.streams import Conservation, EpochStore

_UNKNOWN: dict[int | str, dict[str, Any]] = {
    404: {"description": "There is no such kind, or nothing is kept of this epoch."},
    **UNAVAILABLE,
}


def add_routes(router: APIRouter, shared: AggregatorState) -> None:
    """Add every route of a collection."""
    for part in (_add_statistics, _add_closing, _add_state, _add_model):
        part(router, shared)


def _add_statistics(router: APIRouter, shared: AggregatorState) -> None:
    @router.get(
        "/statistics/{kind}/{epoch}",
        tags=["statistics"],
        summary="The sums of a closed epoch, or the rows that it collected.",
        description="With the parameters in force: mechanism, epsilon, delta, neighbours, "
        "sensitivity, rows and threshold; of collected rows they are in the metadata of the "
        "Arrow schema, as `batch_parameters`. The same bytes at every call.",
        response_model=messages.EpochStatistics,
        responses={
            200: {"content": {FRAME_TYPE: {"schema": {"type": "string", "format": "binary"}}}},
            409: {
                "description": "The epoch is open, or has fewer reports than the minimum "
                "(`batch-too-small`): then nothing is ever released of it."
            },
            **_UNKNOWN,
        },
    )
    def statistics(kind: KindName, epoch: EpochNumber) -> Response:
        is_collected = shared.kind(kind).reduction is Reduction.COLLECT
        try:
            content = shared.store.answer(kind, epoch)
        except BadParameter:
            raise HTTPException(404, "Nothing is kept of this epoch.") from None
        return Response(content, media_type=FRAME_TYPE if is_collected else JSON)


def _add_closing(router: APIRouter, shared: AggregatorState) -> None:
    @router.post(
        "/epochs/{kind}/{epoch}/close",
        tags=["administration"],
        summary="Close an epoch, once or again; every frame that was answered with 202 counts.",
        description="From now on no ad server takes a frame of the epoch. Once the frames that "
        "were taken before are counted, its sums are final. If that takes longer than some "
        "seconds the answer is 503: close it again. A training task takes its step "
        "soon afterwards, in the background.",
        responses={
            422: {"description": "The epoch is too far ahead."},
            **_UNKNOWN,
            503: {"description": "Not closed yet: repeat this after Retry-After seconds."},
        },
    )
    def close(kind: KindName, epoch: EpochNumber) -> messages.EpochStatus:
        shared.kind(kind)
        shared.store.close(kind, epoch)
        if shared.rounds is not None:
            shared.rounds.wake()
        return _epoch(shared.store, kind, epoch)

    @router.post(
        "/epochs/{kind}/{epoch}/retire",
        tags=["administration"],
        summary="Drop what is kept of a closed epoch, once or again; it cannot be undone.",
        description="Sums, rows and the ids of its frames go, soon afterwards from the disk as "
        "well. The epoch stays closed for ever: frames that come for it are still refused.",
        responses={
            409: {"description": "The epoch is open, or a round that was not trained on yet."},
            **_UNKNOWN,
        },
    )
    def retire(kind: KindName, epoch: EpochNumber) -> messages.EpochStatus:
        shared.kind(kind)
        if shared.rounds is not None and shared.rounds.awaits(kind, epoch):
            raise HTTPException(409, "The epoch is a round that was not trained on yet.")
        try:
            shared.retire(kind, epoch)
        except EpochOpen:
            raise HTTPException(409, "The epoch is open: close it first.") from None
        return _epoch(shared.store, kind, epoch)


def _add_model(router: APIRouter, shared: AggregatorState) -> None:
    @router.get(
        "/model",
        tags=["statistics"],
        summary="The current broadcast to devices, in the format of the task.",
        responses={
            200: {"content": {MODEL_TYPE: {"schema": {"type": "string", "format": "binary"}}}},
            404: {"description": "There is no model yet."},
            **UNAVAILABLE,
        },
        response_class=Response,
    )
    def model() -> Response:
        notice = shared.broadcast.read()
        if notice is None:
            raise HTTPException(404, "There is no model yet.")
        return Response(notice.content, media_type=MODEL_TYPE, headers={"ETag": notice.etag})


def _add_state(router: APIRouter, shared: AggregatorState) -> None:
    @router.get(
        "/epochs/{kind}/{epoch}",
        tags=["state"],
        summary="One epoch in numbers, open or closed; its sums are not among them.",
        responses=_UNKNOWN,
    )
    def epoch_state(kind: KindName, epoch: EpochNumber) -> messages.EpochStatus:
        shared.kind(kind)
        return _epoch(shared.store, kind, epoch)

    @router.get(
        "/conservation",
        tags=["state"],
        summary="What became of every frame that was accepted.",
        responses=UNAVAILABLE,
    )
    def conservation() -> messages.ConservationReport:
        found = shared.store.conservation()
        return _account(found, shared.alarms(found), shared.store.terms)

    @router.get(
        "/state", tags=["state"], summary="The state of the collection.", responses=UNAVAILABLE
    )
    def state() -> messages.CollectionState:
        readiness = shared.readiness
        return messages.CollectionState(
            durability=shared.durability.value,
            promise=shared.durability.promise,
            unkept=[one.text for one in readiness.unkept],
            lacks=list(readiness.lacks),
            partitions=shared.store.layout.partitions,
            waiting=shared.store.waiting(),
            kinds=[_kind_state(shared.store, kind) for kind in shared.store.kinds.values()],
        )


def _kind_state(store: EpochStore, kind: Kind) -> messages.KindState:
    """Describe a kind and its epochs in numbers; sums are not among them."""
    terms = store.terms
    epochs = [
        _described(epoch, store.summary(kind.name, epoch), terms)
        for epoch in store.epochs(kind.name)
    ]
    return messages.KindState(
        kind=kind.name,
        reduction=kind.reduction.value,
        cells=kind.cells,
        columns=[name for name, _ in kind.columns],
        epochs=epochs,
    )


def _epoch(store: EpochStore, kind: str, epoch: int) -> messages.EpochStatus:
    summary, is_kept = store.summary(kind, epoch), epoch in store.epochs(kind)
    return _described(epoch, summary, store.terms, is_kept=is_kept)


def _described(
    epoch: int, summary: EpochSummary, terms: BatchTerms, *, is_kept: bool = True
) -> messages.EpochStatus:
    """Describe an epoch: in whole minimums what its answer does not say, as late reports."""
    is_readable = summary.is_closed and is_kept and terms.has_enough(summary.rows)
    numbers = asdict(summary)
    is_closed = numbers.pop("is_closed")
    exact = ("frames", "rows") if is_readable else ()
    numbers = {
        name: number if name in exact else terms.coarse(number) for name, number in numbers.items()
    }
    return messages.EpochStatus(
        epoch=epoch,
        is_closed=is_closed,
        is_readable=is_readable,
        minimum=terms.minimum,
        **numbers,
    )


def _account(
    found: Conservation, alarms: Iterable[Alarm], terms: BatchTerms
) -> messages.ConservationReport:
    """Describe what became of frames: exactly, or a frame that is missing would not show."""
    return messages.ConservationReport(
        **asdict(found) | {"reports": terms.coarse(found.reports)},
        missing=found.missing,
        is_conserved=found.is_conserved,
        alarms=[one.text for one in alarms if one.text],
    )
