"""The store as a process: the embedded server with a user for each service, until a signal.

The passwords are drawn once and kept in the data folder, in a file that is its owner's alone;
whoever starts the services reads them there. The server is probed with the operator's rights,
which the services themselves do not have: what it does not keep stands in the log.
"""

import logging
import os
import secrets
import signal
import time
from pathlib import Path

from noisefloor_services.security import store_users, write_acl_file
from noisefloor_services.settings import BadSetting, Settings
from noisefloor_services.store.durability import Durability, probe_server
from noisefloor_services.store.embedded import EmbeddedServer, ServerNotStarted
from noisefloor_services.store.server import Server

NAME = "store"
PASSWORDS = "passwords"
"""A file of the data folder: a user and its password a line."""

_FOLDER = "NOISEFLOOR_DATA_FOLDER"
_PAUSE_S = 0.05

_log = logging.getLogger(__name__)


def run_store(settings: Settings, namespace: str) -> None:
    """Run the store until SIGTERM or SIGINT.

    Args:
        settings: What it was told; it needs a data folder.
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
            time.sleep(_PAUSE_S)
            if not server.is_running:
                raise ServerNotStarted("The embedded server ended: its own log says why.")
    _log.info("stopped", extra={"fields": {"service": NAME}})


def kept_passwords(path: Path, names: tuple[str, ...]) -> dict[str, str]:
    """Return a password for each name: those that the file holds, and new ones, which it keeps."""
    held: dict[str, str] = {}
    if path.exists():
        if path.stat().st_mode & 0o077:
            raise BadSetting(_FOLDER, f"holds {path.name} that others may use: chmod 600")
        held = dict(line.split(" ", 1) for line in path.read_text("ascii").splitlines())
    made = {name: held.get(name) or secrets.token_urlsafe(32) for name in names}
    if made != held:
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
    durability, told = Durability(settings.durability), {"aclfile": f'"{rules}"'}
    port = settings.port
    return EmbeddedServer(folder, durability, settings=told, login=operator, port=port), operator


def _facts(server: EmbeddedServer, operator: tuple[str, str]) -> dict[str, object]:
    """Return what the server promises, and which promises it does not keep."""
    connection = Server(server.url_for(*operator))
    try:
        unkept = probe_server(connection, tries_waitaof=False).unkept(server.durability)
    finally:
        connection.close()
    return {"durability": server.durability.value, "unkept": [one.text for one in unkept]}
