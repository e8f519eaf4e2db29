"""Cities, countries and continents of GeoNames as columns, out of the cache of data sets."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.tables.cache import read_cached
from noisefloor.tables.data_sets import COUNTRIES, PLACES

Names = NDArray[np.object_]


@dataclass(frozen=True, slots=True, eq=False)
class CityTable:
    """Cities with the regions they lie in; a region that is not known is an empty text.

    Attributes:
        cities: Names.
        counties: Of the regions within a state.
        states: Of the regions within a country.
        countries: Codes of two letters.
        populations: Of the cities.
    """

    cities: Names
    counties: Names
    states: Names
    countries: Names
    populations: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CountryTable:
    """Countries by their codes of two letters.

    Attributes:
        names: In English.
        continents: The name of each one's continent.
    """

    names: Mapping[str, str]
    continents: Mapping[str, str]


def load_cities() -> CityTable:
    """Return the cities of the data set ``places``.

    Raises:
        MissingData: It was not fetched; the text names the command that does.
        DamagedData: It is not what was pinned.
    """
    rows: list[dict[str, Any]] = json.loads(
        gzip.decompress(read_cached(PLACES, PLACES.members[0]))
    )
    return city_table(rows)


def city_table(rows: list[dict[str, Any]]) -> CityTable:
    """Make columns of cities as the file has them, one object each."""
    cities, counties, states, countries = (
        np.array([row.get(name, "") for row in rows], dtype=np.object_)
        for name in ("city", "county", "state", "country_code")
    )
    populations = np.array([row.get("population", 0) for row in rows], dtype=np.int64)
    return CityTable(cities, counties, states, countries, populations)


def load_countries() -> CountryTable:
    """Return the countries of the data set ``countries``; errors are those of ``load_cities``."""
    countries, continents = (json.loads(read_cached(COUNTRIES, one)) for one in COUNTRIES.members)
    return country_table(countries, continents)


def country_table(countries: Mapping[str, Any], continents: Mapping[str, Any]) -> CountryTable:
    """Make a table of countries and continents as the files have them, by their codes."""
    return CountryTable(
        {code: str(one["name"]) for code, one in countries.items()},
        {code: str(continents[one["continentcode"]]["name"]) for code, one in countries.items()},
    )
