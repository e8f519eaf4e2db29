"""Worker processes that are killed, paused, resumed and replaced; and a naive one that must fail.

The naive one adds and acknowledges in one atomic step, and checks nothing. It is wrong: it adds
whatever XACK returns, so that entries which were claimed by others, or sent twice, count twice. It
merges as many frames and makes as few calls as the exact one, so it also measures what exactness
costs.
"""

import hashlib
import logging
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from multiprocessing import get_context
from multiprocessing.process import BaseProcess

from redis.exceptions import NoScriptError

from noisefloor_services.chaos.plan import KINDS
from noisefloor_services.store import GROUP, Command, Layout, Script, Server, StoreAway
from noisefloor_services.streams import EpochStore, FrameGroup, Worker

_TEXT = """
-- KEYS: 1 frames  2 counters  3 epochs  4 epoch  5 cells or rows
-- ARGV: 1 group  2 epoch  3 reduction  4 rows  5 how many entries; entries; additions
local count = tonumber(ARGV[5])
local entries = {unpack(ARGV, 6, 5 + count)}
for at = 6 + count, #ARGV, ARGV[3] == "sum" and 2 or 1 do
  if ARGV[3] == "sum" then
    local from, delta = tonumber(ARGV[at]), ARGV[at + 1]
    local old = redis.call("GETRANGE", KEYS[5], from, from + #delta - 1)
    redis.call("SETRANGE", KEYS[5], from, added(old, delta))
  else
    redis.call("RPUSH", KEYS[5], ARGV[at])
  end
end
redis.call("HINCRBY", KEYS[4], "rows", ARGV[4])
redis.call("SADD", KEYS[3], ARGV[2])
redis.call("HINCRBY", KEYS[2], "counted", count)
redis.call("XACK", KEYS[1], ARGV[1], unpack(entries))
redis.call("XDEL", KEYS[1], unpack(entries))
return ""
"""


def _script() -> Script:
    cells = files("noisefloor_services.store") / "lua" / "cells.lua"
    text = cells.read_text(encoding="utf-8") + _TEXT
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


NAIVE = _script()


def load_naive_script(server: Server) -> None:
    """Make the script known to a server; one that is restarted forgets it."""
    server.call("SCRIPT", "LOAD", NAIVE.text)


class NaiveGroup(FrameGroup):
    """Frames that are added unseen."""

    __slots__ = ()

    def command(self) -> Command:
        """Return the call that adds everything."""
        kind, epoch, keys = self.kind.name, self.epoch, self.keys
        names = [
            keys.frames,
            keys.counters,
            keys.epochs(kind),
            keys.epoch(kind, epoch),
            keys.kept(kind, epoch),
        ]
        rows = sum(entry.frame.batch.num_rows for entry in self.entries)
        fixed = (GROUP, epoch, self.kind.reduction.value, rows, len(self.entries))
        entry_ids = (entry.delivery.entry_id for entry in self.entries)
        return NAIVE.command(names, [*fixed, *entry_ids, *self._payload()])


ABANDONED_S = 0.4
"""When work is taken over."""

_PAUSE_S = 3 * ABANDONED_S
_END_S = 20.0


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """Where a worker serves, and how."""

    url: str
    layout: Layout
    is_naive: bool = False


def run_worker(post: WorkerSpec) -> None:
    """Work until the signal to stop; the body of a worker process."""
    logging.disable(logging.WARNING)  # that Redis is away is no news here
    server = Server(post.url)
    group: type[FrameGroup] = NaiveGroup if post.is_naive else FrameGroup
    store = EpochStore(server, post.layout, KINDS)
    worker = Worker(store, batch=16, abandoned_s=ABANDONED_S, group=group)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    while True:
        try:
            worker.run()
            return
        except NoScriptError:  # the naive script is new to it, or it was restarted
            with suppress(StoreAway):
                load_naive_script(server)


class WorkerPool:
    """A number of workers that is kept up.

    Args:
        post: Where they serve.
        size: How many.
    """

    def __init__(self, post: WorkerSpec, size: int) -> None:
        # A process that is forked from a small server of its own starts in milliseconds.
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload([__name__])
        self._post = post
        self._running: list[BaseProcess] = [self._hired() for _ in range(size)]
        self._paused: list[tuple[float, BaseProcess]] = []
        self._server = Server(post.url)
        self.kills = 0
        self.zombies = 0
        self.pending_at_faults = 0

    def kill(self, pick: int) -> None:
        """Kill a worker where it stands, and hire another."""
        victim = self._running.pop(pick % len(self._running))
        self._signal(victim, signal.SIGKILL)
        victim.join(_END_S)
        self.pending_at_faults += pending_frames(self._server, self._post.layout, victim.pid)
        self._running.append(self._hired())
        self.kills += 1

    def pause(self, pick: int) -> None:
        """Stop a worker until what it holds was taken over; another is hired for it."""
        victim = self._running.pop(pick % len(self._running))
        self._signal(victim, signal.SIGSTOP)
        self.pending_at_faults += pending_frames(self._server, self._post.layout, victim.pid)
        self._paused.append((time.monotonic() + _PAUSE_S, victim))
        self._running.append(self._hired())

    def resume(self, *, all_of_them: bool = False) -> None:
        """Resume workers whose pause is over; they finish their old batch, and then leave."""
        now, self._paused, due = time.monotonic(), [], self._paused
        for until, worker in due:
            if until > now and not all_of_them:
                self._paused.append((until, worker))
                continue
            time.sleep(max(0.0, until - now))
            self._signal(worker, signal.SIGCONT)
            self._running.append(worker)
            self.zombies += 1
            # One more than there should be: the oldest goes home.
            self._signal(self._running[0], signal.SIGTERM)
            self._running.pop(0).join(_END_S)

    def dismiss(self) -> None:
        """End all workers, paused ones too, and wait until they are gone."""
        workers = self._running + [worker for _, worker in self._paused]
        for worker in workers:
            self._signal(worker, signal.SIGCONT)
            self._signal(worker, signal.SIGTERM)
        for worker in workers:
            worker.join(_END_S)
            if worker.is_alive():
                worker.kill()
                worker.join(_END_S)
        self._running, self._paused = [], []
        self._server.close()

    def _hired(self) -> BaseProcess:
        worker = self._context.Process(target=run_worker, args=(self._post,), daemon=True)
        worker.start()
        return worker

    @staticmethod
    def _signal(worker: BaseProcess, number: signal.Signals) -> None:
        if worker.pid is not None and worker.is_alive():
            os.kill(worker.pid, number)


def pending_frames(server: Server, layout: Layout, pid: int | None) -> int:
    """Return how many frames are pending at a process; 0 while the server is away."""
    mine, count = f"{pid}-".encode(), 0
    try:
        for place in range(layout.partitions):
            _, _, _, consumers = server.call("XPENDING", layout.keys(place).frames, GROUP)
            count += sum(int(n) for name, n in consumers or () if name.startswith(mine))
    except StoreAway:
        return 0
    return count
