"""Labelled texts, a tiny encoder of this machine, and requests to train its layers."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.methods import Parameter, TextLayersPlan, TextSpec
from noisefloor.tables import Categories, TextRecords, TextSchema
from tiny_backbones import write_tiny_bert

SCHEMA = TextSchema("one review", {"review": 6}, "mood", Categories(("bad", "good")))
COUNT = 40
TEXTS = ["the dull film", "a great film and a fine story"] * (COUNT // 2)
RECORDS = TextRecords.of({"review": TEXTS, "mood": ["bad", "good"] * (COUNT // 2)}, SCHEMA, "r")
SIZE: dict[str, Parameter] = {"size": COUNT, "steps": 6}


@contextmanager
def tiny_machine(folder: Path) -> Iterator[Path]:
    """Have a tiny encoder as that of this machine, and return its directory."""
    tiny = folder / "tiny"
    with pytest.MonkeyPatch.context() as patch:
        if not tiny.is_dir():
            write_tiny_bert(tiny)
        patch.setenv("NOISEFLOOR_BACKBONE", str(tiny))
        patch.setenv("NOISEFLOOR_DATA", str(folder / "cache"))
        yield tiny


def a_cost(epsilon: float = 2.0, delta: float = 1e-5) -> Guarantee:
    """Return a cost under add-remove."""
    relation = Neighbours.RECORD_ADD_REMOVE
    return Guarantee(epsilon, relation, delta=delta, model=TrustModel.CENTRAL)


def a_spec(
    trains: str, schema: TextSchema = SCHEMA, cost: Guarantee | None = None, **more: Parameter
) -> TextSpec:
    """Return a request; parameters that are None are left out."""
    return TextSpec.read(schema, cost or a_cost(), {**SIZE, "trains": trains, **more})


@cache
def planned(trains: str, **more: Parameter) -> TextLayersPlan:
    """Return the plan of a request; the search for noise is made once."""
    return TextLayersPlan.of(TextSpec.read(SCHEMA, a_cost(), {**SIZE, "trains": trains, **more}))
