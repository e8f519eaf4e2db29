"""What ``noisefloor up``, ``status`` and ``down`` do, behind the command line.

The status of a topology as a person reads it.
"""

import json
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.table import Table
from rich.text import Text

from noisefloor.wire.messages import ConservationReport
from noisefloor_sim.cli.progress import spinner
from noisefloor_sim.deploy import (
    EMBEDDED,
    Deployment,
    DeploymentStatus,
    FolderBusy,
    LedgerBudget,
    NotRunning,
    ProcessStatus,
    StopReport,
    anchor_warning,
    empty_status,
    found,
    no_settings,
    read_status,
    repair,
    running,
    start,
)
from noisefloor_sim.deploy import restore_ledger as restore_ledger_of

_HEADINGS = ("process", "state", "address", "pid", "uptime", "memory", "waiting")


def print_status(status: DeploymentStatus) -> None:
    """Print the processes, what is promised, counted and spent, and the verdict."""
    # Off a terminal nothing may be cut: a log has no width.
    console = Console(width=None if sys.stdout.isatty() else 132)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, heading in enumerate(_HEADINGS):
        table.add_column(heading, no_wrap=True, justify="right" if place > 2 else "left")
    for one in status.processes:
        table.add_row(*map(Text, _row(one)))
    console.print(table)
    console.print()
    for line in _lines(status):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _row(one: ProcessStatus) -> tuple[str, ...]:
    waiting = "-" if one.waiting is None else f"{one.waiting:,}"
    memory = f"{one.memory_bytes / 2**20:,.0f} MiB"
    return one.name, one.state, one.address, str(one.pid), _span(one.uptime_s), memory, waiting


def _lines(status: DeploymentStatus) -> list[str]:
    lines = [f"{one.name}: {one.why}. Log: {one.log}" for one in status.processes if one.why]
    lines.append(f"redis: {status.redis}")
    promise = status.durability.promise or "Nobody is there to promise anything."
    lines.append(f"durability: {status.durability.setting}. {promise}")
    lines += [f"NOT KEPT by {one.store}: {one.why}" for one in status.durability.unkept]
    if status.conservation is not None:
        lines.append(f"conservation: {_sum(status.conservation)}")
        lines.append(f"refused at the intake: {_refused(status.conservation)}")
        lines += [f"ALARM: {text}" for text in status.conservation.alarms]
    lines += _budgets(status.ledger)
    return [*lines, "", status.verdict]


def _sum(found: ConservationReport) -> str:
    outcome = "CONSERVED" if found.is_conserved else f"{found.missing:,} MISSING"
    return (
        f"{found.accepted:,} frames accepted = {found.counted:,} counted + "
        f"{found.dead_letters:,} dead letters + {found.late:,} late + "
        f"{found.duplicates:,} duplicates + {found.pending:,} pending: {outcome} "
        f"({found.reports:,} reports counted)"
    )


def _refused(found: ConservationReport) -> str:
    closed = found.refused_closed + found.refused_again
    return (
        f"{closed:,} for a closed epoch, {found.refused_ahead:,} for one too far ahead, "
        f"{found.refused_full:,} for a full one"
    )


def _budgets(ledger: tuple[LedgerBudget, ...] | None) -> list[str]:
    if ledger is None:
        return ["ledger: nobody tells."]
    if not ledger:
        return ["ledger: no data set is published from; name one by up --data-set."]
    return [
        f"ledger: {one.data_set}: epsilon {one.spent_epsilon:g} spent, {one.left_epsilon:g} left; "
        f"delta {one.spent_delta:g} spent, {one.left_delta:g} left"
        for one in ledger
    ]


def _span(seconds: float) -> str:
    """Write a time as people read it: the two largest units."""
    days, rest = divmod(int(seconds), 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    named = ((days, "d"), (hours, "h"), (minutes, "min"), (rest, "s"))
    parts = [f"{number} {unit}" for number, unit in named if number]
    return " ".join(parts[:2]) or "0 s"


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
    experiments: bool,
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
                settings={"experiments": "on"} if experiments else None,
                more_settings=_of_experiments if experiments else no_settings,
                tell=lambda text: bar.update(task, description=text),
            )
        _warn(topology)
        if foreground:
            return _stay(topology)
    _tell_up(topology, f"noisefloor down --folder {shlex.quote(str(folder))}")
    return 0


def _of_experiments(folder: Path) -> Mapping[str, str]:
    """Return what pipelines want as settings of services that are started for experiments."""
    from noisefloor_sim.pipelines import experiment_settings  # lazy: slow to import

    return experiment_settings(folder)


def restore_ledger(folder: Path, *, redis_url: str | None, anchor: Path | None) -> int:
    """Raise the ledger of a stopped topology to its anchor, and say by how much."""
    with _ending_on_signals(), spinner() as bar:
        bar.add_task("restoring the ledger", total=None)
        said = restore_ledger_of(folder, redis_url=redis_url, anchor=anchor)
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
        shown = read_status(running(folder))
    except NotRunning as error:
        if as_json:
            print(json.dumps(empty_status(folder, str(error)), indent=2))
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


def _stay(topology: Deployment) -> int:
    """Wait for a signal, or for a process that ends by itself, and stop everything."""
    gone: tuple[str, ...] = ()
    try:
        _tell_up(topology, "Ctrl-C")
        while not gone:
            time.sleep(_PAUSE_S)
            gone = topology.gone
    except KeyboardInterrupt:
        pass
    for name in gone if topology.paths.state.exists() else ():
        sys.stderr.write(f"noisefloor: {name} {topology.how_ended(name)}: stopping the others.\n")
    try:
        if topology.paths.state.exists():
            return _tell_down(topology.stop())
    except FolderBusy:
        pass
    print("stopped by noisefloor down")
    return 0


def _warn(topology: Deployment) -> None:
    """Say what nobody would notice: a ledger whose anchor is missing, or restored with it."""
    file = topology.state.anchor
    text = anchor_warning(topology.paths, Path(file) if file else None)
    if text:
        sys.stderr.write(f"noisefloor: {text}\n")


def _tell_up(topology: Deployment, how_to_stop: str) -> None:
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
    tokens = shlex.quote(str(topology.paths.tokens))
    print(f"\ntokens, one a role: {topology.paths.tokens}")
    print("ask for an ad, which counts as an impression, and see that it was counted:")
    print(f"  curl -H 'Content-Type: application/json' -d '{body}' {asked}")
    # By way of a pipe: everybody on the machine can read a command line.
    print(f"  awk '/^read /{{print \"Authorization: Bearer \" $3}}' {tokens} | curl -H @- {seen}")
    print(f"how it is: noisefloor status --folder {shlex.quote(str(topology.paths.folder))}")
    print(f"to stop:   {how_to_stop}", flush=True)


def _tell_down(stopped: StopReport) -> int:
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
