"""What ``noisefloor up``, ``status`` and ``down`` do, behind the command line."""

import json
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from noisefloor_sim import topology as topologies
from noisefloor_sim.progress import spinner
from noisefloor_sim.service_tables import print_status
from noisefloor_sim.topology import (
    FolderBusy,
    NotRunning,
    Stopped,
    Topology,
    anchors,
    repair,
    running,
    start,
)
from noisefloor_sim.topology.state import EMBEDDED
from noisefloor_sim.topology.status import look, nothing
from noisefloor_sim.topology.topology import found

NOTHING_RUNS = 2
_PAUSE_S = 0.25


def up(
    folder: Path,
    *,
    redis_url: str | None,
    durability: str,
    collection: Path | None,
    data_sets: Sequence[str],
    anchor: Path | None,
    foreground: bool,
) -> int:
    """Start everything and say where it is; in the foreground, wait and stop it in the end."""
    with _ending_on_signals():
        with spinner() as bar:
            task = bar.add_task("starting", total=None)
            topology = start(
                folder,
                redis_url=redis_url,
                durability=durability,
                collection=collection,
                data_sets=data_sets,
                anchor=anchor,
                tell=lambda text: bar.update(task, description=text),
            )
        _warn(topology)
        if foreground:
            return _stay(topology)
    _tell_up(topology, f"noisefloor down --folder {shlex.quote(str(folder))}")
    return 0


def restore_ledger(folder: Path, *, redis_url: str | None, anchor: Path | None) -> int:
    """Raise the ledger of a stopped topology to its anchor, and say by how much."""
    with _ending_on_signals(), spinner() as bar:
        bar.add_task("restoring the ledger", total=None)
        said = topologies.restore_ledger(folder, redis_url=redis_url, anchor=anchor)
    print(said)
    return 0


def repair_up(folder: Path, *, redis_url: str | None) -> int:
    """Start again what has ended, and say what that was."""
    try:
        before = running(folder)
        ends = {name: before.how_ended(name) for name in before.gone}
        with _ending_on_signals(), spinner() as bar:
            task = bar.add_task("looking", total=None)
            topology, started = repair(
                folder,
                redis_url=redis_url,
                tell=lambda text: bar.update(task, description=text),
            )
    except NotRunning as error:
        return _nothing_runs(error)
    for name in started:
        where, pid = topology.url(name), topology.processes[name].pid
        print(f"{name}: {ends.get(name, 'gone')}; started again at {where}, pid {pid}")
    if not started:
        print("nothing to repair: every process runs")
    return 0


def status(folder: Path, *, as_json: bool) -> int:
    """Print how everything is, and return the exit code that says so."""
    try:
        shown = look(running(folder))
    except NotRunning as error:
        if as_json:
            print(json.dumps(nothing(folder, str(error)), indent=2))
        return _nothing_runs(error)
    if as_json:
        print(json.dumps(shown.as_json(), indent=2))
    else:
        print_status(shown)
    return 0 if shown.is_ready and shown.is_conserved else 1


def down(folder: Path) -> int:
    """Stop everything in order and say how each process ended."""
    try:
        topology = found(folder)
    except NotRunning as error:
        return _nothing_runs(error)
    with spinner() as bar:
        bar.add_task("counting what waits, and stopping", total=None)
        stopped = topology.stop()
    return _tell_down(stopped)


def _stay(topology: Topology) -> int:
    """Wait for a signal, or for a process that ends by itself, and stop everything."""
    gone: tuple[str, ...] = ()
    try:
        _tell_up(topology, "Ctrl-C")
        while not gone:
            time.sleep(_PAUSE_S)
            gone = topology.gone
    except KeyboardInterrupt:
        pass
    for name in gone if topology.places.state.exists() else ():
        sys.stderr.write(f"noisefloor: {name} {topology.how_ended(name)}: stopping the others.\n")
    try:
        if topology.places.state.exists():
            return _tell_down(topology.stop())
    except FolderBusy:
        pass
    print("stopped by noisefloor down")
    return 0


def _warn(topology: Topology) -> None:
    """Say what nobody would notice: a ledger whose anchor is missing, or restored with it."""
    file = topology.state.anchor
    text = anchors.warning(topology.places, Path(file) if file else None)
    if text:
        sys.stderr.write(f"noisefloor: {text}\n")


def _tell_up(topology: Topology, how_to_stop: str) -> None:
    """Say where everything is, how to try it, and how to stop it."""
    for name, process in topology.processes.items():
        print(f"{name:<16} {topology.url(name):<26} pid {process.pid}")
    if topology.state.redis != EMBEDDED:
        print(f"{'redis':<16} {topology.state.redis}")
    if topology.state.anchor:
        print(f"{'ledger anchor':<16} {topology.state.anchor}")
    body = json.dumps({"epoch": topology.state.first_epoch, "index": 0})
    asked = topology.url("ad-server") + "/requests"
    seen = topology.url("aggregator") + "/conservation"
    tokens = shlex.quote(str(topology.places.tokens))
    print(f"\ntokens, one a role: {topology.places.tokens}")
    print("ask for an ad, which counts as an impression, and see that it was counted:")
    print(f"  curl -H 'Content-Type: application/json' -d '{body}' {asked}")
    # By way of a pipe: everybody on the machine can read a command line.
    print(f"  awk '/^read /{{print \"Authorization: Bearer \" $3}}' {tokens} | curl -H @- {seen}")
    print(f"how it is: noisefloor status --folder {shlex.quote(str(topology.places.folder))}")
    print(f"to stop:   {how_to_stop}", flush=True)


def _tell_down(stopped: Stopped) -> int:
    for ending in stopped.endings:
        print(ending)
    if stopped.waiting is None:
        print(
            "what waited to be counted is not known: what is on disk is counted after the next up"
        )
    elif stopped.waiting:
        print(
            f"{stopped.waiting:,} frames still wait: what is on disk is counted after the next up"
        )
    else:
        print("everything that was accepted is counted")
    return 0 if stopped.is_clean else 1


def _nothing_runs(error: NotRunning) -> int:
    sys.stderr.write(f"noisefloor: {error}\n")
    return NOTHING_RUNS


@contextmanager
def _ending_on_signals() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does: nothing half-started is to be left behind."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
