"""Services as processes of their own, which can be killed, paused, stopped and brought back."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from noisefloor.errors import NoisefloorError

TIMEOUT_S = 30.0
"""For one answer; a request without an answer in this time is a fault."""

BROKEN, NOBODY = 0, -1
"""Instead of a status."""

MODULE = "noisefloor_services"
_START_S = 60.0
_STOP_S = 30.0
_PAUSE_S = 0.01
_LISTENING = re.compile(rb'"listening".*"port": (\d+)')


class ChaosTimeout(NoisefloorError):
    """Something that has to come did not come for a minute."""


@dataclass(frozen=True, slots=True)
class ServiceReply:
    """An answer, or that there was none.

    Attributes:
        status: Of HTTP; BROKEN if the connection broke, NOBODY if no process listens.
        headers: By name in lower case.
        body: As it came.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The body as JSON (Any: what it is depends on the route)."""
        return json.loads(self.body)


class Connection:
    """A connection that is opened again whenever it breaks; nothing is sent twice by itself.

    Args:
        port: On the loopback address.
    """

    def __init__(self, port: int) -> None:
        self._made = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> ServiceReply:
        """Send one request; a hang of half a minute raises TimeoutError."""
        try:
            self._made.request(method, path, body, dict(headers or {}))
            answer = self._made.getresponse()
            received = {name.lower(): value for name, value in answer.getheaders()}
            return ServiceReply(answer.status, received, answer.read())
        except TimeoutError:
            self.close()
            raise
        except ConnectionRefusedError:
            self.close()
            return ServiceReply(NOBODY)
        except (OSError, http.client.HTTPException):
            self.close()
            return ServiceReply(BROKEN)

    def close(self) -> None:
        """Close it; the next request opens it again."""
        self._made.close()


class ServiceProcess:
    """One ``python -m noisefloor_services NAME``.

    Args:
        name: Of the service, or of another module's first argument.
        folder: For its logs.
        settings: Without their prefix: ``{"REDIS_URL": ...}``.
        options: Further arguments.
        module: What is run.
        listens: Whether it has an address; a bare worker has none.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        settings: Mapping[str, str],
        *options: str,
        module: str = MODULE,
        listens: bool = True,
    ) -> None:
        self.name = name
        self.port = 0
        self._folder = folder
        self._settings = dict(settings)
        self._command = [sys.executable, "-m", module, name, *options]
        self._listens = listens
        self._starts = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process id, also after its end."""
        return self._running.pid

    def start(self) -> None:
        """Start it, at the same address as before, and wait until it listens."""
        self.launch()
        self.wait_listening()

    def launch(self) -> None:
        """Start it, and do not wait."""
        self._starts += 1
        with self._log.open("wb") as file:
            self._process = subprocess.Popen(  # noqa: S603  our own services
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=self._environment(),
                start_new_session=True,
            )

    def wait_listening(self) -> None:
        """Wait until it listens, if it does at all."""
        if self._listens:
            self.port = self._found_port(self._log)

    def kill(self) -> None:
        """End it where it stands."""
        self.send(signal.SIGKILL)
        self._running.wait(_STOP_S)

    def terminate(self) -> tuple[int, float]:
        """Ask it to stop; return its exit code and how long it took."""
        start_s = time.monotonic()
        self.send(signal.SIGTERM)
        try:
            code = self._running.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ChaosTimeout(f"The {self.name} does not stop.") from None
        return code, time.monotonic() - start_s

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if it runs."""
        if self._running.poll() is None:
            self._running.send_signal(number)

    def stop(self) -> None:
        """Make sure that it is gone, whatever its state."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait(_STOP_S)

    def ask(
        self, method: str, path: str, **options: Any
    ) -> ServiceReply:  # Any: as Connection.ask
        """Send one request on a connection of its own."""
        connection = Connection(self.port)
        try:
            return connection.ask(method, path, **options)
        finally:
            connection.close()

    def wait_ready(self, *, is_ready: bool = True) -> float:
        """Wait until it says that it is ready, or that it is not; return how long that took."""
        start_s = time.monotonic()
        while time.monotonic() < start_s + _START_S:
            if (self.ask("GET", "/readyz").status == 200) == is_ready:
                return time.monotonic() - start_s
            time.sleep(_PAUSE_S)
        raise ChaosTimeout(f"The {self.name} does not become {'' if is_ready else 'un'}ready.")

    @property
    def _log(self) -> Path:
        return self._folder / f"{self.name}-{self._starts}.log"

    @property
    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise ChaosTimeout(f"The {self.name} was not started.")
        return self._process

    def _environment(self) -> dict[str, str]:
        """Return what it gets: nothing of ours that is a setting of a service."""
        kept = {key: value for key, value in os.environ.items() if "NOISEFLOOR_" not in key}
        kept["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        given = {**self._settings, "PORT": str(self.port)}
        return kept | {f"NOISEFLOOR_{key}": value for key, value in given.items()}

    def _found_port(self, log: Path) -> int:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline and self._running.poll() is None:
            found = _LISTENING.search(log.read_bytes())
            if found:
                return int(found.group(1))
            time.sleep(_PAUSE_S)
        raise ChaosTimeout(f"The {self.name} does not listen: see {log}.")
