"""What a dry run expects of a classifier: from the schema alone, the same each time."""

import numpy as np
import pytest

from labelled_tables import SCHEMA, SWAP, a_cost
from noisefloor.errors import BadParameter
from noisefloor.publication.methods import MODEL_METHODS, ModelSpec, SyntheticTablePlan
from noisefloor.publication.methods import expected_accuracy as expecting
from noisefloor.publication.methods.stand_in_records import StandInRecords
from noisefloor.randomness import SeededSource
from noisefloor.tables import OneHot


def expected(method: str, size: int, epsilon: float = 1.0) -> expecting.StandInAccuracy:
    parameters = {"label": "buys"}
    spec = ModelSpec.read(SCHEMA, a_cost(epsilon, delta=1e-6), parameters, size)
    return expecting.stand_in_accuracy(MODEL_METHODS[method], spec)


def test_it_is_the_same_each_time_and_noise_costs_accuracy() -> None:
    found = expected("logistic", 400, epsilon=0.1)
    assert found == expected("logistic", 400, epsilon=0.1)
    assert found.accuracy < found.without - 0.05
    assert found.without > found.majority + 0.15
    assert found.spread[0] <= found.accuracy <= found.spread[1]
    assert "400 stand-in records" in str(found) and "your data will differ" in str(found)


def test_more_records_and_a_larger_epsilon_lose_less() -> None:
    small, large = expected("logistic", 400, epsilon=0.1), expected("logistic", 5000, epsilon=1.0)
    assert large.without - large.accuracy < small.without - small.accuracy


def test_the_number_of_records_is_bounded_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expecting, "MOST_RECORDS", 200)
    found = expected("anonymising-first", 10**6)
    assert (found.records, found.declared) == (200, 10**6)
    assert found.epsilon_without < 1e6  # integer tables take no epsilon as large as that


def test_progress_is_steps_and_a_size_that_is_needed_is_asked_for() -> None:
    steps: list[tuple[int, int]] = []
    spec = ModelSpec.read(SCHEMA, a_cost(neighbours=SWAP, delta=0.0), {"label": "buys"}, 100)
    kind = MODEL_METHODS["learning-first"]
    expecting.stand_in_accuracy(kind, spec, lambda done, of: steps.append((done, of)))
    assert steps[-1] == (6, 6)
    with pytest.raises(BadParameter, match="size"):
        open_ = ModelSpec.read(SCHEMA, a_cost(delta=1e-6), {"label": "buys"})
        expecting.stand_in_accuracy(MODEL_METHODS["logistic"], open_)


def test_tables_have_the_error_of_each_group() -> None:
    spec = ModelSpec.read(SCHEMA, a_cost(delta=1e-6), {"label": "buys"})
    plan = SyntheticTablePlan.of(spec)
    errors = expecting.table_errors(plan)
    deviations = plan.settings["noise"]["standard_deviations"]
    assert {name: one.standard_error for name, one in errors.items()} == deviations


def test_stand_in_labels_depend_on_the_columns_and_on_nothing_else() -> None:
    encoding = OneHot(SCHEMA, "buys")
    world = StandInRecords(encoding, SeededSource(1, "world").generator())
    records = world.records(4000, SeededSource(1, "rows").generator())
    assert list(records.codes) == list(SCHEMA.columns)
    for name, codes in records.codes.items():
        assert set(np.unique(codes)) == set(range(SCHEMA.column(name).size)), name
    share = [records.codes["buys"][records.codes["age"] == age].mean() for age in range(3)]
    assert max(share) - min(share) > 0.1
