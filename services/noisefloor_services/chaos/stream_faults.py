"""Run a chaos plan against real processes on a real server, and compare with the truth.

The producer sends micro-batches and sends them again when the server was away; faults strike as
the work goes on, evenly spread over it. The first epoch is closed half-way and all of it is
sent once more. At the end every cell is compared with the truth.
"""

import threading
import time
from collections import deque
from pathlib import Path

import numpy as np

from noisefloor.randomness import SeededSource
from noisefloor_services.chaos.plan import (
    EPOCHS,
    KINDS,
    RATINGS,
    ChaosOutcome,
    ChaosPlan,
    ProgressCallback,
    Rows,
    StreamTraffic,
    in_micro_batches,
)
from noisefloor_services.chaos.processes import ChaosTimeout
from noisefloor_services.chaos.workers import WorkerPool, WorkerSpec
from noisefloor_services.store import EmbeddedServer, Layout, Server, StoreAway, StreamFull
from noisefloor_services.streams import EpochStore, Producer

_MICRO_BATCH = 16
_BACKLOG = 256
"""Frames that the producer is ahead of the workers: a worker that is hit has pending frames."""

_STUCK_S = 60.0
_PAUSE_S = 0.005


def run_chaos(
    plan: ChaosPlan, folder: Path, on_progress: ProgressCallback = lambda _: None
) -> ChaosOutcome:
    """Run a plan with its data in a folder, and say what came of it."""
    start_s = time.monotonic()
    with EmbeddedServer(folder, plan.durability) as server:
        run = _Run(plan, server, on_progress)
        try:
            run.all_of_it()
        finally:
            run.crew.dismiss()
        faults, cells = run.compared()
        return ChaosOutcome(
            faults=faults,
            conservation=run.store.conservation(),
            frames=run.traffic.truth.frames,
            reports=run.traffic.truth.reports,
            worker_kills=run.crew.kills,
            zombies=run.crew.zombies,
            server_kills=run.server_kills,
            pending_frames=run.crew.pending_at_faults,
            cells=cells,
            longest_pause_s=run.longest_pause_s,
            elapsed_s=time.monotonic() - start_s,
        )


class _Run:
    """One run: what was sent, what was done to it."""

    def __init__(
        self, plan: ChaosPlan, server: EmbeddedServer, on_progress: ProgressCallback
    ) -> None:
        layout = Layout("chaos", plan.partitions)
        self.plan = plan
        self._on_progress = on_progress
        self.server = server
        self.store = EpochStore(Server(server.url), layout, KINDS)
        self.store.prepare()
        self.producer = Producer(self.store.server, layout, self.store.kinds)
        self.traffic = StreamTraffic(plan)
        self.server_kills = 0
        self.longest_pause_s = 0.0
        self._generator = SeededSource(plan.seed, "faults").generator()
        faults = ["kill"] * plan.worker_kills + ["stop"] * plan.zombies
        faults += ["crash"] * plan.server_kills
        self._faults = deque(faults[int(at)] for at in self._generator.permutation(len(faults)))
        self._all_faults = max(1, len(faults))
        self._sent = self._settled = 0
        self._settled_s = time.monotonic()
        self.crew = WorkerPool(WorkerSpec(server.url, layout, plan.is_naive), plan.workers)

    def all_of_it(self) -> None:
        """Send everything, let faults strike, and wait until all is settled."""
        share, traffic = self.plan.duplicate_share, self.traffic
        first = traffic.by_epoch[0]
        later = [frame for epoch in traffic.by_epoch[1:] for frame in epoch]
        half = len(traffic.poison) // 2
        opening = traffic.shuffled(first + traffic.poison[:half], share)
        rest = later + traffic.poison[half:]
        # Some of the first epoch once more while it is open; all of it once it is closed.
        closing = traffic.shuffled(rest, share) + traffic.shuffled(
            first + traffic.stragglers, share
        )
        self._expected = len(opening) + len(closing)
        self._send_all(opening)
        self._close(0)
        self._send_all([closing[int(at)] for at in self._generator.permutation(len(closing))])
        self._strike(everything=True)
        self.crew.resume(all_of_them=True)
        self._wait_until_settled()
        for epoch in range(1, EPOCHS):
            self._close(epoch)

    def compared(self) -> tuple[tuple[str, ...], int]:
        """Return every difference to the truth, and how many cells were compared."""
        truth, faults, cells = self.traffic.truth, [], 0
        for (kind, epoch), sums in truth.sums.items():
            released, _ = self.store.release(kind, epoch)
            cells += len(released)
            wrong = int(np.count_nonzero(released != sums))
            if wrong:
                off = int(np.abs(released - sums).sum())
                faults.append(f"{kind} of epoch {epoch}: {wrong} cells are wrong, by {off} in all")
        for (kind, epoch), parts in truth.rows.items():
            if not np.array_equal(self._ratings(epoch), _sorted(np.concatenate(parts))):
                faults.append(f"{kind} of epoch {epoch}: the rows are others")
        return (*faults, *self._miscounted()), cells

    def _miscounted(self) -> list[str]:
        count, truth = self.store.conservation(), self.traffic.truth
        letters = len(self.store.dead_letters())
        pairs = {
            "frames without an outcome": (count.missing, 0),
            "frames that wait": (count.pending, 0),
            "frames counted": (count.counted, truth.frames),
            "reports counted": (count.reports, truth.reports),
            "dead letters counted": (count.dead_letters, self.plan.poison),
            "dead letters kept": (letters, self.plan.poison),
            "late frames": (count.late, self.plan.stragglers),
        }
        return [f"{name}: {is_}, not {has}" for name, (is_, has) in pairs.items() if is_ != has]

    def _ratings(self, epoch: int) -> Rows:
        batch = self.store.release_rows(RATINGS.name, epoch)
        columns = RATINGS.decode(batch)
        return _sorted(np.column_stack([columns["item"], columns["stars"]]).astype(np.int64))

    def _send_all(self, frames: list[bytes]) -> None:
        for batch in in_micro_batches(frames, _MICRO_BATCH):
            while self._waiting() > _BACKLOG:
                self._strike()
                time.sleep(_PAUSE_S)
            self._send(batch)
            self._sent += len(batch)
            self._strike()
        self._wait_until_settled()

    def _send(self, batch: list[bytes]) -> None:
        """Send until the server confirms: what it accepted before a crash is sent twice."""
        for _ in range(int(_STUCK_S / _PAUSE_S)):
            try:
                self.producer.append(batch)
                return
            except (StoreAway, StreamFull):
                time.sleep(_PAUSE_S)
        raise ChaosTimeout("The server takes nothing.")

    def _wait_until_settled(self) -> None:
        while self._waiting():
            self._strike()
            time.sleep(_PAUSE_S)

    def _close(self, epoch: int) -> None:
        for kind in KINDS:
            self.store.close(kind.name, epoch)

    def _waiting(self) -> int:
        """Return how much is not settled, and see to it that this does not stay so for ever."""
        waiting = self.store.waiting()
        settled, now_s = self._sent - waiting, time.monotonic()
        if settled != self._settled:
            self.longest_pause_s = max(self.longest_pause_s, now_s - self._settled_s)
        if settled != self._settled or not waiting:
            self._settled, self._settled_s = settled, now_s
        if time.monotonic() > self._settled_s + _STUCK_S:
            raise ChaosTimeout(f"{waiting} frames are not settled.")
        return waiting

    def _strike(self, *, everything: bool = False) -> None:
        """Let faults strike that are due by now, and wake up those who slept long enough."""
        self.crew.resume()
        done = 1.0 if everything else self._settled / self._expected
        self._on_progress(min(1.0, done))
        while self._faults and done >= 1 - len(self._faults) / self._all_faults:
            fault, pick = self._faults.popleft(), int(self._generator.integers(1 << 16))
            if fault == "kill":
                self.crew.kill(pick)
            elif fault == "stop":
                self.crew.pause(pick)
            else:
                self._crash()
            if not everything:
                break

    def _crash(self) -> None:
        """Kill the server while a micro-batch is on its way; then send that again."""
        batch = self.traffic.by_epoch[0][:_MICRO_BATCH]
        sender = threading.Thread(target=self._send, args=(batch,))
        sender.start()
        time.sleep(float(self._generator.uniform(0, 0.004)))
        self.server.kill()
        self.server.start()
        sender.join(_STUCK_S)
        self.server_kills += 1


def _sorted(rows: Rows) -> Rows:
    return np.asarray(rows[np.lexsort(rows.T[::-1])])
