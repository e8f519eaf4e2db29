"""Publications that take long: run beside the requests, one after the other, looked up by key.

A job is charged before it is queued. What it makes is stored by the role; here is only how far it
is. A job that ends with its process leaves its charge behind, and the same request again runs it
again for nothing; one whose method failed does not run again.
"""

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from noisefloor.errors import BusFull, PublicationFailed, SpendConflict
from noisefloor.roles import ReleaseRequest

MOST_WAITING = 32
_MOST_KEPT = 1024

_log = logging.getLogger(__name__)

_Work = Callable[[], object]


class PublicationProgress(Enum):
    """How far a publication is."""

    CHARGED = "charged"
    WAITING = "waiting"
    RUNNING = "running"
    FAILED = "failed"
    STORED = "stored"

    @property
    def text(self) -> str:
        """What that means for the caller."""
        return _TEXTS[self]


_TEXTS = {
    PublicationProgress.CHARGED: (
        "Paid for, not made: send the same request again, it costs nothing more."
    ),
    PublicationProgress.WAITING: "Paid for; it is made once those before it are.",
    PublicationProgress.RUNNING: "Paid for, and being made.",
    PublicationProgress.FAILED: (
        "Paid for; the method failed. Nothing is drawn a second time for one charge."
    ),
    PublicationProgress.STORED: "Stored; the same bytes for ever.",
}
_UNDER_WAY = (PublicationProgress.WAITING, PublicationProgress.RUNNING)


@dataclass(slots=True, eq=False)
class _Job:
    request: ReleaseRequest
    progress: PublicationProgress = PublicationProgress.WAITING


class PublicationQueue:
    """A queue with one worker, in a thread that does not outlive the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, _Job] = {}
        self._queue: queue.SimpleQueue[tuple[_Job, _Work] | None] = queue.SimpleQueue()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        """Start to work."""
        self._thread.start()

    def stop(self, timeout_s: float = 1.0) -> bool:
        """Begin no more, and say whether all that was taken is done; it blocks."""
        self._is_stopping = True
        self._queue.put(None)
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self.waiting

    @property
    def waiting(self) -> int:
        """How many are paid for and not made yet."""
        with self._lock:
            return sum(job.progress in _UNDER_WAY for job in self._jobs.values())

    def progress(self, key: str) -> PublicationProgress | None:
        """Return how far a job is; None of one that is not known here."""
        with self._lock:
            job = self._jobs.get(key)
            return None if job is None else job.progress

    def submit(
        self, key: str, request: ReleaseRequest, charge: _Work, work: _Work
    ) -> PublicationProgress:
        """Charge a request and queue its work, unless it is under way already.

        Args:
            key: Names the job: the publication's id, with the ledger that it belongs to.
            request: What is to be published.
            charge: Pays for it; whatever it raises, nothing is queued.
            work: Makes and stores it.

        Raises:
            SpendConflict: Another request is under way under this id.
            BusFull: Too much waits; nothing was charged.
        """
        with self._lock:
            known = self._jobs.get(key)
            if known is not None and known.progress in _UNDER_WAY:
                if known.request.digest != request.digest:
                    raise SpendConflict("Another request is under way under this id.")
                return known.progress
            self._make_room()
            charge()
            job = self._jobs[key] = _Job(request)
            self._queue.put((job, work))
            return job.progress

    def _make_room(self) -> None:
        """Refuse when too much waits, and forget what ended long ago."""
        if (
            sum(job.progress is PublicationProgress.WAITING for job in self._jobs.values())
            >= MOST_WAITING
        ):
            raise BusFull("Too many publications wait.")
        ended = [name for name, job in self._jobs.items() if job.progress not in _UNDER_WAY]
        for name in ended[: max(0, len(self._jobs) - _MOST_KEPT)]:
            del self._jobs[name]

    def _run(self) -> None:
        while True:
            queued = self._queue.get()
            if queued is None or self._is_stopping:
                return
            self._run_one(*queued)
            del queued  # the work holds rows, which must not outlive it in a waiting thread

    def _run_one(self, job: _Job, work: _Work) -> None:
        job.progress = PublicationProgress.RUNNING
        try:
            work()
            job.progress = PublicationProgress.STORED
        except Exception as error:  # of a method: whatever it is, the next one has its turn
            is_final = isinstance(error, PublicationFailed)
            job.progress = PublicationProgress.FAILED if is_final else PublicationProgress.CHARGED
            _log.error("a publication failed: %s", type(error.__cause__ or error).__name__)
