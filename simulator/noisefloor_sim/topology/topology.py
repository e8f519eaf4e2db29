"""A running topology: where its services are, whose tokens they take, and how to stop it."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from noisefloor.errors import BadParameter
from noisefloor_sim.topology import state as states
from noisefloor_sim.topology.calls import ask
from noisefloor_sim.topology.errors import BadState, NotRunning, StaleState
from noisefloor_sim.topology.names import AGGREGATOR, STORES
from noisefloor_sim.topology.places import Places
from noisefloor_sim.topology.process import Process, exit_code, outcome
from noisefloor_sim.topology.state import State
from noisefloor_sim.topology.stopping import Stopped, stop_all
from noisefloor_sim.topology.tokens import read_token


class Topology:
    """The processes that were started in a folder; some of them may be gone by now.

    Args:
        places: Where its files lie.
        state: What was started.
    """

    __slots__ = ("places", "processes", "state")

    def __init__(self, places: Places, state: State) -> None:
        self.places = places
        self.state = state
        self.processes: Mapping[str, Process] = MappingProxyType(
            {one.name: one for one in state.processes}
        )

    @property
    def gone(self) -> tuple[str, ...]:
        """The processes that have ended."""
        return tuple(name for name, one in self.processes.items() if not one.is_running)

    def url(self, name: str) -> str:
        """Return the address of a process: ``ad-server``, ``aggregator``, ``model-publisher``.

        A store's has no password in it.
        """
        scheme = "redis" if name in STORES else "http"
        return f"{scheme}://127.0.0.1:{self._port(name)}"

    def token(self, role: str) -> str:
        """Return the bearer token of a role: ``admin``, ``ledger``, ``publish`` or ``read``."""
        return read_token(self.places.tokens, role)

    def waiting(self) -> int | None:
        """Return how many frames wait to be counted; None if nobody can tell."""
        if AGGREGATOR not in self.processes:
            return None
        try:
            answer = ask(self._port(AGGREGATOR), "/state", self.token("read"))
        except BadState:
            return None
        return int(answer.json()["waiting"]) if answer and answer.status == 200 else None

    def how_ended(self, name: str) -> str:
        """Say how a process that is gone has ended."""
        return outcome(exit_code(name, self.places, wait_s=0.5))

    def stop(self) -> Stopped:
        """Let what waits be counted, stop everything in order, and say how each ended."""
        with self.places.locked():
            stopped = stop_all(self.processes, self.places, self.waiting)
            self.places.state.unlink(missing_ok=True)
        return stopped

    def _port(self, name: str) -> int:
        if name not in self.processes:
            raise BadParameter("name", name, f"one of {', '.join(self.processes)}")
        return self.processes[name].port


def found(folder: Path) -> Topology:
    """Return what was started in a folder and not stopped since, or raise NotRunning."""
    places = Places.of(folder)
    state = states.read(places)
    if state is None:
        raise NotRunning(f"Nothing runs in {folder}: start it by noisefloor up --folder {folder}.")
    return Topology(places, state)


def running(folder: Path) -> Topology:
    """Return what runs in a folder.

    Raises:
        NotRunning: Nothing was started there, or it was stopped.
        StaleState: Every process that was started there is gone.
    """
    topology = found(folder)
    if is_left(topology):
        return topology
    ends = ", ".join(f"{name} {topology.how_ended(name)}" for name in topology.gone)
    raise StaleState(
        f"Nothing runs in {folder} any more ({ends or 'the start was broken off'}). "
        f"Start it again by noisefloor up --folder {folder}."
    )


def is_left(topology: Topology) -> bool:
    """Whether any process still runs, a database server included."""
    return any(one.is_running or one.is_server_running for one in topology.processes.values())
