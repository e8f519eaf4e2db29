"""The two labelled data sets of the paper, with the ranges that it takes from them.

The paper scales by the smallest and the largest value of all records, test records included. That
is no local privacy, and is kept here because it is what is reproduced.
"""

from noisefloor.collection.encoding import schema_of_data
from noisefloor.collection.learners import check_sklearn
from noisefloor.tables import Label, ScaledRecords, ScaledSchema, load_table


def wdbc() -> tuple[ScaledSchema, ScaledRecords]:
    """Return the 569 records of breast tissue that come with scikit-learn."""
    check_sklearn("WDBC")
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    names = [str(name) for name in bunch.feature_names]
    table = {name: bunch.data[:, place] for place, name in enumerate(names)}
    table["benign"] = bunch.target
    schema = schema_of_data(table, Label("benign", "0", "1"))
    return schema, schema.records(table)


def ionosphere() -> tuple[ScaledSchema, ScaledRecords]:
    """Return the 351 radar returns, without the constant column."""
    table = load_table("ionosphere")
    schema = schema_of_data(table, Label("y", "b", "g"))
    return schema, schema.records(table)
