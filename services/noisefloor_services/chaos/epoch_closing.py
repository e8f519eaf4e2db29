"""Epochs closed under load: every frame that was answered with 202 is in its epoch's sums.

Clients send to an epoch until an answer says it is closed, and go on with the next one. It is
closed in the midst of that, at times by an aggregator that is killed meanwhile; then another one
has to finish. What the sums have to be is added up from the answers alone.
"""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.randomness import SeededSource
from noisefloor.wire import ID_BYTES, seal
from noisefloor_services.chaos.clients import COLLECTION
from noisefloor_services.chaos.plan import ProgressCallback
from noisefloor_services.chaos.processes import ChaosTimeout, Connection
from noisefloor_services.chaos.topology import ChaosTopology
from noisefloor_services.http import FRAME_TYPE
from noisefloor_services.security import Role
from noisefloor_services.store import Durability
from noisefloor_services.streams import Conservation

TAKEN, GONE = 202, 410
_KIND = next(kind for name, kind in COLLECTION.kinds.items() if name == "clicks")
_ROWS = 20
_CLIENTS = 8
_KILL_EVERY = 5
_LEAST_FRAMES = 4 * _CLIENTS
_STUCK_S = 120.0
_PAUSE_S = 0.01


@dataclass(frozen=True, slots=True)
class ClosingOutcome:
    """What came of it.

    Attributes:
        faults: Each difference to what was promised, in words; none in a good run.
        conservation: Frames by what became of them.
        closings: Epochs that were closed under load.
        answered: Frames that were answered with 202.
        in_epochs: Frames in the closed epochs.
        answered_410: Frames that were answered with 410.
        repeated: Times that closing had to be repeated, after 503 or without an answer.
        aggregator_kills: SIGKILLs while an epoch was being closed.
        elapsed_s: Of it all.
    """

    faults: tuple[str, ...]
    conservation: Conservation
    closings: int
    answered: int
    in_epochs: int
    answered_410: int
    repeated: int
    aggregator_kills: int
    elapsed_s: float


@dataclass(slots=True)
class _Epoch:
    """What clients were promised for one epoch."""

    taken: int = 0
    refused: int = 0
    sums: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_KIND.cells, np.int64))


def run_closing(
    closings: int,
    folder: Path,
    on_progress: ProgressCallback = lambda _: None,
    *,
    durability: Durability = Durability.DISK,
) -> ClosingOutcome:
    """Close epochs one after the other under load, and compare each with what was promised."""
    check_count(closings, "closings", most=1000)
    start_s = time.monotonic()
    with ChaosTopology(folder, durability) as services:
        services.worker.launch()
        services.start(services.ad_server, services.aggregator)
        load = _Load(services.ad_server.port, closings)
        operator = _Operator(services)
        for epoch in range(closings):
            load.wait(epoch)
            operator.close(epoch, with_kill=epoch % _KILL_EVERY == _KILL_EVERY - 1)
            on_progress(epoch / closings)
        load.finish()
        account = services.settle()
        faults, counted = operator.compared(load.epochs)
    answered = sum(one.taken for one in load.epochs)
    pairs = {
        "frames counted": (account.counted, answered),
        "late frames": (account.late, 0),
        "dead letters": (account.dead_letters, 0),
        "frames without an outcome": (account.missing, 0),
    }
    faults += [f"{name}: {is_}, not {has}" for name, (is_, has) in pairs.items() if is_ != has]
    return ClosingOutcome(
        faults=tuple([*faults, *load.odd]),
        conservation=account,
        closings=closings,
        answered=answered,
        in_epochs=counted,
        answered_410=sum(one.refused for one in load.epochs),
        repeated=operator.repeated,
        aggregator_kills=operator.kills,
        elapsed_s=time.monotonic() - start_s,
    )


class _Load:
    """Clients that send to each epoch until it is closed."""

    def __init__(self, port: int, closings: int) -> None:
        self.epochs = [_Epoch() for _ in range(closings)]
        self.odd: list[str] = []
        self._port = port
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._send_all, args=(place,), daemon=True)
            for place in range(_CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def wait(self, epoch: int) -> None:
        """Wait until enough frames of an epoch were taken."""
        _wait(lambda: self.epochs[epoch].taken >= _LEAST_FRAMES or bool(self.odd))

    def finish(self) -> None:
        """Wait until every client has the answer that the last epoch is closed."""
        _wait(lambda: not any(thread.is_alive() for thread in self._threads))

    def _send_all(self, place: int) -> None:
        draws, connection = _draws(place), Connection(self._port)
        try:
            for epoch in range(len(self.epochs)):
                while self._send(connection, *next(draws), epoch=epoch) == TAKEN:
                    pass
        except ChaosTimeout as error:
            self.odd.append(str(error))
        finally:
            connection.close()

    def _send(
        self, connection: Connection, reports: NDArray[np.int64], batch_id: bytes, *, epoch: int
    ) -> int:
        """Send one frame, the same bytes until it is taken or refused, and note what it was."""
        data = seal(_KIND, epoch, _KIND.encode(reports), batch_id)
        for _ in range(int(_STUCK_S / _PAUSE_S)):
            status = connection.ask("POST", "/frames", data, {"Content-Type": FRAME_TYPE}).status
            with self._lock:
                if status == TAKEN:
                    self.epochs[epoch].taken += 1
                    self.epochs[epoch].sums += reports.sum(axis=0)
                elif status == GONE:
                    self.epochs[epoch].refused += 1
            if status in (TAKEN, GONE):
                return status
            time.sleep(_PAUSE_S)
        raise ChaosTimeout("A frame is neither taken nor refused.")


class _Operator:
    """Closes epochs over HTTP, and reads what they come to."""

    def __init__(self, services: ChaosTopology) -> None:
        self._services = services
        self.repeated = self.kills = 0

    def close(self, epoch: int, *, with_kill: bool) -> None:
        """Close an epoch, once or again, until the answer is that it is closed."""
        closing = threading.Thread(target=self._ask, args=(epoch,))
        closing.start()
        if with_kill:
            self._services.aggregator.kill()
            self._services.start(self._services.aggregator)
            self.kills += 1
        closing.join(_STUCK_S)

    def compared(self, epochs: list[_Epoch]) -> tuple[list[str], int]:
        """Return each difference to what was promised, and the frames that count."""
        faults, counted = [], 0
        for number, promised in enumerate(epochs):
            frames = self._services.read(f"/epochs/{_KIND.name}/{number}").json["frames"]
            cells = self._services.read(f"/statistics/{_KIND.name}/{number}").json["cells"]
            counted += frames
            if frames != promised.taken or cells != promised.sums.tolist():
                faults.append(f"epoch {number}: {promised.taken} taken, {frames} counted")
        return faults, counted

    def _ask(self, epoch: int) -> None:
        path, admin = f"/epochs/{_KIND.name}/{epoch}/close", self._services.bearer(Role.ADMIN)
        for _ in range(int(_STUCK_S / _PAUSE_S)):
            if self._services.aggregator.ask("POST", path, headers=admin).status == 200:
                return
            self.repeated += 1
            time.sleep(_PAUSE_S)


def _draws(place: int) -> Iterator[tuple[NDArray[np.int64], bytes]]:
    """Yield the reports and the batch id of one frame after the other."""
    generator = SeededSource(place, "closing").generator()
    while True:
        yield generator.integers(0, 2, (_ROWS, _KIND.cells)), generator.bytes(ID_BYTES)


def _wait(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _STUCK_S
    while not is_so():
        if time.monotonic() > deadline:
            raise ChaosTimeout("Frames are not taken any more, or an epoch is not closed.")
        time.sleep(_PAUSE_S)
