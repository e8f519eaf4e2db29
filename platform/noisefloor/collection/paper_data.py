"""The two labelled data sets of the paper, with the ranges that it takes from them.

The paper scales by the smallest and the largest value of all records, test records included. That
is no local privacy, and is kept here because it is what is reproduced.
"""

import numpy as np
from numpy.typing import NDArray

from noisefloor import tables
from noisefloor.collection.learners import check_sklearn
from noisefloor.errors import BadTable


def wdbc() -> tuple[tables.ScaledSchema, tables.ScaledRecords]:
    """Return the 569 records of breast tissue that come with scikit-learn."""
    check_sklearn("WDBC")
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    names = [str(name) for name in bunch.feature_names]
    table = {name: bunch.data[:, place] for place, name in enumerate(names)}
    table["benign"] = bunch.target
    schema = schema_of_data(table, tables.Label("benign", "0", "1"))
    return schema, schema.records(table)


def ionosphere() -> tuple[tables.ScaledSchema, tables.ScaledRecords]:
    """Return the 351 radar returns, without the constant column."""
    table = tables.load_table("ionosphere")
    schema = schema_of_data(table, tables.Label("y", "b", "g"))
    return schema, schema.records(table)


def schema_of_data(
    table: tables.Table, label: tables.Label, where: str = "table"
) -> tables.ScaledSchema:
    """Return the schema that fits data exactly, as the paper's min-max does. Not private.

    Numbers become ranges from the smallest to the largest, two different numbers or texts become
    categories in sorted order, and columns that are constant are left out: they tell nothing.
    """
    found = (_fitted(name, table[name], where) for name in table if name != label.name)
    return tables.ScaledSchema(tuple(one for one in found if one is not None), label)


def _fitted(name: str, column: NDArray[np.generic], where: str) -> tables.Attribute | None:
    values = np.unique(column)
    if len(values) < 2:
        return None
    if len(values) == 2 or values.dtype.kind not in "iuf":
        return tables.Categorical(name, tuple(_written(value) for value in values.tolist()))
    if not np.isfinite(values).all():
        raise BadTable(where, "Expected finite numbers.", name)
    return tables.Continuous(name, float(values[0]), float(values[-1]))


def _written(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
