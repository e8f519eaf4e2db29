"""What every test gets: a run of its own, a hypothesis profile, and a seed that can be repeated.

``NOISEFLOOR_PROFILE=nightly`` asks for many examples and a fresh seed; the default, ``ci``,
repeats itself exactly. A fresh seed is printed; ``--seed`` brings it back.
"""

import gc
import logging
import os
import secrets
import sys
from collections.abc import Callable, Generator, Iterator

import pytest
from hypothesis import settings

import real_data as real_data_sets
from noisefloor.randomness import new_run
from noisefloor.tables.cache import CACHE_VARIABLE
from properties import DEFAULT_EXAMPLES, NIGHTLY_FACTOR, PROFILE

FIXED_SEED = 20_261_116
SEED = pytest.StashKey[int]()
NOTES = pytest.StashKey[list[str]]()

# Tests run one to a core: torch's threads would spin against those of the other worker.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Hundreds of processes are started: without stored bytecode each compiles the whole tree, which is
# half of its time, and each worker rewrites the asserts of all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# No deadlines: a test never times anything.
settings.register_profile(
    "ci", max_examples=DEFAULT_EXAMPLES, derandomize=True, database=None, deadline=None
)
settings.register_profile(
    "nightly", max_examples=DEFAULT_EXAMPLES * NIGHTLY_FACTOR, deadline=None, print_blob=True
)
settings.load_profile(PROFILE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run choose the seed of its statistical tests."""
    group = parser.getgroup("noisefloor")
    group.addoption("--fresh-seed", action="store_true", help="draw the statistical seed anew")
    group.addoption("--seed", type=int, help="the statistical seed, to repeat a nightly run")
    group.addoption("--examples", type=int, help="requests to each operation of the services")


def pytest_configure(config: pytest.Config) -> None:
    """Settle the seed once, before anything is collected."""
    given: int | None = config.getoption("--seed")
    is_fresh = bool(config.getoption("--fresh-seed")) or PROFILE == "nightly"
    drawn = secrets.randbits(48) if is_fresh else FIXED_SEED
    config.stash[SEED] = drawn if given is None else given
    config.stash[NOTES] = []


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what collecting makes, a million objects that stay, out of garbage collection.

    Looking through all of them takes half a second each time. What tests make is collected.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_report_header(config: pytest.Config) -> str:
    """Print the seed first, should the run not reach its end."""
    return f"noisefloor: profile {PROFILE}, statistical seed {config.stash[SEED]}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests noted, and a seed that is not the fixed one: a quiet run has no header."""
    for line in terminalreporter.config.stash[NOTES]:
        terminalreporter.write_line(line)
    seed = terminalreporter.config.stash[SEED]
    if seed != FIXED_SEED:
        terminalreporter.write_line(f"Statistical seed {seed}: repeat with --seed={seed}")


@pytest.fixture(autouse=True, scope="session")
def state_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what tests leave in the user's state folder, such as anchors, to this run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def run_of_its_own() -> Iterator[None]:
    """Let every test open any path, whatever other tests opened."""
    with new_run():
        yield


@pytest.fixture(autouse=True)
def logs_of_its_own() -> Iterator[None]:
    """Remove the log handlers that a test set up.

    Their stream is closed with the test, and a service of a later test would log to it. pytest's
    own handlers are subclasses, and stay.
    """
    before = set(logging.root.handlers)
    yield
    for handler in set(logging.root.handlers) - before:
        if type(handler) is logging.StreamHandler:
            logging.root.removeHandler(handler)


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """Return the seed of the statistical tests: fixed on commits, fresh at night."""
    return pytestconfig.stash[SEED]


@pytest.fixture(scope="session")
def note(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Return a function that has a line printed at the end of the run."""
    return pytestconfig.stash[NOTES].append


@pytest.fixture
def real_data(
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[str], None]:
    """Return a function that makes a real data set loadable, or skips the test."""
    place = real_data_sets.folder(pytestconfig, tmp_path_factory)
    monkeypatch.setenv(CACHE_VARIABLE, str(place))
    return lambda name: real_data_sets.make_available(name, place)
