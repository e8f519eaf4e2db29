"""The paper's two data sets, with the ranges that it takes from them.

The paper scales by the smallest and the largest value of all records, test records included. That
is no local privacy, and is kept here because it is what is reproduced.
"""

from dataclasses import dataclass

from noisefloor.collection.classifiers import check_sklearn
from noisefloor.collection.ranges import schema_of_data
from noisefloor.collection.schema import Label, Records, Schema
from noisefloor.data import load_table
from noisefloor.data.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class DataSource:
    """Records with their schema, and the C that the paper uses for them."""

    schema: Schema
    records: Records
    weight: float


def wdbc() -> DataSource:
    """Return the 569 records of breast tissue that come with scikit-learn."""
    check_sklearn("WDBC")
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    names = [str(name) for name in bunch.feature_names]
    table = {name: bunch.data[:, place] for place, name in enumerate(names)}
    return _source(table | {"benign": bunch.target}, Label("benign", "0", "1"), 2.1)


def ionosphere() -> DataSource:
    """Return the 351 radar returns, without the constant column."""
    return _source(load_table("ionosphere"), Label("y", "b", "g"), 3.9)


def _source(table: Table, label: Label, weight: float) -> DataSource:
    schema = schema_of_data(table, label)
    return DataSource(schema, schema.records(table), weight)


SOURCES = {"wdbc": wdbc, "ionosphere": ionosphere}
TITLES = {"wdbc": "WDBC", "ionosphere": "Ionosphere"}
