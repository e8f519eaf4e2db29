"""The model broadcast: the aggregator writes the content for devices, ad servers read it.

It is one field of the settings hash in Redis, which the ad server's user has the right to read.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property

from noisefloor_services.store.keys import Layout
from noisefloor_services.store.scripts import REPLACE
from noisefloor_services.store.server import Server

MODEL_TYPE = "application/octet-stream"
_FIELD = "broadcast"


@dataclass(frozen=True)
class BroadcastContent:
    """The content for devices, as bytes that the training task reads."""

    content: bytes

    @cached_property
    def etag(self) -> str:
        """The hash of the content, in the quotes of HTTP's ETag."""
        return f'"{hashlib.blake2b(self.content, digest_size=16).hexdigest()}"'


class ModelBroadcast:
    """Reads and writes the content for devices.

    Args:
        server: Where it is.
        layout: Whose settings hold it.
    """

    __slots__ = ("_key", "_server")

    def __init__(self, server: Server, layout: Layout) -> None:
        self._server = server
        self._key = layout.settings

    def read(self) -> BroadcastContent | None:
        """Return what is there."""
        (content,) = self._server.call("HMGET", self._key, _FIELD)
        return None if content is None else BroadcastContent(content)

    def is_there(self) -> bool:
        """Whether there is anything."""
        return bool(self._server.call("HEXISTS", self._key, _FIELD))

    def started(self, content: bytes) -> bytes | None:
        """Store the first content, unless there is one, and return the current one."""
        self._server.call("HSETNX", self._key, _FIELD, content)
        notice = self.read()
        return None if notice is None else notice.content

    def replaced(self, content: bytes, following: bytes) -> bytes | None:
        """Replace a content by its successor, unless that was done, and return the current one."""
        done = self._server.call(*REPLACE.command([self._key], [_FIELD, content, following]))
        if done:
            return following
        notice = self.read()
        return None if notice is None else notice.content
