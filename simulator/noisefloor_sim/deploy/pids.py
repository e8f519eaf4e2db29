"""Facts about a process by its number, and signals to the one that is meant and to no other.

Numbers are used again: a process is known by its number and the moment of its start.
"""

import os
import signal
import subprocess
from pathlib import Path

_PROC = Path("/proc")


def birth(pid: int) -> str | None:
    """Return what tells a process from every other of the same number; None if it is gone.

    One that ended and waits to be collected by its parent is gone.
    """
    if not (_PROC / "self" / "stat").exists():
        return _ps(pid, "lstart")
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    state, *fields = text.rpartition(")")[2].split()  # a name may hold blanks and brackets
    return None if state in "ZX" else f"{boot}:{fields[18]}"


def is_running(pid: int, born: str) -> bool:
    """Whether the process that was started still runs."""
    return pid > 0 and birth(pid) == born


def send(pid: int, born: str, number: signal.Signals) -> None:
    """Send a signal to the process that was started; to no other, and to none if it is gone."""
    if is_running(pid, born):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return


def memory_bytes(pid: int) -> int:
    """Return the resident memory of a process, 0 if it is gone."""
    if not (_PROC / "self" / "statm").exists():
        return int(_ps(pid, "rss") or 0) * 1024
    try:
        pages = int((_PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _ps(pid: int, field: str) -> str | None:
    """Ask ps, where there is no /proc."""
    asked = ["ps", "-o", f"stat=,{field}=", "-p", str(pid)]
    state, _, value = subprocess.run(  # noqa: S603  our own command
        asked, capture_output=True, text=True, check=False
    ).stdout.partition(" ")
    return None if not state or state.startswith("Z") else value.strip()
