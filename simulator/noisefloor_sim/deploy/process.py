"""One process of a topology: started so that it outlives us and leaves its exit code behind.

The processes of a topology by name, and the order in which they are stopped.
"""

import json
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noisefloor_sim.deploy import pids
from noisefloor_sim.deploy.paths import DeploymentPaths

STREAM_STORE = "stream-store"
LEDGER_STORE = "ledger-store"
AD_SERVER = "ad-server"
AGGREGATOR = "aggregator"
PUBLISHER = "model-publisher"

STORES = (STREAM_STORE, LEDGER_STORE)
SERVICES = (AD_SERVER, AGGREGATOR, PUBLISHER)
STOPPING_ORDER = (*SERVICES, LEDGER_STORE, STREAM_STORE)
"""The ad server first: then nothing more comes in. The stores last: everybody needs them."""


# A shell of a session of its own stays behind as the parent and writes down how it ended: only a
# parent is notified, and we may be gone by then.
_SCRIPT = '( "$@" & echo $! >"$0.pid"; wait $!; echo $? >"$0.exit" ) &'
_ACCESS = "noisefloor.access"
_PAUSE_S = 0.02
_SIGNALLED = 128
"""What a shell adds to the signal that ended a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that was started.

    Attributes:
        name: What it is to the topology.
        pid: Its number.
        born: What tells it from others of that number.
        since: When it was started, in seconds since 1970.
        port: Where it listens on the loopback address; 0 as long as it does not.
        server_pid: The database server that it runs, 0 if it runs none.
        server_born: What tells that from others of its number.
        unkept: What a store does not keep of what it promises.
        words: The program and its options, to start it again by.
    """

    name: str
    pid: int
    born: str
    since: float
    port: int = 0
    server_pid: int = 0
    server_born: str = ""
    unkept: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def is_running(self) -> bool:
        """Whether it runs."""
        return pids.is_running(self.pid, self.born)

    @property
    def is_server_running(self) -> bool:
        """Whether the database server that it runs does."""
        return pids.is_running(self.server_pid, self.server_born)

    @property
    def memory_bytes(self) -> int:
        """Its resident memory and that of its server."""
        found = pids.memory_bytes(self.pid) if self.is_running else 0
        return found + (pids.memory_bytes(self.server_pid) if self.is_server_running else 0)


def launch(
    name: str, paths: DeploymentPaths, command: Sequence[str], environment: Mapping[str, str]
) -> Process:
    """Start a process that goes on without us, and return it as soon as it has a number."""
    log = paths.log(name)
    if log.exists():
        log.replace(log.with_name(log.name + ".1"))
    for old in (paths.pid(name), paths.exit_code(name)):
        old.unlink(missing_ok=True)
    try:
        with log.open("wb") as file:
            subprocess.run(  # noqa: S603  our own command
                ["/bin/sh", "-c", _SCRIPT, str(paths.pid(name).with_suffix("")), *command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=dict(environment),
                start_new_session=True,
                check=True,
            )
        pid = _number(paths.pid(name), wait_s=10.0) or 0
    except KeyboardInterrupt:  # nobody else knows of it yet
        pid = _number(paths.pid(name), wait_s=1.0) or 0
        pids.send(pid, pids.birth(pid) or "gone", signal.SIGTERM)
        raise
    return Process(name=name, pid=pid, born=pids.birth(pid) or "gone", since=time.time())


def exit_code(name: str, paths: DeploymentPaths, wait_s: float = 2.0) -> int | None:
    """Return the exit code of a process that has ended; None if nobody was there to see it."""
    return _number(paths.exit_code(name), wait_s)


def describe_exit(code: int | None) -> str:
    """Say how a process ended."""
    if code is None:
        return "gone, nobody knows how"
    if code > _SIGNALLED:
        return f"killed by signal {code - _SIGNALLED}"
    return f"ended with exit code {code}"


def find_message(log: Path, message: str) -> dict[str, Any] | None:  # Any: JSON
    """Return the first line of a log with a message, or None."""
    for line in _lines(log):
        found = _parsed(line)
        if found.get("message") == message:
            return found
    return None


def last_line(log: Path) -> str:
    """Return the last thing that a log says, as a sentence; lines of requests are left out."""
    said = [_said(line) for line in _lines(log) if _parsed(line).get("logger") != _ACCESS]
    last = said[-1] if said else "it said nothing"
    return last if last.endswith(".") else f"{last}."


def _said(line: str) -> str:
    return str(_parsed(line).get("message", line)).removeprefix("noisefloor: ")


def _lines(log: Path) -> list[str]:
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()]


def _parsed(line: str) -> dict[str, Any]:  # Any: JSON
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _number(path: Path, wait_s: float) -> int | None:
    """Return the number that a file holds, once its line is complete."""
    deadline = time.monotonic() + wait_s
    while True:
        text = path.read_text(encoding="ascii") if path.exists() else ""
        if text.endswith("\n"):
            return int(text)
        if time.monotonic() > deadline:
            return None
        time.sleep(_PAUSE_S)
