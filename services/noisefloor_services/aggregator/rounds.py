"""Training rounds on the streams: the release of a closed round gives the next broadcast.

It does what the platform's training coordinator does, with its state in Redis. Closing a round
does not wait for it: a thread sees that the round is closed and takes the step. A step depends on
the round's release and the previous broadcast only. So if an aggregator crashes, the next one
repeats the step; if several take it at once, all compute the same bytes and the first is kept.
"""

import logging
import threading
import time
from collections.abc import Iterable

from redis.exceptions import RedisError

from noisefloor.errors import NoisefloorError
from noisefloor.roles import release_round
from noisefloor.tasks import TrainingTask, kinds_of_task
from noisefloor_services.metrics import MetricSample
from noisefloor_services.store import ModelBroadcast, StoreAway, StreamFull
from noisefloor_services.streams import EpochStore

EVERY_S = 0.25
TRIES = 3
"""Failures in a row after which the aggregator is not ready."""

_MOST_PAUSE_S = 10.0

_log = logging.getLogger(__name__)


class RoundTraining:
    """Trains on closed rounds until it is stopped.

    Args:
        store: Where the reports are; the round is their epoch.
        broadcast: Where the content for devices is stored.
        task: What is trained.
        restarts: Whether to start again on a Redis that lost everything.
    """

    def __init__(
        self,
        store: EpochStore,
        broadcast: ModelBroadcast,
        task: TrainingTask,
        *,
        restarts: bool = False,
    ) -> None:
        self._store = store
        self._broadcast = broadcast
        self._task = task
        self._restarts = restarts
        self._kinds = frozenset(kind.name for kind in kinds_of_task(task))
        self._content: bytes | None = None
        self._number = 0
        self._failures = 0
        self._step_s: float | None = None
        self._is_stopping = False
        self._wakes = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rounds", daemon=True)

    def start(self) -> None:
        """Start training."""
        self._thread.start()

    def stop(self, timeout_s: float = 1.0) -> bool:
        """Begin no further step, and say whether none is under way; it blocks.

        A step that is cut off by the end of the process is taken again by the next one.
        """
        self._is_stopping = True
        self._wakes.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def wake(self) -> None:
        """Look at once: a round may have been closed."""
        self._wakes.set()

    def awaits(self, kind: str, epoch: int) -> bool:
        """Whether an epoch is a round that was not trained on yet."""
        if kind not in self._kinds or epoch >= self._task.rounds:
            return False
        if self._task.kind(epoch).name != kind:
            return False
        notice = self._broadcast.read()
        return notice is None or epoch >= self._task.round_of(notice.content)

    def lacks(self) -> str:
        """Return why the broadcast is missing or out of date, or nothing."""
        if self._content is None:
            return "The first broadcast is not out."
        return "The last closed round was not trained on yet." if self._failures >= TRIES else ""

    def samples(self) -> Iterable[MetricSample]:
        """Return what this process knows of the task."""
        yield MetricSample("course_rounds", "Rounds of the training task.", self._task.rounds)
        text = "Failures in a row of the step after a closed round."
        yield MetricSample("course_step_failures", text, self._failures)
        if self._step_s is not None:
            text = "Seconds that the last training step took."
            yield MetricSample("course_step_seconds", text, self._step_s)

    def progress(self) -> Iterable[MetricSample]:
        """Return how far the task is, as long as its broadcast is there."""
        if self._broadcast.is_there():
            text = "The round that is open; the number of rounds once all are done."
            yield MetricSample("course_round_open", text, self._number)

    def _run(self) -> None:
        while not self._is_stopping:
            pause_s = EVERY_S
            try:
                if self._turn():
                    pause_s = 0.0
                self._failures = 0
            except (StoreAway, StreamFull, RedisError):
                pass  # readiness says so, and nothing is lost
            except Exception as error:  # a task may raise anything: the step is tried again
                pause_s = self._failed(error)
            if pause_s:
                self._wakes.wait(pause_s)
                self._wakes.clear()

    def _turn(self) -> bool:
        """Do what is due, if anything, and say so."""
        if self._content is None:
            self._hold(self._broadcast.started(self._task.first()))
            return True
        if self._restarts and not self._broadcast.is_there():
            self._content = None
            return True
        if not self._is_due():
            return False
        notice = self._broadcast.read()
        if notice is None:
            return False
        if notice.content == self._content:
            self._learn(self._content)
        else:  # another aggregator was quicker
            self._hold(notice.content)
        return True

    def _is_due(self) -> bool:
        if self._number >= self._task.rounds:
            return False
        return self._store.is_closed(self._task.kind(self._number).name, self._number)

    def _learn(self, content: bytes) -> None:
        """Take the step after the round that is closed."""
        start_s = time.monotonic()
        given = release_round(self._store, self._task.kind(self._number), self._number)
        following = self._task.next(self._number, content, given)
        self._hold(self._broadcast.replaced(content, following))
        self._step_s = time.monotonic() - start_s
        if given.count:
            _log.info("trained on round %d: %d reports", self._number - 1, given.count)
        else:
            text = "round %d has no reports, or fewer than the minimum: the model stays"
            _log.info(text, self._number - 1)

    def _hold(self, content: bytes | None) -> None:
        self._number = 0 if content is None else self._task.round_of(content)
        self._content = content

    def _failed(self, error: Exception) -> float:
        """Note a failure, and return how long to wait before the next try."""
        self._failures += 1
        text = str(error) if isinstance(error, NoisefloorError) else type(error).__name__
        _log.error("round %d cannot be trained on: %s", self._number, text)
        return float(min(_MOST_PAUSE_S, EVERY_S * 2 ** min(self._failures, 10)))
