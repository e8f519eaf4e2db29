"""What people, organisations, dates and numbers generalise to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generalisation_cases import small_graph, written
from noisefloor.publication.text.entities import EntityKind
from noisefloor.publication.text.generalisation import Ladders
from noisefloor.publication.text.generalisation.hierarchy import Step
from noisefloor.publication.text.generalisation.organisations import (
    organisation_chain,
    organisation_place_chain,
    places_of,
)
from noisefloor.publication.text.generalisation.people import person_chain
from noisefloor.publication.text.generalisation.quantities import (
    address_chain,
    date_chain,
    number_chain,
)

GRAPH = small_graph()
CHAINS = (person_chain, organisation_chain, date_chain, number_chain, address_chain)


def labels(chain: tuple[Step, ...]) -> list[tuple[int, str]]:
    return [(step.level, step.label) for step in chain]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("John Smith", [(0, "John Smith"), (1, "J. Smith"), (2, "J. S.")]),
        ("JOHN SMITH's", [(0, "John Smith"), (1, "J. Smith"), (2, "J. S.")]),
        ("Dr. John F. Smith Jr.", [(0, "John F Smith"), (1, "J. Smith"), (2, "J. S.")]),
        ("J. Smith", [(1, "J. Smith"), (2, "J. S.")]),
        ("J.S.", [(2, "J. S.")]),
        ("Smith", [(0, "Smith"), (2, "S.")]),
        ("Vincent van Gogh", [(0, "Vincent van Gogh"), (1, "V. van Gogh"), (2, "V. G.")]),
        ("De Niro", [(0, "de Niro"), (2, "N.")]),
        ("André Téchiné", [(0, "Andre Techine"), (1, "A. Techine"), (2, "A. T.")]),
        ("Jean-Claude O'Neil", [(0, "Jean Claude Oneil"), (1, "J. Oneil"), (2, "J. O.")]),
        ("山田太郎", [(0, "山田太郎")]),
        ("...", []),
        ("", []),
    ],
)
def test_a_name_shrinks_to_its_initials(name: str, expected: list[tuple[int, str]]) -> None:
    assert labels(person_chain(name)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Harvard University", ["Harvard University", "a university", "an organisation"]),
        ("the Bank of England", ["Bank of England", "a bank", "an organisation"]),
        ("Acme Inc.", ["Acme INC", "a company", "an organisation"]),
        ("University Hospital", ["University Hospital", "a university", "an organisation"]),
        ("Foo", ["FOO", "an organisation"]),
        ("&", []),
    ],
)
def test_an_organisation_climbs_through_its_kind(name: str, expected: list[str]) -> None:
    assert [step.label for step in organisation_chain(name)] == expected


def test_an_organisation_climbs_through_its_place() -> None:
    place = int(GRAPH.find(["Houston"])[0])
    found = organisation_place_chain("Acme", place, GRAPH)
    where = ["Houston", "Harris County", "Texas", "United States", "North America"]
    assert [step.label for step in found] == ["Acme", *(f"an organisation in {o}" for o in where)]
    assert [step.level for step in found] == [0, 1, 2, 3, 4, 5]


def test_the_place_of_an_organisation_is_in_its_name_or_nearest_in_its_document() -> None:
    firm, place = EntityKind.ORGANISATION, EntityKind.LOCATION
    _, mentions = written(
        [
            [("Tokyo", place), " and then at ", ("Acme", firm), " in ", ("Dallas", place)],
            [("Acme", firm)],
            [("Narnia", place), ("Bank of Texas", firm), (" Tokyo", place)],
            [("Tokyo", place), " ", ("Foo", firm), " in the far ", ("Dallas", place)],
        ]
    )
    found = [str(GRAPH.hierarchy.labels[node]) for node in places_of(mentions, GRAPH)]
    assert found == ["Dallas", "*", "Texas", "Tokyo"]


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        (date_chain("May 3, 1987"), ["may 3 1987", "1987", "the 1980s"]),
        (date_chain("1987"), ["1987", "the 1980s"]),
        (date_chain("last Tuesday"), ["last tuesday"]),
        (number_chain("1,234.5"), ["1,234.5", "1,000 to 10,000"]),
        (number_chain("0.5"), ["0.5", "0 to 1"]),
        (number_chain("seven"), ["seven"]),
        (address_chain(" A@b.org "), ["a@b.org"]),
    ],
)
def test_dates_numbers_and_addresses_climb(chain: tuple[Step, ...], expected: list[str]) -> None:
    assert [step.label for step in chain] == expected


@given(name=st.text(max_size=30))
def test_whatever_is_written_has_a_chain_that_climbs(name: str) -> None:
    for chain_of in CHAINS:
        levels = [step.level for step in chain_of(name)]
        assert levels == sorted(set(levels))


@given(name=st.text(alphabet="aAbBéÉ .-'\u2019JrDV\u30c9가", max_size=16))
def test_what_follows_in_a_chain_is_a_function_of_each_step(name: str) -> None:
    """Two mentions with one key have one label, whichever document comes first."""
    for chain_of in CHAINS:
        for place, step in enumerate(chain_of(name)):
            again = chain_of(step.label)
            if again and again[0].level == step.level and again[0].key == step.key:
                assert again == chain_of(name)[place:]


@pytest.mark.parametrize("path", ["kind", "place"])
def test_a_ladder_has_as_many_levels_as_its_hierarchies(path: str) -> None:
    ladders = Ladders(GRAPH, "place" if path == "place" else "kind")
    _, mentions = written([[("Acme", EntityKind.ORGANISATION), ("Tokyo", EntityKind.LOCATION)]])
    for kind, placed in ladders.place(mentions).items():
        assert placed.hierarchy.height == len(ladders.levels(kind))
