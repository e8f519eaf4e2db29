"""Services as processes of their own, and what the system says of them: CPU time and memory."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.worker import ONE_THREAD, ROOT

_TICKS = os.sysconf("SC_CLK_TCK")
_START_S = 30.0


class Process:
    """One service, started as anybody would start it; of this tree, or of another one."""

    def __init__(
        self, name: str, folder: Path, settings: Mapping[str, str], root: Path = ROOT
    ) -> None:
        self._log = folder / f"{name}.log"
        own = root / ".venv/bin/python"
        python = str(own) if root != ROOT and own.exists() else sys.executable
        kept = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        roots = os.pathsep.join(str(root / one) for one in ("platform", "services"))
        variables = {f"NOISEFLOOR_{key}": value for key, value in settings.items()}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603  our own command
                [python, "-m", "noisefloor_services", name],
                stdout=log,
                stderr=log,
                env={**kept, **ONE_THREAD, "PYTHONPATH": roots, **variables},
            )
        self.pid = self._process.pid

    @property
    def port(self) -> int:
        """Wait until it listens, and return where."""
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            found = re.search(r'"listening".*"port": (\d+)', self._log.read_text())
            if found:
                return int(found.group(1))
            time.sleep(0.02)
        raise RuntimeError(f"a service did not start: {self._log.read_text()[-2000:]}")

    def pause(self) -> None:
        """Let it hang."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """Ask it to stop, and end it if it does not."""
        self.resume()
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(5)


@contextmanager
def running(
    name: str, folder: Path, settings: Mapping[str, str], root: Path = ROOT
) -> Iterator[Process]:
    """Run a service, and make sure that it ends."""
    made = Process(name, folder, settings, root)
    try:
        yield made
    finally:
        made.end()


def cpu_s(pid: int) -> float:
    """Return the user and system time of a process, all of its threads; 0 for no process."""
    if not pid:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_mb(pid: int, entry: str = "VmRSS") -> float:
    """Return resident memory, or its peak since the start (``VmHWM``)."""
    found = re.search(rf"{entry}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found.group(1)) / 1024 if found else 0.0
