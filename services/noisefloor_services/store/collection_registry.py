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
from noisefloor_services.store import scripts
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
        # One step: a service that is killed between two would leave a used name registered.
        command = scripts.REGISTER.command([self._key, self._gone], [name, content, MOST])
        found, stored = self._server.call(*command)
        if found != b"kept":
            return Registration(found.decode())
        is_same = self._read(name, stored).content == content
        return Registration.SAME if is_same else Registration.OTHER

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
        listed = [name.decode() for name in self._server.call("HKEYS", self._key)]
        there = self.are_there(listed)
        return sorted(name for name, is_there in zip(listed, there, strict=True) if is_there)

    def drop(self, name: str) -> None:
        """Take a collection away for ever; what it collected is dropped by its store."""
        _check(name)
        self._server.atomically([("SADD", self._gone, name), ("HDEL", self._key, name)])

    def _read(self, name: str, stored: bytes) -> CollectionConfig:
        """Read a document, of this format or an older one."""
        return self.placed(name, CollectionConfig.parse(stored)).at_least(1, self._default_minimum)

    def _find(self, names: Sequence[str]) -> list[bytes | None]:
        """Return documents; of a used name there is none, whatever an older version left."""
        if not names:
            return []
        checked = [_check(name) for name in names]
        stored, used = self._server.atomically(
            [("HMGET", self._key, *checked), ("SMISMEMBER", self._gone, *checked)]
        )
        return [None if is_used else one for one, is_used in zip(stored, used, strict=True)]


def _check(name: str) -> str:
    if not NAME.fullmatch(name):
        raise BadParameter("collection", "<name>", f"to match {NAME.pattern}")
    return name
