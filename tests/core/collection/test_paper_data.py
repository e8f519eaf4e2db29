"""Schemas that are taken from the data, as the paper does: not private."""

import numpy as np
import pytest

from noisefloor.collection.paper_data import schema_of_data
from noisefloor.errors import BadTable
from noisefloor.tables.scaled_records import Categorical, Continuous, Label

LABEL = Label("y", "0", "1")


def test_a_schema_of_data_leaves_out_what_is_constant() -> None:
    table = {
        "a": np.array([1.0, 5.0, 3.0]),
        "still": np.zeros(3),
        "two": np.array([0.0, 1.0, 0.0]),
        "text": np.array(["b", "a", "c"]),
        "y": np.array([0, 1, 0]),
    }
    found = schema_of_data(table, LABEL)
    assert found.attributes == (
        Continuous("a", 1, 5),
        Categorical("two", ("0", "1")),
        Categorical("text", ("a", "b", "c")),
    )
    assert found.records(table).values[:, 0].tolist() == [-1, 1, 0]
    with pytest.raises(BadTable, match="finite"):
        schema_of_data(table | {"a": np.array([1.0, 2.0, np.nan])}, LABEL)
