"""Which connections a service holds: a bounded number, each for a bounded time.

Every connection takes a slot. When all are taken, the connection that has waited longest for its
client gives way, so that silent or slow clients cannot keep others out. Only if every connection
has a request that is being answered is a new one refused; some slots beyond the limit still
answer whether the service is alive and ready.
"""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from starlette.types import ASGIApp, Receive, Scope, Send

from noisefloor_services.http.refusals import refuse

HEALTH = ("/healthz", "/readyz")
RESERVE = 64
"""Connections beyond the limit, which answer about health only."""

_LOOKS = 4
"""How often within the shortest time it is looked who is late."""


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """What a connection may take.

    Attributes:
        head_bytes: Of a request line and its headers.
        head_time_s: Within which a head has to be there, from its first byte.
        idle_time_s: Without a request under way; also for a client to take 64 KiB of an answer.
        connections: At the same time.
    """

    head_bytes: int = 1 << 14
    head_time_s: float = 5.0
    idle_time_s: float = 10.0
    connections: int = 4096


class Peer(Protocol):
    """A connection, as far as it matters here."""

    def look(self, now_s: float) -> None:
        """End it if it is late."""

    def drop(self) -> None:
        """End it at once."""


class ConnectionLimits:
    """All connections of a service.

    Args:
        bounds: What each may take, and how many there may be.
    """

    __slots__ = ("_held", "_is_watched", "_waiting", "bounds")

    def __init__(self, bounds: ConnectionBounds) -> None:
        self.bounds = bounds
        self._held: set[Peer] = set()
        self._waiting: dict[Peer, None] = {}
        self._is_watched = False

    def __len__(self) -> int:
        return len(self._held)

    def admit(self, peer: Peer, app: ASGIApp) -> ASGIApp:
        """Take a connection, and return what answers its requests; it may be dropped at once."""
        self._watch()
        self._held.add(peer)
        if len(self._held) > self.bounds.connections:
            self._drop_oldest()
        self._waiting[peer] = None
        over = len(self._held) - self.bounds.connections
        if over > RESERVE:
            self.lose(peer)
            peer.drop()
        return app if over <= 0 else health_only(app)

    def wait(self, peer: Peer) -> None:
        """Note that a connection waits for its client from now on."""
        if peer in self._held:
            self._waiting[peer] = None

    def work(self, peer: Peer) -> None:
        """Note that a connection has a whole request, which is ours to answer."""
        self._waiting.pop(peer, None)

    def lose(self, peer: Peer) -> None:
        """Forget a connection that has ended."""
        self._held.discard(peer)
        self._waiting.pop(peer, None)

    def _drop_oldest(self) -> None:
        oldest = next(iter(self._waiting), None)
        if oldest is not None:
            self.lose(oldest)
            oldest.drop()

    def _watch(self) -> None:
        """Look at the connections now and then: one timer for all, as long as there are any."""
        if not self._is_watched:
            self._is_watched = True
            shortest_s = min(self.bounds.head_time_s, self.bounds.idle_time_s)
            asyncio.get_running_loop().call_later(shortest_s / _LOOKS, self._look)

    def _look(self) -> None:
        now_s = asyncio.get_running_loop().time()
        for peer in list(self._held):
            peer.look(now_s)
        self._is_watched = False
        if self._held:
            self._watch()


def health_only(app: ASGIApp) -> ASGIApp:
    """Return an application that says how the service is, and has no time for anything else."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET" and scope["path"] in HEALTH:
            await app(scope, receive, send)
            return
        detail = "Too many connections: send the same again."
        headers = {"Retry-After": "1", "Connection": "close"}
        await refuse(send, 503, "too-many-connections", detail, headers=headers)

    return answer
