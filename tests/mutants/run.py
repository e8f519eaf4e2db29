"""Break the code on purpose, one small change at a time, and show what finds each change.

``make mutants`` runs all; ``python -m mutants.run --only NAME`` in ``tests/`` one of them,
``--list`` says what there is, ``--services`` runs what devices do against running services. First
every scenario runs unchanged: it has to end with 0 and without a finding. The exit code is 1 if a
change is not found, or something is found without one.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from mutants.mutant import Mutant, SmallScenario
from mutants.overlay import CaseResult, environment, make_copy, run_case
from mutants.table import MUTANTS

_CAUSE_WIDTH = 88

Case = TypeVar("Case")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked."""
    parser = argparse.ArgumentParser(description="Break the code, and show what finds it.")
    parser.add_argument("--only", action="append", metavar="NAME", help="this one; repeatable")
    parser.add_argument("--list", action="store_true", help="list mutants, and run none")
    parser.add_argument("--jobs", type=int, default=2, help="runs at one time")
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="set it"
    )
    parser.add_argument(
        "--services", action="store_true", help="what devices do, against running services"
    )
    given = parser.parse_args(arguments)
    chosen = _chosen(parser, given.only, on_device=given.services)
    if given.list:
        for mutant in chosen:
            print(f"{mutant.name:34} {mutant.flow:18} {mutant.broken}")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        if not given.services:
            return run_all(chosen, folder, given.settings, jobs=given.jobs)
        with running_services(folder / "services") as bus:
            return run_all(chosen, folder, given.settings, jobs=given.jobs, bus=bus)


def _chosen(
    parser: argparse.ArgumentParser, names: Sequence[str] | None, *, on_device: bool
) -> list[Mutant]:
    """Return the mutants that are asked for."""
    unknown = set(names or ()) - {mutant.name for mutant in MUTANTS}
    if unknown:
        parser.error(f"no such mutant: {', '.join(sorted(unknown))}; --list says what there is")
    return [
        mutant
        for mutant in MUTANTS
        if (not names or mutant.name in names) and (mutant.on_device or not on_device)
    ]


def run_all(
    mutants: Sequence[Mutant],
    folder: Path,
    settings: Sequence[str],
    *,
    jobs: int,
    bus: str = "memory",
) -> int:
    """Run honest scenarios and mutants, print a table, and return the exit code."""
    cases = {mutant.case: mutant.scenario for mutant in mutants}

    def honest(case: tuple[tuple[str, tuple[str, ...]], SmallScenario]) -> CaseResult:
        (_, own), small = case
        place = Path(tempfile.mkdtemp(dir=folder)) / "case"
        return run_case(place, small, [*own, *settings], bus=bus)

    def changed(mutant: Mutant) -> CaseResult:
        place = Path(tempfile.mkdtemp(dir=folder)) / "case"
        asked = [*mutant.settings, *settings]
        return run_case(place, mutant.scenario, asked, mutant=mutant, bus=bus)

    alarms = [
        f"{name} {' '.join(own)}".strip()
        for ((name, own), _), result in _in_order(honest, cases.items(), jobs)
        if not _print_honest(name, own, result)
    ]
    survivors = [
        mutant
        for mutant, result in _in_order(changed, mutants, jobs)
        if not _print_mutant(mutant, result)
    ]
    print(f"\n{len(mutants) - len(survivors)} of {len(mutants)} mutants found.")
    for mutant in survivors:
        print(f"SURVIVOR {mutant.name}: {mutant.broken}")
    for name in alarms:
        print(f"FALSE ALARM {name}: something is found in unchanged code")
    return 1 if survivors or alarms else 0


def _in_order(
    run: Callable[[Case], CaseResult], cases: Iterable[Case], jobs: int
) -> Iterator[tuple[Case, CaseResult]]:
    """Run cases in threads that wait for processes, and yield them in their order."""
    listed = list(cases)
    with ThreadPoolExecutor(jobs) as pool:
        yield from zip(listed, pool.map(run, listed), strict=True)


def _print_honest(name: str, settings: Sequence[str], result: CaseResult) -> bool:
    is_clean = result.code == 0 and not result.findings
    said = "nothing found" if is_clean else _last_words(result)
    case = f"honest {name} {' '.join(settings)}".strip()
    print(f"{case:60} {result.code} {said} {result.seconds:.1f} s", flush=True)
    return is_clean


def _print_mutant(mutant: Mutant, result: CaseResult) -> bool:
    found = result.named_by(mutant)
    is_found = result.code == 1 and found is not None
    if found is None:
        row = f"{'SURVIVED':12} {mutant.flow:18} {_last_words(result)}"
    else:
        row = f"{found.verdict:12} {found.flow:18} {found.cause[:_CAUSE_WIDTH]}"
    print(f"{mutant.name:34} {result.code} {row} {result.seconds:.1f} s", flush=True)
    return is_found


def _last_words(result: CaseResult) -> str:
    """Return what else a run says, to find out why it is not what was expected."""
    if result.findings:
        return "; ".join(f"{one.verdict} {one.flow}: {one.cause}" for one in result.findings)
    return (result.output.strip().splitlines() or ["no output"])[-1][:200]


@contextmanager
def running_services(folder: Path) -> Iterator[str]:
    """Start all services from unchanged code in a folder, and yield the bus that leads there."""
    make_copy(folder / "copy", None)
    state = folder / "state"
    _command(
        folder,
        "up",
        "--folder",
        str(state),
        "--experiments",
        "--durability",
        "memory",
        "--anchor",
        str(folder / "anchor"),
    )
    try:
        yield f"services:{state}"
    finally:
        _command(folder, "down", "--folder", str(state))


def _command(folder: Path, *arguments: str) -> None:
    """Run a command of unchanged code."""
    command = [sys.executable, "-m", "noisefloor_sim.cli", *arguments]
    subprocess.run(command, check=True, cwd=folder, env=environment(folder / "copy"))


if __name__ == "__main__":
    raise SystemExit(main())
