"""The append-only file is rewritten after retirement, so that raw frames do not stay on disk.

What is deleted in the server's memory stays in its append-only file until that is rewritten. A
rewrite is due after an epoch was retired or a collection dropped. It is noted in the store itself,
so that a service which is killed in between leaves it to the next one. A rewrite copies what the
server holds when it begins: one that was under way before does not count. The server forks for
it, hence the least time between two.
"""

import logging
import threading
import time
from collections.abc import Iterable

from redis.exceptions import NoPermissionError, RedisError, ResponseError

from noisefloor.errors import NoisefloorError
from noisefloor_services.metrics import MetricSample
from noisefloor_services.store.durability import server_info
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server

EVERY_S = 60.0
"""The least time between the beginnings of two rewrites."""

_LOOK_S = 1.0
_BUSY_S = 0.1
_DENIED = "The Redis server denies BGREWRITEAOF: have its log rewritten to remove retired frames."
_FAILED = "The Redis server failed to rewrite its log: frames of retired epochs are still in it."

_log = logging.getLogger(__name__)


class LogRewriting:
    """Has the log rewritten when it is due, until stopped.

    Args:
        server: Whose log it is; with the right to BGREWRITEAOF.
        layout: Of the first collection: one server has one log.
        every_s: The least time between the beginnings of two rewrites.
    """

    def __init__(self, server: Server, layout: Layout, *, every_s: float = EVERY_S) -> None:
        self._server = server
        self._key = layout.retention
        self._every_s = every_s
        self._begun_s = float("-inf")
        self._due = self._done = 0
        self._trouble = ""
        self._is_stopping = False
        self._wakes = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log-rewriting", daemon=True)

    def start(self) -> None:
        """Start to look whether a rewrite is due."""
        self._thread.start()

    def stop(self, timeout_s: float = 1.0) -> None:
        """Begin no further rewrite; it blocks. One that is under way is the server's own."""
        self._is_stopping = True
        self._wakes.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        self._server.close()

    def note(self) -> None:
        """Note that something was deleted which has to leave the disk as well."""
        self._server.call("HINCRBY", self._key, "due", 1)
        self._wakes.set()

    def trouble(self) -> str:
        """Return why deleted frames stay on disk, or nothing."""
        return self._trouble

    def samples(self) -> Iterable[MetricSample]:
        """Return how many deletions are not followed by a rewrite yet."""
        text = "Retirements after which the log on disk was not rewritten yet."
        yield MetricSample("log_rewrites_due", text, self._due - self._done)

    def turn(self) -> bool:
        """Take one step: begin a rewrite if one is due, wait for it, and say whether it is done.

        Returns:
            Whether nothing is due any more.
        """
        due, done = self._server.call("HMGET", self._key, "due", "done")
        self._due, self._done = int(due or 0), int(done or 0)
        if self._due <= self._done:
            self._trouble = ""
            return True
        facts = server_info(self._server, "persistence")
        if facts.get("aof_enabled") == "0":  # nothing is written, so nothing has to go
            self._finish()
            return True
        is_late = time.monotonic() >= self._begun_s + self._every_s
        if _is_busy(facts) or not is_late:
            return False
        self._begun_s = time.monotonic()
        try:
            is_done = self._rewritten(int(facts.get("aof_rewrites", 0)))
        except NoPermissionError:
            self._complain(_DENIED)
            return False
        if is_done:
            self._finish()
        else:
            self._complain(_FAILED)
        return is_done

    def _rewritten(self, before: int) -> bool:
        """Begin a rewrite and wait for it; a server that was restarted meanwhile did not do it."""
        try:
            self._server.call("BGREWRITEAOF")
        except NoPermissionError:
            raise
        except ResponseError:
            pass  # one began since we looked: it sees what was deleted before that
        while not self._is_stopping:
            facts = server_info(self._server, "persistence")
            if not _is_busy(facts):
                is_ok = facts.get("aof_last_bgrewrite_status") == "ok"
                return is_ok and int(facts.get("aof_rewrites", 0)) > before
            time.sleep(_BUSY_S)
        return False

    def _finish(self) -> None:
        self._server.call("HSET", self._key, "done", self._due)
        self._done, self._trouble = self._due, ""

    def _complain(self, text: str) -> None:
        if self._trouble != text and not self._is_stopping:
            _log.error("%s", text)
            self._trouble = text

    def _run(self) -> None:
        while not self._is_stopping:
            try:
                self.turn()
            except (NoisefloorError, RedisError):
                pass  # the store is away: readiness says so, and what is due stays noted
            self._wakes.wait(_LOOK_S)
            self._wakes.clear()


def _is_busy(facts: dict[str, str]) -> bool:
    return "1" in (facts.get("aof_rewrite_in_progress"), facts.get("aof_rewrite_scheduled"))
