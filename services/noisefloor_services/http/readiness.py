"""Whether a service may be sent requests: its Redis answers and keeps what is promised.

A background task checks it, so that ``/readyz`` costs nothing. The result of the first probe holds
until Redis goes away; when it answers again it is probed again, since it may be another server.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from redis.exceptions import RedisError, ResponseError

from noisefloor.errors import NoisefloorError
from noisefloor_services import store

EVERY_S = 0.25
TIMEOUT_S = 2.0
_NEEDED = (
    store.StoreRequirement.COMMANDS,
    store.StoreRequirement.DISK,
    store.StoreRequirement.NO_EVICTION,
    store.StoreRequirement.WRITABLE,
)

Check = Callable[[], str]
"""Returns what is missing as a sentence, which repeats no input, or an empty text."""

_log = logging.getLogger(__name__)


class Readiness:
    """What a service lacks to serve, if anything.

    Args:
        url: Of the Redis server; it may hold a password and is never shown.
        durability: What an acknowledgement promises.
        checks: What else has to hold; each may block.
    """

    def __init__(
        self, url: str, durability: store.Durability, checks: Sequence[Check] = ()
    ) -> None:
        self._server = store.Server(url, timeout_s=TIMEOUT_S)
        self._durability = durability
        self._checks = tuple(checks)
        self._unkept: tuple[store.UnmetRequirement, ...] | None = None
        self._lacks: tuple[str, ...] = ("The service starts.",)
        self._is_stopping = False

    def add(self, check: Check) -> None:
        """Add something that has to hold as well."""
        self._checks = (*self._checks, check)

    @property
    def lacks(self) -> tuple[str, ...]:
        """Why nothing should be sent here; empty if all is well."""
        return ("The service stops.",) if self._is_stopping else self._lacks

    @property
    def unkept(self) -> tuple[store.UnmetRequirement, ...]:
        """The promises that the server cannot make."""
        return self._unkept or ()

    @property
    def is_promise_kept(self) -> bool:
        """Whether the server was probed and keeps what has to be kept."""
        if not self._unkept:
            return self._unkept is not None
        return not self._broken()

    @property
    def is_reachable(self) -> bool:
        """Whether the server answered the last check."""
        return self._unkept is not None

    @property
    def durability(self) -> store.Durability:
        """What an acknowledgement promises."""
        return self._durability

    def stop(self) -> None:
        """Become not ready, so that no more requests are sent."""
        self._is_stopping = True

    def look(self) -> None:
        """Ask the server and the checks; it blocks."""
        lacks: list[str] = []
        try:
            self._server.call("PING")
            if self._unkept is None:
                self._unkept = self._probed()
        except (NoisefloorError, RedisError):
            # The checks call the store as well: if it hangs they would hang too, and nothing would
            # be reported.
            self._unkept = None
            self._set_lacks(("The store does not answer.",))
            return
        for promise in dict.fromkeys(one.promise.value for one in self._broken()):
            lacks.append(f"The store does not keep a promise: {promise}.")
        lacks += filter(None, map(_check_result, self._checks))
        self._set_lacks(tuple(lacks))

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.to_thread(self.look)
            await asyncio.sleep(EVERY_S)

    def close(self) -> None:
        """Give the connection back."""
        self._server.close()

    def _set_lacks(self, lacks: tuple[str, ...]) -> None:
        if lacks != self._lacks:
            _log.warning("readiness: %s", " ".join(lacks) or "ready")
        self._lacks = lacks

    def _probed(self) -> tuple[store.UnmetRequirement, ...]:
        """Probe the server; without the right to do so, rely on the operator's own probe."""
        try:
            facts = store.probe_server(self._server, tries_waitaof=False)
        except store.StoreAway:
            raise
        except (NoisefloorError, ResponseError):
            return ()
        can_read_settings = facts.appendonly is not None
        unkept = tuple(
            one
            for one in facts.unkept(self._durability)
            # Without the right to read the server's settings nothing is known about DISK. The
            # operator's probe, made when the server was started, has checked it.
            if can_read_settings or one.promise is not store.StoreRequirement.DISK
        )
        for one in unkept:
            _log.warning("promise not kept: %s", one.text)
        return unkept

    def _broken(self) -> list[store.UnmetRequirement]:
        """Return the promises without which nothing is taken."""
        return [one for one in self.unkept if one.promise in _NEEDED]


def _check_result(check: Check) -> str:
    """Return the result of a check; one that raises must not stop the other checks."""
    try:
        return check()
    except (NoisefloorError, RedisError) as error:
        return f"A check cannot be made ({type(error).__name__})."
