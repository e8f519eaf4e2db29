"""The board: where the aggregator leaves the current broadcast, and ad servers find it.

It is one field of the settings in Redis, which is all that an ad server may read there.
"""

import hashlib
from dataclasses import dataclass

from noisefloor_services.streams.keys import Layout
from noisefloor_services.streams.server import Server

MODEL_TYPE = "application/octet-stream"
_FIELD = "broadcast"


@dataclass(frozen=True, slots=True)
class Notice:
    """A broadcast as bytes; ``roles.read_broadcast`` reads them."""

    content: bytes

    @property
    def etag(self) -> str:
        """The hash of the content, in the quotes of HTTP's ETag."""
        return f'"{hashlib.blake2b(self.content, digest_size=16).hexdigest()}"'


class Board:
    """Reads and writes the broadcast.

    Args:
        server: Where it is.
        layout: Whose settings hold it.
    """

    __slots__ = ("_key", "_server")

    def __init__(self, server: Server, layout: Layout) -> None:
        self._server = server
        self._key = layout.settings

    def read(self) -> Notice | None:
        """Return what is there."""
        (content,) = self._server.call("HMGET", self._key, _FIELD)
        return None if content is None else Notice(content)

    def start(self, content: bytes) -> None:
        """Leave the first broadcast, unless there is one."""
        self._server.call("HSETNX", self._key, _FIELD, content)

    def write(self, content: bytes) -> None:
        """Leave the next broadcast."""
        self._server.call("HSET", self._key, _FIELD, content)
