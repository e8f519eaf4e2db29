"""One call from a training procedure to its figures, on small networks and a small table."""

import json

import numpy as np
import pytest
from bench.shadow_networks import DenseTraining, fine_examples
from bench.shadow_study import study
from numpy.typing import NDArray

from noisefloor.randomness import SeededSource, Source
from noisefloor.tables.one_hot import Examples, OneHot
from noisefloor.tables.records import Records
from noisefloor.tables.schema import Bins, Categories, Schema

RECORDS = 400


def some_records() -> Records:
    source = SeededSource(1, "table")
    schema = Schema("one row", {"age": Bins((0, 50, 100)), "buys": Categories(("no", "yes"))})
    ages = source.child("age").below(101, RECORDS).astype(np.int64)
    answers = np.array(["no", "yes"], dtype=object)[source.child("buys").below(2, RECORDS)]
    return Records.of({"age": ages, "buys": answers}, schema, "table")


def test_places_within_bins_stand_beside_the_one_hot_features() -> None:
    records = some_records()
    fine, coarse = fine_examples(records, "buys"), OneHot(records.schema, "buys").examples(records)
    assert fine.features.shape == (RECORDS, 3)
    assert np.array_equal(fine.features[:, :2], coarse.features)
    edges = np.where(records.values["age"] >= 50, 50, 0)
    assert fine.features[:, 2] == pytest.approx((records.values["age"] - edges) / 50)
    assert np.array_equal(fine.labels, coarse.labels)


def noise_to_learn_by_heart() -> Examples:
    source = SeededSource(2, "noise")
    features = source.child("features").bernoulli(1 << 63, RECORDS * 30).reshape(RECORDS, 30)
    labels = source.child("labels").below(2, RECORDS).astype(np.int64)
    return Examples(features.astype(np.float32), labels, 2)


@pytest.mark.statistical
def test_an_overfitted_network_is_found_and_an_honest_one_is_not() -> None:
    """The bounds are wrong with probability 1e-6."""
    examples = noise_to_learn_by_heart()
    training = DenseTraining(examples, (32,), 32, 300, 0.01)
    found = study(training, examples.labels, 32, SeededSource(3, "heart"), alpha=1e-6)
    assert found.runs.accuracy[0] > 0.95
    assert found.attacks["lira"].roc.auc > 0.8
    assert found.audited.epsilon > 1

    def blind(members: NDArray[np.bool_], source: Source) -> NDArray[np.float32]:
        return source.normals(members.size * 2).reshape(*members.shape, 2)

    silent = study(blind, examples.labels, 32, SeededSource(4, "blind"), alpha=1e-6)
    assert silent.audited.epsilon == 0
    written = json.loads(json.dumps(silent.as_json(), allow_nan=False))
    assert set(written["attacks"]) == {"loss", "lira", "lira, offline", "rmia"}
    assert written["audited"]["guesses"] > 0
