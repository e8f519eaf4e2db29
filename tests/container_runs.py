"""The containers of the compose file as processes on this machine, without a container engine.

Commands, variables, secrets and health checks are those of the compose file and the Dockerfile.
Only what a container engine would do is done here: each process gets a folder of its own for its
secrets and its data, a port of its own, and loopback addresses for the names of hosts. Python sees
what the image has in it and nothing else.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from compose_rules import SECRETS_FOLDER, Tree, is_ours, mounted
from dockerfile_rules import Stage, exec_form
from image_contents import ROOT, link_packages
from noisefloor_services.store.embedded import server_binary

STORE_PORT = 6379


class Container:
    """One service of the compose file.

    Args:
        name: Of the service.
        service: What the compose file says of it.
        image: The last stage of the Dockerfile.
        folder: For all that is its own.
    """

    def __init__(self, name: str, service: Tree, image: Stage, folder: Path) -> None:
        self.name = name
        self.service = service
        self.image = image
        self.port = _free_port()
        self.secrets, self.data, self.written = (
            folder / one for one in ("secrets", "data", "written")
        )
        for one in (self.secrets, self.data, self.written):
            one.mkdir(parents=True)
        self.volumes = {
            place: folder.parent / "volumes" / volume
            for volume, place, *_ in (one.split(":") for one in service.get("volumes", []))
            if place != "/data"
        }
        for one in self.volumes.values():
            one.mkdir(parents=True, exist_ok=True)
        self.log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where its API is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        """The process that was started."""
        assert self._process is not None
        return self._process

    def mount(self, made: Path, hosts: Mapping[str, int]) -> None:
        """Put the secrets of the service in their place, and addresses in those of hosts."""
        for target, source in mounted(self.service).items():
            text = (made / source).read_text(encoding="ascii")
            for host, port in hosts.items():
                text = text.replace(f"@{host}:{STORE_PORT}/", f"@127.0.0.1:{port}/")
            place = self.secrets / Path(target).name
            place.write_text(text, encoding="ascii")
            place.chmod(0o444)

    def start(self, packages: Path) -> None:
        """Start its command with its variables."""
        command = [self._placed(word) for word in self.service["command"]]
        if is_ours(self.service):
            command = [*_python(exec_form(self.image.last("ENTRYPOINT"))), *command]
        else:
            where = ("--port", str(self.port), "--bind", "127.0.0.1")
            command = [str(server_binary()), *command[1:], *where]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                env=self.environment(packages),
                cwd=self.written,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def environment(self, packages: Path) -> dict[str, str]:
        """Return what the image and the compose file set, and where this machine's things are."""
        variables = {**self.image.variables} if is_ours(self.service) else {}
        variables |= {key: self._placed(value) for key, value in self._environment().items()}
        here = {"PATH": os.environ["PATH"], "HOME": str(self.written), "TMPDIR": str(self.written)}
        if is_ours(self.service):
            roots = (packages, ROOT / "platform", ROOT / "services")
            here |= {"PYTHONPATH": os.pathsep.join(map(str, roots))}
            here |= {"NOISEFLOOR_HOST": "127.0.0.1", "NOISEFLOOR_PORT": str(self.port)}
        return {**variables, **here}

    def health(self, packages: Path) -> "subprocess.CompletedProcess[str]":
        """Run its health check once."""
        return subprocess.run(
            self._health_command(),
            env=self.environment(packages),
            cwd=self.written,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )

    def wait_healthy(self, packages: Path) -> None:
        """Run its health check until it succeeds, some twenty seconds at most."""
        for _ in range(100):
            if self.health(packages).returncode == 0:
                return
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.2)
        raise AssertionError(f"{self.name} is not healthy: {self.log.read_text()}")

    def end(self) -> int:
        """Ask it to stop, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

    def kill(self) -> None:
        """End it, if it was started and still runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    def _environment(self) -> dict[str, str]:
        variables: dict[str, str] = self.service.get("environment", {})
        return variables

    def _placed(self, text: str) -> str:
        text = text.replace("$$", "$").replace(SECRETS_FOLDER, f"{self.secrets}/")
        for place, here in self.volumes.items():
            text = str(here) if text == place else text.replace(f"{place}/", f"{here}/")
        return str(self.data) if text == "/data" else text

    def _health_command(self) -> list[str]:
        test = self.service.get("healthcheck", {}).get("test")
        if test is None:
            return _python(exec_form(self.image.last("HEALTHCHECK")))
        kind, *words = map(self._placed, test)
        assert kind == "CMD-SHELL"
        (script,) = words
        return ["sh", "-c", script.replace("valkey-cli", f"{client_binary()} -p {self.port}")]


class Topology:
    """All services of the compose file."""

    def __init__(self, compose: Tree, image: Stage, folder: Path) -> None:
        self.packages = folder / "packages"
        self.packages.mkdir()
        link_packages(self.packages, "services")
        self.all = {
            name: Container(name, service, image, folder / name)
            for name, service in compose["services"].items()
        }

    def __getitem__(self, name: str) -> Container:
        return self.all[name]

    def start(self, *names: str) -> None:
        """Start services."""
        for name in names:
            self.all[name].start(self.packages)


@contextmanager
def topology(compose: Tree, image: Stage, folder: Path) -> Iterator[Topology]:
    """Make the containers, none of which is started yet, and make sure that all end."""
    made = Topology(compose, image, folder)
    with ExitStack() as stack:
        for one in made.all.values():
            stack.callback(one.kill)
        yield made


def client_binary() -> str | None:
    """Return valkey-cli, or redis-cli, which takes the same options; None without either."""
    return shutil.which("valkey-cli") or shutil.which("redis-cli")


def _python(command: Sequence[str]) -> list[str]:
    """Return a command of the image for the Python here, without what is installed here."""
    assert command[0] == "python"
    return [sys.executable, "-S", *command[1:]]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
