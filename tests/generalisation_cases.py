"""A small world of places, made-up texts with mentions, and hierarchies without a meaning."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.text.entities import EntityKind, Mentions
from noisefloor.publication.text.generalisation import Hierarchy, PlaceGraph, place_graph
from noisefloor.randomness import Source
from noisefloor.tables import CityTable, CountryTable

CITIES = (
    ("Houston", "Harris County", "Texas", "US", 2_300_000),
    ("Pasadena", "Harris County", "Texas", "US", 150_000),
    ("Dallas", "Dallas County", "Texas", "US", 1_300_000),
    ("Paris", "Lamar County", "Texas", "US", 25_000),
    ("New York City", "", "New York", "US", 8_800_000),
    ("Toronto", "", "Ontario", "CA", 2_700_000),
    ("Paris", "", "Île-de-France", "FR", 2_100_000),
    ("Saint-Denis", "", "Île-de-France", "FR", 111_000),
    ("London", "Greater London", "England", "GB", 8_900_000),
    ("Tokyo", "", "Tokyo", "JP", 8_300_000),
    ("Monaco", "", "", "MC", 32_000),
)
COUNTRIES = {
    "US": ("United States", "North America"),
    "CA": ("Canada", "North America"),
    "FR": ("France", "Europe"),
    "GB": ("United Kingdom", "Europe"),
    "JP": ("Japan", "Asia"),
    "MC": ("Monaco", "Europe"),
}
NAMES = (
    "John Smith",
    "Jane Smith",
    "Kate Smith",
    "J. Smith",
    "Ada Lovelace",
    "Alan Turing",
    "Prince",
    "山田太郎",
)
FIRMS = ("Harvard University", "Bank of Texas", "Acme Inc.", "Foo", "University of Paris")
WHERE = (*dict.fromkeys(row[0] for row in CITIES), "Texas", "U.S.", "the UK", "Europe", "Narnia")


def small_graph() -> PlaceGraph:
    """Return a graph of eleven cities."""
    columns = [np.array(column, dtype=np.object_) for column in list(zip(*CITIES, strict=True))]
    cities, counties, states, countries, populations = columns
    return place_graph(
        CityTable(cities, counties, states, countries, populations.astype(np.int64)),
        CountryTable(
            {code: names[0] for code, names in COUNTRIES.items()},
            {code: names[1] for code, names in COUNTRIES.items()},
        ),
    )


def node_of(graph: PlaceGraph, name: str) -> int:
    """Return the node of a name."""
    return int(graph.find([name])[0])


def labels_of(graph: PlaceGraph, nodes: NDArray[np.int64]) -> list[str]:
    """Return how nodes are written."""
    return [str(label) for label in graph.hierarchy.labels[nodes]]


Part = str | tuple[str, EntityKind]


def written(documents: Sequence[Sequence[Part]]) -> tuple[list[str], Mentions]:
    """Join parts to texts; a part with a kind is a mention."""
    texts, spans = [], []
    for row, parts in enumerate(documents):
        text = ""
        for part in parts:
            if isinstance(part, tuple):
                spans.append((row, len(text), len(text) + len(part[0]), int(part[1])))
                text += part[0]
            else:
                text += part
        texts.append(text)
    columns = [list(column) for column in zip(*spans, strict=True)] or [[], [], [], []]
    return texts, Mentions.of(texts, *columns)


def made_up(count: int, source: Source, most: int = 4) -> list[list[Part]]:
    """Return documents with some mentions of people, places and organisations each."""
    sizes = source.stage("sizes").below(most + 1, count).tolist()
    pools = (
        (EntityKind.PERSON, NAMES),
        (EntityKind.LOCATION, WHERE),
        (EntityKind.LOCATION, WHERE),
        (EntityKind.ORGANISATION, FIRMS),
    )
    draws = iter(source.stage("mentions").below(1 << 16, 2 * sum(sizes)).tolist())
    documents: list[list[Part]] = []
    for size in sizes:
        parts: list[Part] = ["A text"]
        for _ in range(size):
            kind, names = pools[next(draws) % len(pools)]
            parts += [" of ", (names[next(draws) % len(names)], kind)]
        documents.append(parts)
    return documents


def random_hierarchy(height: int, width: int, source: Source) -> Hierarchy:
    """Return a hierarchy with some nodes on each level and random parents, levels skipped too."""
    levels = np.concatenate([[height], np.repeat(np.arange(height), width)])
    parents = np.zeros(len(levels), dtype=np.int64)
    draws = source.stage("parents").below(1 << 16, len(levels)).astype(np.int64)
    for node in range(1, len(levels)):
        above = np.append(np.flatnonzero(levels > levels[node]), 0)
        near = above[levels[above] == levels[above].min()]
        some = near if draws[node] % 4 else above
        parents[node] = some[draws[node] % len(some)]
    labels = np.array(["*", *(f"n{node}" for node in range(1, len(levels)))], dtype=np.object_)
    return Hierarchy(labels, parents, levels)
