"""Places and what they lie in: cities, counties, states, countries, continents of GeoNames."""

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.text.generalisation.hierarchy import (
    ROOT,
    SUPPRESSED,
    Hierarchy,
    Nodes,
)
from noisefloor.publication.text.generalisation.spelling import spelling_key
from noisefloor.tables import CityTable, CountryTable, load_cities, load_countries

PLACE_LEVELS = ("city", "county", "state", "country", "continent")

_CITY, _COUNTY, _STATE, _COUNTRY, _CONTINENT = range(len(PLACE_LEVELS))

_COUNTRY_NAMES = {
    "US": ("us", "usa", "united states of america", "america", "states"),
    "GB": ("uk", "great britain", "britain", "united kingdom of great britain"),
    "AE": ("uae", "emirates"),
    "KR": ("korea", "republic of korea"),
    "KP": ("dprk",),
    "NL": ("holland",),
    "RU": ("russian federation",),
    "CN": ("prc", "peoples republic of china"),
    "CZ": ("czech republic",),
    "NZ": ("nz",),
}
"""Short forms, by the code of the country, as ``spelling_key`` writes them."""

_CITY_NAMES = {
    ("New York City", "US"): ("nyc",),
    ("Los Angeles", "US"): ("la",),
    ("San Francisco", "US"): ("sf", "frisco"),
    ("Washington", "US"): ("washington dc", "dc"),
    ("Las Vegas", "US"): ("vegas",),
    ("Saint Petersburg", "RU"): ("leningrad",),
    ("Mumbai", "IN"): ("bombay",),
}


@dataclass(frozen=True, slots=True, eq=False)
class PlaceGraph:
    """Places in a hierarchy, and the node of every spelling.

    A name that several places have is the most populous one's; regions have the population of
    their cities together, so that a region goes before its city of the same name. A place that
    is not in the graph is at the root.

    Attributes:
        hierarchy: Cities at level 0, then ``PLACE_LEVELS``, then the root.
        populations: Of each node.
        spellings: The node of each spelling.
    """

    hierarchy: Hierarchy
    populations: NDArray[np.int64]
    spellings: Mapping[str, int]

    def find(self, names: Iterable[str]) -> Nodes:
        """Return the node of each name; of ``Paris, France`` that of the first part."""
        return np.array([self._find(name) for name in names], dtype=np.int64)

    def _find(self, name: str) -> int:
        node = self.spellings.get(spelling_key(name), ROOT)
        if node == ROOT and "," in name:
            return self.spellings.get(spelling_key(name.partition(",")[0]), ROOT)
        return node

    def most_populous(self, level: int, count: int) -> list[str]:
        """Return the names of the most populous places of a level that have their name alone."""
        here = np.flatnonzero(self.hierarchy.levels == level)
        order = here[np.lexsort((here, -self.populations[here]))]
        names = (str(self.hierarchy.labels[node]) for node in order)
        found = zip(order.tolist(), names, strict=True)
        own = (name for node, name in found if self.spellings.get(spelling_key(name)) == node)
        return list(itertools.islice(own, count))

    def find_within(self, name: str) -> int:
        """Return the longest place among the words of a name; of equals, the last one's."""
        words = spelling_key(name).split()
        for length in range(min(len(words), 4), 0, -1):
            for start in range(len(words) - length, -1, -1):
                node = self.spellings.get(" ".join(words[start : start + length]), ROOT)
                if node != ROOT and self.hierarchy.levels[node] != _COUNTY:
                    return node
        return ROOT


class _Node(NamedTuple):
    label: str
    parent: int
    level: int


class _Builder:
    """Nodes in the order in which they are met, regions before what lies in them."""

    def __init__(self) -> None:
        self.nodes = [_Node(SUPPRESSED, ROOT, len(PLACE_LEVELS))]
        self.places: dict[tuple[int, int, str], int] = {}
        self.spellings: list[tuple[str, int]] = []

    def node(self, label: str, parent: int, level: int) -> int:
        key = (level, parent, spelling_key(label))
        place = self.places.setdefault(key, len(self.nodes))
        if place == len(self.nodes):
            self.nodes.append(_Node(label, parent, level))
            self.spellings.append((key[2], place))
        return place


def place_graph(cities: CityTable, countries: CountryTable) -> PlaceGraph:
    """Build the graph of some cities and countries."""
    builder = _Builder()
    of_country = _add_countries(builder, countries)
    leaves = np.full(len(cities.cities), ROOT, dtype=np.int64)
    columns = (cities.cities, cities.counties, cities.states, cities.countries)
    for row, (city, county, state, code) in enumerate(zip(*columns, strict=True)):
        above = of_country.get(code, ROOT)
        if state:
            above = builder.node(state, above, _STATE)
        if county:
            above = builder.node(county, above, _COUNTY)
        leaves[row] = builder.node(city, above, _CITY)
        for name in _CITY_NAMES.get((city, code), ()):
            builder.spellings.append((name, int(leaves[row])))
    labels, parents, levels = zip(*builder.nodes, strict=True)
    hierarchy = Hierarchy(
        np.array(labels, dtype=np.object_),
        np.array(parents, dtype=np.int64),
        np.array(levels, dtype=np.int64),
    )
    populations = _populations(hierarchy, leaves, cities.populations)
    return PlaceGraph(hierarchy, populations, _spellings(builder.spellings, populations, levels))


@functools.cache
def shared_place_graph() -> PlaceGraph:
    """Return the graph of the data sets ``places`` and ``countries``, built once.

    Raises:
        MissingData: One of them was not fetched; the text names the command that does.
    """
    return place_graph(load_cities(), load_countries())


def _add_countries(builder: _Builder, countries: CountryTable) -> dict[str, int]:
    found = {}
    for code in sorted(countries.names):
        continent = builder.node(countries.continents[code], ROOT, _CONTINENT)
        found[code] = builder.node(countries.names[code], continent, _COUNTRY)
        for name in _COUNTRY_NAMES.get(code, ()):
            builder.spellings.append((name, found[code]))
    return found


def _populations(
    hierarchy: Hierarchy, leaves: Nodes, populations: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the population of each node: that of all cities in it."""
    found = np.zeros(hierarchy.size, dtype=np.int64)
    np.add.at(found, leaves, populations)
    for level in range(hierarchy.height):
        here = np.flatnonzero(hierarchy.levels == level)
        np.add.at(found, hierarchy.parents[here], found[here])
    return found


def _spellings(
    given: Sequence[tuple[str, int]], populations: NDArray[np.int64], levels: Sequence[int]
) -> dict[str, int]:
    """Return the node of each spelling: the most populous, then the highest, then the first."""
    order = sorted(given, key=lambda one: (populations[one[1]], levels[one[1]], -one[1]))
    found = dict(order)
    found.pop("", None)
    return found
