"""A repair: what has ended of a running topology is started again; the others are left alone."""

from collections.abc import Callable
from pathlib import Path

from noisefloor.errors import BadParameter
from noisefloor_sim.topology.environment import Environment
from noisefloor_sim.topology.names import SERVICES
from noisefloor_sim.topology.preconditions import usable
from noisefloor_sim.topology.process import Process
from noisefloor_sim.topology.starting import Start
from noisefloor_sim.topology.state import EMBEDDED, State
from noisefloor_sim.topology.stopping import end
from noisefloor_sim.topology.topology import Topology, running


def repair(
    folder: Path,
    *,
    redis_url: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[Topology, tuple[str, ...]]:
    """Start every process that has ended again, on the same port and data.

    Args:
        folder: Where the topology runs.
        redis_url: The server that is used in place of embedded ones; its password is kept nowhere.
        tell: Called with what is waited for.

    Returns:
        The topology, and the names of the processes that were started.

    Raises:
        NotRunning: Nothing runs there.
        BadParameter: Another server than the one that is used was given, or none.
        StartFailed: A process did not come up; it was stopped again.
    """
    places = running(folder).places
    with places.locked():
        topology = running(folder)
        state, gone = topology.state, [topology.processes[name] for name in topology.gone]
        if not gone:
            return topology, ()
        _check_address(state, redis_url)
        start = Start(places, Environment(places, state.settings, redis_url), [], state, tell)
        for process in gone:
            _restart(start, process)
        return Topology(places, start.state), tuple(one.name for one in gone)


def _restart(start: Start, process: Process) -> None:
    name = process.name
    start.tell(f"starting the {name}")
    end(process, start.places)  # a store that was killed may have left its server behind
    try:
        start.launch(name, *process.words, port=process.port)
        start.listen(name)
        if name in SERVICES:
            start.wait_ready(name)
    except BaseException:
        end(start.process(name), start.places)
        raise


def _check_address(state: State, redis_url: str | None) -> None:
    if state.redis == EMBEDDED:
        return
    if redis_url is None or str(usable(redis_url)) != state.redis:
        given = "<none>" if redis_url is None else "<another>"
        raise BadParameter("redis", given, f"the address of {state.redis}, with its password")
