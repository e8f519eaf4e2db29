"""Real data sets for tests: fetched once into pytest's own cache, or the test is skipped.

The fixture ``real_data`` of ``conftest.py`` calls ``make_available``. A user's cache is neither
read nor written. Data that came and is not what was pinned is a failure, not a skip.
"""

import functools
from pathlib import Path

import pytest

from noisefloor.errors import FetchFailed
from noisefloor.tables.cache import CACHE_VARIABLE
from noisefloor.tables.data_sets import DATA_SETS, Archive
from noisefloor.tables.fetching import fetch_data_sets


def folder(config: pytest.Config, temporary: pytest.TempPathFactory) -> Path:
    """Return where tests keep real data: in ``.pytest_cache``, between runs, if there is one."""
    cache = getattr(config, "cache", None)  # absent where its plugin is turned off
    name = "noisefloor-data"
    return temporary.getbasetemp() / name if cache is None else Path(cache.mkdir(name))


def make_available(name: str, place: Path) -> None:
    """Fetch a data set into a folder, or skip the test and say why."""
    reason = _failure(DATA_SETS[name].archive, place)
    if reason is not None:
        pytest.skip(f"real data set {name} is not to be had: {reason}")


@functools.cache  # one attempt a session: pip tries for a while before it gives up
def _failure(archive: Archive, place: Path) -> str | None:
    """Fetch all that an archive holds, and return why that failed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(place))
        try:
            fetch_data_sets(it for it in DATA_SETS.values() if it.archive == archive)
        except FetchFailed as error:
            return str(error)
    return None
