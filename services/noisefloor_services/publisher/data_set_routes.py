"""Routes by which a data holder registers, uploads, lists and drops data sets."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Request, Response

from noisefloor.wire.messages import DataSetList, DataSetMessage
from noisefloor_services.http import UNAVAILABLE, Rule
from noisefloor_services.publisher.state import PublisherState
from noisefloor_services.security import Role

RULES: Mapping[str, Rule] = {
    "GET /data-sets": Role.ADMIN,
    "PUT /data-sets/{name}": Role.ADMIN,
    "PUT /data-sets/{name}/records/{version}": Role.ADMIN,
    "DELETE /data-sets/{name}": Role.ADMIN,
}

DataSetName = Annotated[str, Path(pattern=r"^[a-z0-9-]{1,64}$", description="Of a data set.")]
Version = Annotated[int, Path(ge=1, le=1 << 53)]

_ROWS_TYPE = "application/octet-stream"
_ROWS: dict[str, Any] = {  # Any: JSON
    "requestBody": {
        "required": True,
        "content": {_ROWS_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}
_MISSING: dict[int | str, dict[str, Any]] = {
    404: {"description": "There is no such data set."},
    **UNAVAILABLE,
}


def add_data_sets(router: APIRouter, shared: PublisherState) -> None:
    """Add the routes."""
    for add in (_add_listing, _add_registering, _add_uploading):
        add(router, shared)


def _add_listing(router: APIRouter, shared: PublisherState) -> None:
    @router.get(
        "/data-sets",
        tags=["data sets"],
        summary="The uploaded data sets, and whether experiments are taken.",
        responses=UNAVAILABLE,
    )
    def data_sets() -> DataSetList:
        shared.check_ledger()
        return DataSetList(data_sets=shared.uploads.names(), experiments=shared.has_experiments)


def _add_registering(router: APIRouter, shared: PublisherState) -> None:
    @router.put(
        "/data-sets/{name}",
        tags=["data sets"],
        summary="Register a data set: public schema, budget, purpose.",
        description="The same document again changes nothing. A name is used once, for ever.",
        status_code=204,
        responses={
            409: {"description": "The name is taken or used up, or it is an experiment."},
            **UNAVAILABLE,
        },
    )
    def register(name: DataSetName, message: DataSetMessage) -> Response:
        shared.check_ledger()
        shared.uploads.register(name, message)
        return Response(status_code=204)

    @router.delete(
        "/data-sets/{name}",
        tags=["data sets"],
        summary="Drop a data set's rows. Its name is used up; ledger and publications stay.",
        status_code=204,
        responses=_MISSING,
    )
    def drop(name: DataSetName) -> Response:
        if not shared.uploads.drop(name):
            raise HTTPException(404, "There is no such data set.")
        return Response(status_code=204)


def _add_uploading(router: APIRouter, shared: PublisherState) -> None:
    @router.put(
        "/data-sets/{name}/records/{version}",
        tags=["data sets"],
        summary="Replace the rows of a data set by a later version.",
        description="A row is one unsigned number for each column, in the order of the "
        "declaration: the place of its value among the categories or bins, in one byte, or in "
        "two (little-endian) where there are more than 256. A row of texts is the place of its "
        "class in two bytes, and each text after its length in four. "
        "`noisefloor.tables.encode_data` writes both. "
        "The same bytes under the same version change nothing.",
        status_code=204,
        openapi_extra=_ROWS,
        responses={
            409: {"description": "There is a later version, or there are too many rows."},
            **_MISSING,
        },
    )
    async def upload(name: DataSetName, version: Version, request: Request) -> Response:
        if request.headers.get("content-type") != _ROWS_TYPE:
            raise HTTPException(415, f"Expected a body of type {_ROWS_TYPE}.")
        await asyncio.to_thread(shared.uploads.upload, name, version, await request.body())
        return Response(status_code=204)
