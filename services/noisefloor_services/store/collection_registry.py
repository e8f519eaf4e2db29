"""The collections beside the first: registered by name in Redis, for every service to find.

A name is used once. When a collection is dropped its name stays used up: with the same name again,
frames that were counted in the old collection would count in the new one.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum

from noisefloor.errors import BadParameter
from noisefloor.roles import CollectionConfig
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}", re.ASCII)
MOST = 64
"""Collections beside the first, at one time."""


class Registration(Enum):
    """What became of a registration."""

    NEW = "new"
    SAME = "same"
    OTHER = "other"  # the name stands for another collection
    GONE = "gone"  # the name was used, and is used up
    FULL = "full"


class CollectionRegistry:
    """Names and documents of collections.

    Args:
        server: Where they are.
        layout: Of the first collection.
        default_minimum: Of a collection that was registered before collections had a minimum.
    """

    __slots__ = ("_default_minimum", "_gone", "_key", "_root", "_server")

    def __init__(self, server: Server, layout: Layout, *, default_minimum: int = 1) -> None:
        self._default_minimum = default_minimum
        self._server = server
        self._root = layout.namespace
        self._key = layout.collections
        self._gone = layout.used_names

    def add(self, name: str, collection: CollectionConfig) -> Registration:
        """Register a collection, once or again; its namespace follows from its name."""
        content = self.placed(name, collection).at_least(1, self._default_minimum).content
        if self._find([name])[0] is None and len(self.names()) >= MOST:
            return Registration.FULL
        is_new, is_gone, stored = self._server.atomically(
            [
                ("HSETNX", self._key, name, content),
                ("SISMEMBER", self._gone, name),
                ("HGET", self._key, name),
            ]
        )
        if is_gone:
            self._server.call("HDEL", self._key, name)
            return Registration.GONE
        return (
            Registration.NEW
            if is_new
            else Registration.SAME
            if self._read(name, stored).content == content
            else Registration.OTHER
        )

    def placed(self, name: str, collection: CollectionConfig) -> CollectionConfig:
        """Return a collection in the namespace that belongs to its name."""
        _check(name)
        return replace(collection, name=name, namespace=f"{self._root}.{name}")

    def find(self, name: str) -> CollectionConfig | None:
        """Return a collection by its name, if there is one."""
        (stored,) = self._find([name])
        return self._read(name, stored) if stored else None

    def are_there(self, names: Sequence[str]) -> list[bool]:
        """Return for each name whether there is such a collection."""
        return [stored is not None for stored in self._find(names)]

    def names(self) -> list[str]:
        """Return the names of all collections."""
        return sorted(name.decode() for name in self._server.call("HKEYS", self._key))

    def drop(self, name: str) -> None:
        """Take a collection away for ever; what it collected is dropped by its store."""
        _check(name)
        self._server.atomically([("SADD", self._gone, name), ("HDEL", self._key, name)])

    def _read(self, name: str, stored: bytes) -> CollectionConfig:
        """Read a document, of this format or an older one."""
        return self.placed(name, CollectionConfig.parse(stored)).at_least(1, self._default_minimum)

    def _find(self, names: Sequence[str]) -> list[bytes | None]:
        if not names:
            return []
        stored: list[bytes | None] = self._server.call("HMGET", self._key, *map(_check, names))
        return stored


def _check(name: str) -> str:
    if not NAME.fullmatch(name):
        raise BadParameter("collection", "<name>", f"to match {NAME.pattern}")
    return name
