"""Measure the processor time of every test, and name the twenty that take most.

``python tests/slowest.py`` runs the suite and rewrites ``SLOWEST.md`` beside this file; with names
of files it takes the seconds from there instead. Reasons in the page are kept for tests that stay
among the twenty; a new one gets a gap that somebody has to fill. As a plugin
(``pytest -p slowest --cpu-times=FILE``) it writes the seconds of every test to a file.

The time is that of the processor, so that a busy machine does not change the order: the worker's
own and that of the processes which it started and waited for.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PAGE = HERE / "SLOWEST.md"
COUNT = 20
GAP = "REASON MISSING"
PROPERTY = "cpu_seconds"
HEADER = """# The twenty slowest tests

Processor seconds over all parameters of a test. `python tests/slowest.py` measures again and
keeps the reasons.

| seconds | runs | test | why it is worth them |
|---|---|---|---|
"""
ROW = re.compile(r"^\| [\d.]+ \| \d+ \| `(?P<test>\S+)` \| (?P<reason>.+) \|$", re.M)


def processor_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


class Meter:
    """Adds the processor time to each test's last report; the controller collects them."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._start = 0.0
        self._seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Start the meter before the fixtures of a test are made."""
        self._start = processor_seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self,
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Read the meter once the fixtures of a test are gone."""
        report = yield
        if report.when == "teardown":
            report.user_properties.append((PROPERTY, processor_seconds() - self._start))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take down what a worker measured."""
        for name, value in report.user_properties:
            if report.when == "teardown" and name == PROPERTY:
                self._seconds[report.nodeid] = float(str(value))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the seconds, the slowest test first; workers leave this to the controller."""
        if not hasattr(session.config, "workerinput"):
            ordered = sorted(self._seconds.items(), key=lambda pair: -pair[1])
            lines = [f"{seconds:.3f}\t{name}\n" for name, seconds in ordered]
            self._target.write_text("".join(lines), encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run say where the seconds go."""
    parser.addoption("--cpu-times", type=Path, required=True, help="file for the seconds of tests")


def pytest_configure(config: pytest.Config) -> None:
    """Start measuring."""
    config.pluginmanager.register(Meter(config.getoption("--cpu-times")), "noisefloor-meter")


def page(seconds: Iterable[tuple[float, str]], old: str) -> str:
    """Return the page for the seconds of all tests, with the reasons that the old page gives."""
    reasons = {row["test"]: row["reason"] for row in ROW.finditer(old)}
    totals: dict[str, float] = defaultdict(float)
    runs: Counter[str] = Counter()
    for spent, name in seconds:
        test = name.partition("[")[0]
        totals[test] += spent
        runs[test] += 1
    rows = [
        f"| {spent:.1f} | {runs[test]} | `{test}` | {reasons.get(test, GAP)} |\n"
        for test, spent in sorted(totals.items(), key=lambda pair: -pair[1])[:COUNT]
    ]
    return HEADER + "".join(rows)


def read_seconds(files: Iterable[Path]) -> list[tuple[float, str]]:
    """Return the seconds and names that the plugin wrote."""
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return [(float(spent), name) for spent, _, name in (line.partition("\t") for line in lines)]


def measure(target: Path) -> None:
    """Run the suite with the plugin."""
    words = ["-p", "slowest", f"--cpu-times={target}", "-n", "auto", "--dist", "loadfile"]
    # Plugins are imported before pytest has read where modules of tests are.
    places = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, "-m", "pytest", *words]
    subprocess.run(command, cwd=HERE.parent, env=environment, check=False)


def main(given: list[str]) -> None:
    """Rewrite the page."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(name) for name in given] or [Path(folder, "seconds")]
        if not given:
            measure(files[0])
        old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        PAGE.write_text(page(read_seconds(files), old), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
