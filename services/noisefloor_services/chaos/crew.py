"""Worker processes that are killed, stopped, woken up and replaced."""

import logging
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.process import BaseProcess

from redis.exceptions import NoScriptError

from noisefloor_services.chaos.naive import NaiveGroup, load
from noisefloor_services.chaos.traffic import KINDS
from noisefloor_services.streams.batch import Group
from noisefloor_services.streams.errors import StoreAway
from noisefloor_services.streams.keys import GROUP, Layout
from noisefloor_services.streams.server import Server
from noisefloor_services.streams.store import EpochStore
from noisefloor_services.streams.worker import Worker

ABANDONED_S = 0.4
"""When work is taken over."""

_ASLEEP_S = 3 * ABANDONED_S
_END_S = 20.0


@dataclass(frozen=True, slots=True)
class Post:
    """Where a worker serves, and how."""

    url: str
    layout: Layout
    is_naive: bool = False


def serve(post: Post) -> None:
    """Work until the signal to stop; the body of a worker process."""
    logging.disable(logging.WARNING)  # that Redis is away is no news here
    server = Server(post.url)
    group: type[Group] = NaiveGroup if post.is_naive else Group
    store = EpochStore(server, post.layout, KINDS)
    worker = Worker(store, batch=16, abandoned_s=ABANDONED_S, group=group)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    while True:
        try:
            worker.run()
            return
        except NoScriptError:  # the naive script is new to it, or it was restarted
            with suppress(StoreAway):
                load(server)


class Crew:
    """A number of workers that is kept up.

    Args:
        post: Where they serve.
        size: How many.
    """

    def __init__(self, post: Post, size: int) -> None:
        # A process that is forked from a small server of its own starts in milliseconds.
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload([__name__])
        self._post = post
        self._awake: list[BaseProcess] = [self._hired() for _ in range(size)]
        self._asleep: list[tuple[float, BaseProcess]] = []
        self._server = Server(post.url)
        self.kills = 0
        self.zombies = 0
        self.held_frames = 0

    def kill(self, pick: int) -> None:
        """Kill a worker where it stands, and hire another."""
        victim = self._awake.pop(pick % len(self._awake))
        self._signal(victim, signal.SIGKILL)
        victim.join(_END_S)
        self.held_frames += held_by(self._server, self._post.layout, victim.pid)
        self._awake.append(self._hired())
        self.kills += 1

    def put_to_sleep(self, pick: int) -> None:
        """Stop a worker until what it holds was taken over; another is hired for it."""
        victim = self._awake.pop(pick % len(self._awake))
        self._signal(victim, signal.SIGSTOP)
        self.held_frames += held_by(self._server, self._post.layout, victim.pid)
        self._asleep.append((time.monotonic() + _ASLEEP_S, victim))
        self._awake.append(self._hired())

    def wake_up(self, *, all_of_them: bool = False) -> None:
        """Wake up those who slept long enough; they go on with what they held, and then leave."""
        now, self._asleep, due = time.monotonic(), [], self._asleep
        for until, sleeper in due:
            if until > now and not all_of_them:
                self._asleep.append((until, sleeper))
                continue
            time.sleep(max(0.0, until - now))
            self._signal(sleeper, signal.SIGCONT)
            self._awake.append(sleeper)
            self.zombies += 1
            # One more than there should be: the oldest goes home.
            self._signal(self._awake[0], signal.SIGTERM)
            self._awake.pop(0).join(_END_S)

    def dismiss(self) -> None:
        """End everybody, those who sleep too, and wait until they are gone."""
        everybody = self._awake + [sleeper for _, sleeper in self._asleep]
        for worker in everybody:
            self._signal(worker, signal.SIGCONT)
            self._signal(worker, signal.SIGTERM)
        for worker in everybody:
            worker.join(_END_S)
            if worker.is_alive():
                worker.kill()
                worker.join(_END_S)
        self._awake, self._asleep = [], []
        self._server.close()

    def _hired(self) -> BaseProcess:
        worker = self._context.Process(target=serve, args=(self._post,), daemon=True)
        worker.start()
        return worker

    @staticmethod
    def _signal(worker: BaseProcess, number: signal.Signals) -> None:
        if worker.pid is not None and worker.is_alive():
            os.kill(worker.pid, number)


def held_by(server: Server, layout: Layout, pid: int | None) -> int:
    """Return how many frames are handed out to a process; none can be told without a server."""
    mine, held = f"{pid}-".encode(), 0
    try:
        for place in range(layout.partitions):
            _, _, _, consumers = server.call("XPENDING", layout.keys(place).frames, GROUP)
            held += sum(int(n) for name, n in consumers or () if name.startswith(mine))
    except StoreAway:
        return 0
    return held
