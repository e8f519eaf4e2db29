"""A small labelled table, whose label follows from two of its columns, for methods that learn."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables import Records, Schema
from noisefloor.tables.schema import Bins, Categories, schema_fields

ADD, SWAP = Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE
SCHEMA = Schema(
    "one visit",
    {
        "age": Bins((0, 18, 65, 120)),
        "country": Categories(("CH", "DE")),
        "pages": Categories((1, 2, 3, 4)),
        "buys": Categories(("no", "yes")),
    },
)


def a_cost(epsilon: float = 1.0, neighbours: Neighbours = ADD, delta: float = 1e-5) -> Guarantee:
    """Return a cost in the central model."""
    return Guarantee(epsilon, neighbours, delta, TrustModel.CENTRAL)


def columns(count: int, seed: int = 1) -> dict[str, NDArray[Any]]:
    """Return a table: who has seen three pages or more and is of age buys."""
    with new_run():
        draw = SeededSource(seed, "visits").generator()
        age = draw.integers(0, 120, count)
        pages = draw.integers(1, 5, count)
        country = np.array(["CH", "DE"])[draw.integers(0, 2, count)]
    buys = np.where((pages >= 3) & (age >= 18), "yes", "no")
    return {"age": age, "country": country, "pages": pages, "buys": buys}


def visits(count: int, seed: int = 1) -> Records:
    """Return the table as records."""
    return Records.of(columns(count, seed), SCHEMA, "visits")


def write_labelled(folder: Path, count: int = 600, name: str = "visits") -> Path:
    """Write the table with its schema beside it, and return its path."""
    table, path = columns(count), folder / f"{name}.csv"
    rows = zip(*(table[it].tolist() for it in SCHEMA.columns), strict=True)
    lines = [",".join(SCHEMA.columns), *(",".join(map(str, row)) for row in rows), ""]
    path.write_text("\n".join(lines))
    path.with_suffix(".schema.json").write_text(json.dumps(schema_fields(SCHEMA)))
    return path
