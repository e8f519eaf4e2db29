"""Routes of the aggregator by which collections are registered, listed and dropped."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Request, Response
from pydantic import BaseModel

from noisefloor.errors import BadCollection, BadParameter
from noisefloor.roles import CollectionConfig
from noisefloor_services import store
from noisefloor_services.http import UNAVAILABLE, CollectionApps, Rule
from noisefloor_services.security import Role
from noisefloor_services.settings import Settings
from noisefloor_services.streams import EpochStore

RULES: dict[str, Rule] = {
    "GET /collections": Role.READ,
    "PUT /collections/{name}": Role.ADMIN,
    "DELETE /collections/{name}": Role.ADMIN,
}

Name = Annotated[str, Path(pattern=f"^{store.NAME.pattern}$", description="Of a collection.")]

_REFUSED = {
    store.Registration.OTHER: "The name stands for another collection.",
    store.Registration.GONE: "The name was used for a collection that was dropped.",
    store.Registration.FULL: f"There are {store.MOST} collections: drop one.",
}
_SMALLER = (
    "Ask for more, or start services for simulated people (NOISEFLOOR_EXPERIMENTS=on, "
    "noisefloor up --experiments), where any minimum is taken."
)
_DOCUMENT: dict[str, Any] = {  # Any: JSON
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "catalogue": {"type": "object"},
                        "kinds": {"type": "object"},
                        "course": {"type": "object"},
                        "first_epoch": {"type": "integer", "minimum": 0},
                        "format": {"type": "integer", "minimum": 1},
                        "minimum_batch": {"type": "integer", "minimum": 1},
                        "protections": {"type": "object"},
                    },
                }
            }
        },
    }
}


class CollectionList(BaseModel):
    """The collections beside the first, by name."""

    collections: list[str]


class CollectionRoutes:
    """What the routes share.

    Args:
        settings: From the environment.
        registry: Where collections are registered.
        collection_apps: Where they are served.
        log_rewriting: Removes from the disk what was dropped.
    """

    def __init__(
        self,
        settings: Settings,
        registry: store.CollectionRegistry,
        collection_apps: CollectionApps,
        log_rewriting: store.LogRewriting,
    ) -> None:
        self._settings = settings
        self._log_rewriting = log_rewriting
        self._registry = registry
        self._collection_apps = collection_apps

    def add(self, router: APIRouter) -> None:
        """Add the routes."""
        self._add_list(router)
        self._add_put(router)
        self._add_delete(router)

    def _add_list(self, router: APIRouter) -> None:
        @router.get(
            "/collections",
            tags=["administration"],
            summary="The collections that are served beside the first.",
            responses=UNAVAILABLE,
        )
        def collections() -> CollectionList:
            return CollectionList(collections=self._registry.names())

    def _add_put(self, router: APIRouter) -> None:
        @router.put(
            "/collections/{name}",
            tags=["administration"],
            summary="Register a collection: catalogue, kinds, training task.",
            description="The same document again changes nothing. A name is used once, for ever.",
            status_code=204,
            openapi_extra=_DOCUMENT,
            responses={
                409: {"description": "The name is taken, or there are too many collections."},
                422: {"description": "The document breaks a rule."},
                **UNAVAILABLE,
            },
        )
        async def put(name: Name, request: Request) -> Response:
            try:
                given = CollectionConfig.parse(await request.body())
                least, default = self._settings.least_minimum, self._settings.minimum_batch
                collection = given.at_least(least, default)
            except BadCollection as error:
                raise HTTPException(422, str(error)) from None
            except BadParameter as error:
                text = f"{error.name} has to be {error.rule}. {_SMALLER}"
                raise HTTPException(422, text) from None
            entry = await asyncio.to_thread(self._registry.add, name, collection)
            if entry in _REFUSED:
                raise HTTPException(409, _REFUSED[entry])
            await self._collection_apps.find(name)
            return Response(status_code=204)

    def _add_delete(self, router: APIRouter) -> None:
        @router.delete(
            "/collections/{name}",
            tags=["administration"],
            summary="Drop a collection and everything that it holds, for ever.",
            status_code=204,
            responses={404: {"description": "There is no such collection."}, **UNAVAILABLE},
        )
        async def delete(name: Name) -> Response:
            collection = await asyncio.to_thread(self._registry.find, name)
            if collection is None:
                raise HTTPException(404, "There is no such collection.")
            await asyncio.to_thread(self._registry.drop, name)
            await self._collection_apps.leave(name)
            await asyncio.to_thread(self._drop, collection)
            return Response(status_code=204)

    def _drop(self, collection: CollectionConfig) -> None:
        layout = store.Layout(collection.namespace, self._settings.partitions)
        server = store.Server(self._settings.redis_url)
        try:
            EpochStore.of(server, layout, collection).drop()
            self._log_rewriting.note()
        finally:
            server.close()
