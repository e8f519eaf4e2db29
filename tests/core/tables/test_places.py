"""Places: columns of cities and countries; what is not in the cache is an error."""

import gzip
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from noisefloor.errors import DamagedData, MissingData
from noisefloor.tables import load_cities, load_countries, places
from noisefloor.tables.data_sets import COUNTRIES, PLACES, DataSet

CITIES = [
    {"country_code": "US", "city": "Houston", "population": 7, "state": "Texas", "county": "H"},
    {"country_code": "MC", "city": "Monaco", "population": 3},
]


def pinned(data: DataSet, contents: list[bytes], folder: Path) -> DataSet:
    """Put files into the cache, and return the data set that pins them."""
    members = []
    for member, content in zip(data.members, contents, strict=True):
        (folder / data.name).mkdir(exist_ok=True)
        (folder / data.name / member.file).write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        members.append(replace(member, sha256=sha256, size=len(content)))
    return replace(data, members=tuple(members))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Start from an empty cache."""
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path))
    return tmp_path


def test_cities_have_a_column_each_and_gaps_are_empty(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = gzip.compress(json.dumps(CITIES).encode())
    monkeypatch.setattr(places, "PLACES", pinned(PLACES, [content], cache))
    found = load_cities()
    assert found.cities.tolist() == ["Houston", "Monaco"]
    assert found.counties.tolist() == ["H", ""]
    assert found.states.tolist() == ["Texas", ""]
    assert found.countries.tolist() == ["US", "MC"]
    assert found.populations.tolist() == [7, 3]


def test_countries_have_names_and_continents(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = [
        json.dumps({"US": {"name": "United States", "continentcode": "NA"}}).encode(),
        json.dumps({"NA": {"name": "North America"}}).encode(),
    ]
    monkeypatch.setattr(places, "COUNTRIES", pinned(COUNTRIES, contents, cache))
    found = load_countries()
    assert found.names == {"US": "United States"}
    assert found.continents == {"US": "North America"}


def test_places_that_were_not_fetched_are_an_error_that_names_the_command() -> None:
    with pytest.raises(MissingData, match="noisefloor data fetch places"):
        load_cities()
    with pytest.raises(MissingData, match="noisefloor data fetch countries"):
        load_countries()


def test_a_damaged_file_is_refused(cache: Path) -> None:
    (cache / "places").mkdir()
    (cache / "places" / PLACES.members[0].file).write_bytes(b"other")
    with pytest.raises(DamagedData, match="SHA-256"):
        load_cities()
