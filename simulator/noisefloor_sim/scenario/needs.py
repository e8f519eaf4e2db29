"""What has to be installed or fetched before a scenario can run."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from noisefloor.checks import missing_libraries
from noisefloor.tables import DATA_SETS, CacheState, cache_state
from noisefloor_sim.scenario.hashing import resolved
from noisefloor_sim.scenario.sweep import SweepPoint

_PROSE = ("name", "question", "expectation", "gates", "findings")


@dataclass(frozen=True, slots=True)
class Needs:
    """What the points of a scenario need beyond the core.

    Attributes:
        libraries: By the extra of noisefloor that brings them, under the names that pip knows.
        data_sets: Their names, in order.
    """

    libraries: Mapping[str, tuple[str, ...]]
    data_sets: tuple[str, ...]

    @property
    def missing_extras(self) -> tuple[str, ...]:
        """The extras of which a needed library is not installed."""
        found = self.libraries.items()
        return tuple(extra for extra, libraries in found if missing_libraries(libraries))

    @property
    def missing_data_sets(self) -> tuple[str, ...]:
        """The data sets that are not in the cache, or damaged there."""
        return tuple(name for name in self.data_sets if not is_cached(name))

    @property
    def missing(self) -> dict[str, str]:
        """Everything that is missing here, each with the command that brings it."""
        extras = {extra: install_line(extra) for extra in self.missing_extras}
        return extras | {name: fetch_line(name) for name in self.missing_data_sets}


def is_cached(data_set: str) -> bool:
    """Say whether a data set can be loaded."""
    return cache_state(DATA_SETS[data_set]) is CacheState.CACHED


def install_line(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'noisefloor[{extra}]'"


def fetch_line(data_set: str) -> str:
    """Return the command that fetches a data set."""
    return f"noisefloor data fetch {data_set}"


def needs_of(points: Iterable[SweepPoint]) -> Needs:
    """Return what some points need; nothing is imported, read or downloaded for it."""
    libraries: dict[str, set[str]] = {}
    data_sets: set[str] = set()
    for point in points:
        for block in point.scenario.pipelines.values():
            for extra, names in block.libraries.items():
                libraries.setdefault(extra, set()).update(names)
        settings = resolved(point.scenario)
        data_sets |= {one for key in settings.keys() - _PROSE for one in _texts(settings[key])}
    return Needs(
        {extra: tuple(sorted(names)) for extra, names in sorted(libraries.items())},
        tuple(sorted(data_sets & DATA_SETS.keys())),
    )


def _texts(value: object) -> Iterator[str]:
    """Yield every text in plain data: a data set is needed where some key has its name."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from _texts(item)
