"""A repair: what has ended of a running topology is started again; the others are left alone."""

from collections.abc import Callable
from pathlib import Path

from noisefloor.errors import BadParameter
from noisefloor_sim.deploy.deployment import Deployment, running, stop_process
from noisefloor_sim.deploy.environment import ProcessEnvironment
from noisefloor_sim.deploy.process import SERVICES, Process
from noisefloor_sim.deploy.starting import StartSequence, reachable_redis
from noisefloor_sim.deploy.state import EMBEDDED, DeploymentState


def repair(
    folder: Path,
    *,
    redis_url: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[Deployment, tuple[str, ...]]:
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
    paths = running(folder).paths
    with paths.locked():
        topology = running(folder)
        state, gone = topology.state, [topology.processes[name] for name in topology.gone]
        if not gone:
            return topology, ()
        _check_address(state, redis_url)
        start = StartSequence(
            paths, ProcessEnvironment(paths, state.settings, redis_url), [], state, tell
        )
        for process in gone:
            _restart(start, process)
        return Deployment(paths, start.state), tuple(one.name for one in gone)


def _restart(start: StartSequence, process: Process) -> None:
    name = process.name
    start.tell(f"starting the {name}")
    stop_process(process, start.paths)  # a store that was killed may have left its server behind
    try:
        start.launch(name, *process.words, port=process.port)
        start.listen(name)
        if name in SERVICES:
            start.wait_ready(name)
    except BaseException:
        stop_process(start.process(name), start.paths)
        raise


def _check_address(state: DeploymentState, redis_url: str | None) -> None:
    if state.redis == EMBEDDED:
        return
    if redis_url is None or str(reachable_redis(redis_url)) != state.redis:
        given = "<none>" if redis_url is None else "<another>"
        raise BadParameter("redis", given, f"the address of {state.redis}, with its password")
