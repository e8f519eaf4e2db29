"""Places: spellings meet at one node, and every node lies in the right one."""

from collections.abc import Callable

import numpy as np
import pytest

from generalisation_cases import labels_of, node_of, small_graph
from noisefloor.errors import BadParameter
from noisefloor.publication.text.generalisation import (
    PLACE_LEVELS,
    Hierarchy,
    PlaceGraph,
    shared_place_graph,
)
from noisefloor.tables import load_cities, load_countries

GRAPH = small_graph()


def chain(graph: PlaceGraph, name: str) -> list[str]:
    """Return what a name generalises to, itself first, without the root."""
    found = labels_of(graph, graph.hierarchy.chains(graph.find([name]))[0])
    return [label for label in found if label != "*"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Houston", ["Houston", "Harris County", "Texas", "United States", "North America"]),
        ("Toronto", ["Toronto", "Ontario", "Canada", "North America"]),
        ("Monaco", ["Monaco", "Europe"]),
        ("Europe", ["Europe"]),
        ("Narnia", []),
        ("", []),
        ("\N{ROCKET}", []),
    ],
)
def test_a_place_climbs_over_the_regions_that_are_known(name: str, expected: list[str]) -> None:
    assert chain(GRAPH, name) == expected


@pytest.mark.parametrize(
    "spellings",
    [
        ("United States", "the United States", "U.S.", "USA", "US", "america", "The U.S.A.'s"),
        ("United Kingdom", "the UK", "Great Britain", "U.K."),
        ("Île-de-France", "ile de france", "ILE-DE-FRANCE"),
        ("Saint-Denis", "St. Denis", "st denis"),
        ("New York City", "NYC", "new york city"),
        ("Houston", "HOUSTON", "Houston's", "Houston\u2019s", "Houston, Texas"),
    ],
)
def test_spellings_of_one_place_meet_at_one_node(spellings: tuple[str, ...]) -> None:
    found = set(GRAPH.find(spellings).tolist())
    assert len(found) == 1
    assert found != {0}


def test_a_name_that_several_places_have_is_the_most_populous_ones() -> None:
    assert chain(GRAPH, "Paris")[-2] == "France"


def test_a_region_goes_before_its_city_of_the_same_name() -> None:
    assert GRAPH.hierarchy.levels[node_of(GRAPH, "Tokyo")] == PLACE_LEVELS.index("state")
    assert GRAPH.hierarchy.levels[node_of(GRAPH, "Monaco")] == PLACE_LEVELS.index("country")


def test_a_region_has_the_population_of_its_cities() -> None:
    assert GRAPH.populations[node_of(GRAPH, "Texas")] == 2_300_000 + 150_000 + 1_300_000 + 25_000
    assert GRAPH.populations[0] == GRAPH.populations[GRAPH.hierarchy.levels == 4].sum()


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("University of Paris", "Paris"),
        ("Bank of Texas", "Texas"),
        ("New York City Opera", "New York City"),
        ("Harvard University", ""),
        ("Dallas London", "London"),
    ],
)
def test_the_longest_and_last_place_of_a_name_is_found(name: str, place: str) -> None:
    assert GRAPH.find_within(name) == node_of(GRAPH, place)


def test_levels_and_kept_nodes_end_a_climb() -> None:
    hierarchy = GRAPH.hierarchy
    nodes = GRAPH.find(["Houston", "Toronto", "Europe", "Narnia"])
    expected = ["Texas", "Ontario", "Europe", "*"]
    assert labels_of(GRAPH, hierarchy.at_level(nodes, 2)) == expected
    kept = np.zeros(hierarchy.size, dtype=np.bool_)
    kept[GRAPH.find(["United States", "Europe"])] = True
    expected = ["United States", "*", "Europe", "*"]
    assert labels_of(GRAPH, hierarchy.first_kept(nodes, kept)) == expected


def test_a_hierarchy_with_a_parent_that_is_not_above_is_refused() -> None:
    labels = np.array(["*", "a", "b"], dtype=np.object_)
    with pytest.raises(BadParameter, match="levels"):
        Hierarchy(labels, np.array([0, 2, 0]), np.array([2, 1, 1]))
    with pytest.raises(BadParameter, match="root"):
        Hierarchy(labels, np.array([1, 0, 0]), np.array([2, 1, 1]))


@pytest.mark.slow
def test_the_real_graph_has_every_city_and_continent(real_data: Callable[[str], None]) -> None:
    real_data("places")
    real_data("countries")
    cities, countries = load_cities(), load_countries()
    assert len(cities.cities) == 155_210
    assert (cities.counties == "").sum() == 32_556
    assert (cities.states == "").sum() == 259
    assert set(cities.countries) <= set(countries.names)
    assert len(set(countries.continents.values())) == 7
    shared_place_graph.cache_clear()
    graph = shared_place_graph()
    levels = np.bincount(graph.hierarchy.levels)
    assert levels.tolist() == [154_701, 23_068, 3_773, 252, 7, 1]
    assert graph.populations[0] == cities.populations.sum()
    assert chain(graph, "Los Angeles") == [
        *("Los Angeles", "Los Angeles County", "California", "United States", "North America")
    ]
    assert chain(graph, "the U.K.") == ["United Kingdom", "Europe"]
    shared_place_graph.cache_clear()
