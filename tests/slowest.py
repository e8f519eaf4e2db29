"""Measure the processor time of every test, and name the twenty that take most.

``python tests/slowest.py`` runs the suite and rewrites ``SLOWEST.md`` beside this file. The
reasons in its last column are kept for tests that stay among the twenty; a new one gets a gap
that somebody has to fill. As a plugin (``pytest -p slowest --cpu-times=FILE``) it writes the
seconds of every test to a file, one line each.

The time is that of the processor, not of the clock, so that a busy machine does not change the
order: the worker's own time and that of the processes it started and waited for.
"""

import resource
from collections.abc import Generator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = Path(__file__).with_name("SLOWEST.md")
COUNT = 20
GAP = "REASON MISSING"
PROPERTY = "cpu_seconds"


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
