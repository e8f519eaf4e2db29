"""A connection to Redis or Valkey that answers with plain values and our own errors.

Replies are those of RESP2, not converted. redis-py's own retries are off: a caller that gets
StoreAway decides itself whether to repeat the call, which every script here allows.
"""

from collections.abc import Sequence
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,
    MasterDownError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TimeoutError,
)
from redis.retry import Retry

from noisefloor.errors import BadParameter
from noisefloor_services.store import scripts
from noisefloor_services.store.errors import BadStore, StoreAway, StreamFull
from noisefloor_services.store.scripts import Command

TIMEOUT_S = 10.0
_BLOCKED = ("MISCONF", "NOREPLICAS", "UNKILLABLE", "BUSY ")
_NOT_PREPARED = ("NOGROUP", "NOWINDOW")


class Server:
    """The server behind an address; safe to share between threads, not between processes.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``; it may hold a password and is never shown.
        timeout_s: For an answer. A server that hangs counts as one that is away.
    """

    __slots__ = ("_client",)

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        options: dict[str, Any] = {
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),
            "socket_timeout": timeout_s,
            "socket_connect_timeout": min(timeout_s, 2.0),
        }
        try:
            self._client: Any = redis.Redis.from_url(url, **options)
        except ValueError:
            raise BadParameter(
                "url", "<hidden>", "to start with redis://, rediss:// or unix://"
            ) from None
        # redis-py converts replies of some commands, such as XPENDING, into other types.
        self._client.response_callbacks.clear()

    def call(self, *command: scripts.Word) -> Any:
        """Run one command and return its reply (Any: what it is depends on the command)."""
        return self.all([command])[0]

    def all(self, commands: Sequence[Command]) -> list[Any]:
        """Run commands in one round trip, each on its own, and return their replies."""
        replies = self._send(commands, is_atomic=False)
        missing = [at for at, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if missing:
            self._send([("SCRIPT", "LOAD", one.text) for one in scripts.ALL], is_atomic=False)
            again = self._send([commands[at] for at in missing], is_atomic=False)
            for at, reply in zip(missing, again, strict=True):
                replies[at] = reply
        return _checked(replies)

    def atomically(self, commands: Sequence[Command]) -> list[Any]:
        """Run commands as one transaction, synced to disk once, and return their replies."""
        return _checked(self._send(commands, is_atomic=True))

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def _send(self, commands: Sequence[Command], *, is_atomic: bool) -> list[Any]:
        try:
            with self._client.pipeline(transaction=is_atomic) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                replies: list[Any] = pipeline.execute(raise_on_error=False)
                return replies
        except RedisError as error:
            raise translated_error(error) from None


def _checked(replies: list[Any]) -> list[Any]:
    for reply in replies:
        if isinstance(reply, Exception):
            raise translated_error(reply) from None
    return replies


def translated_error(error: Exception) -> Exception:
    """Return the error that a caller can act on; one that is a fault of ours stays as it is."""
    if isinstance(error, OutOfMemoryError):
        return StreamFull("Redis' memory")
    if isinstance(error, BusyLoadingError):
        return StoreAway("it is loading")
    if isinstance(error, TimeoutError):
        return StoreAway("no answer in time")
    if isinstance(error, AuthenticationError):
        return StoreAway("it refuses the password")
    if isinstance(error, ConnectionError):
        return StoreAway("no connection")
    if isinstance(error, ReadOnlyError | ClusterDownError | MasterDownError):
        return StoreAway("it cannot write")
    if isinstance(error, ResponseError) and str(error).startswith(_BLOCKED):
        return StoreAway("it cannot write")
    if isinstance(error, ResponseError) and str(error).startswith(_NOT_PREPARED):
        return BadStore("Redis has no groups or windows here: it lost its data, or has none yet.")
    return error
