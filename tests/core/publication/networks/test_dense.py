"""The plain network: its gradient, its batches, and what it learns."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from network_cases import examples_of, random_network
from noisefloor.errors import BadParameter, NoisefloorError
from noisefloor.publication.networks.dense import (
    DenseNetwork,
    NetworkPass,
    NetworkShape,
    NetworkTraining,
    plain_increments,
    train,
)
from noisefloor.publication.published_model import classification_scores
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables.one_hot import Examples, OneHot, folds
from noisefloor.tables.records import load_records

SHAPE = NetworkShape((7, 5, 4, 3))


def test_parameters_are_counted_and_seen_in_blocks() -> None:
    assert SHAPE.count == 8 * 5 + 6 * 4 + 5 * 3
    assert int(SHAPE.is_weight().sum()) == 7 * 5 + 5 * 4 + 4 * 3
    vector = np.arange(SHAPE.count, dtype=np.float32)
    blocks = SHAPE.views(vector)
    assert [block.shape for block in blocks] == [(8, 5), (6, 4), (5, 3)]
    assert np.array_equal(np.concatenate([block.ravel() for block in blocks]), vector)
    blocks[1][0, 0] = -1
    assert vector[40] == -1


def test_increments_are_the_gradient_that_torch_finds() -> None:
    network = random_network(SHAPE, 1)
    batch = NetworkTraining(batch=20).batches(examples_of(20, 7, 3), SeededSource(1, "batches"))[0]
    ours = plain_increments(SHAPE, 50)(network, batch)
    blocks = [torch.tensor(block, requires_grad=True) for block in network.blocks]
    signal = torch.tensor(batch.inputs)
    for block in blocks[:-1]:
        inner = torch.relu(signal @ block)
        signal = torch.cat([inner, torch.ones(len(inner), 1)], dim=1)
    classes = torch.tensor(batch.targets).argmax(dim=1)
    loss = torch.nn.functional.cross_entropy(signal @ blocks[-1], classes, reduction="sum")
    loss.backward()  # type: ignore[no-untyped-call]
    theirs = np.concatenate([np.ravel(block.grad) for block in blocks])  # type: ignore[arg-type]
    assert ours == pytest.approx(theirs, abs=1e-4)


def test_the_increments_of_each_example_add_up() -> None:
    network = random_network(SHAPE, 2)
    batch = NetworkTraining(batch=20).batches(examples_of(20, 7, 3), SeededSource(1, "batches"))[0]
    both = NetworkPass(SHAPE, 20)
    both.run(network, batch)
    assert both.each().sum(axis=0) == pytest.approx(
        plain_increments(SHAPE, 20)(network, batch), abs=1e-4
    )


def test_every_example_is_in_one_batch() -> None:
    examples = examples_of(23, 7, 3)
    batches = NetworkTraining(batch=5).batches(examples, SeededSource(1, "batches"))
    assert [len(batch) for batch in batches] == [5, 5, 5, 5, 3]
    rows = np.concatenate([batch.inputs for batch in batches])
    assert (rows[:, -1] == 1).all()
    assert np.array_equal(np.sort(rows[:, 0]), np.sort(examples.features[:, 0]))


def test_a_substituted_record_changes_one_batch() -> None:
    examples = examples_of(23, 7, 3)
    other = examples.features.copy()
    other[4] = 1 - other[4]
    changed = Examples(other, examples.labels, 3)
    ours = NetworkTraining(batch=5).batches(examples, SeededSource(1, "same"))
    with new_run():
        theirs = NetworkTraining(batch=5).batches(changed, SeededSource(1, "same"))
    unlike = [
        not np.array_equal(one.inputs, two.inputs) for one, two in zip(ours, theirs, strict=True)
    ]
    assert sum(unlike) == 1


def test_a_separable_data_set_is_fitted() -> None:
    examples = examples_of(600, 7, 3)
    network = train(examples, NetworkTraining((16,), 0.5, 20, 30), SeededSource(1, "train"))
    assert (
        classification_scores(
            network.predict_classes(examples.features), examples.labels, 3
        ).accuracy
        > 0.9
    )


def test_the_same_source_trains_the_same_network() -> None:
    examples, training = examples_of(60, 7, 3), NetworkTraining((4,), 0.5, 20, 2)
    one = train(examples, training, SeededSource(1, "train"))
    with new_run():
        two = train(examples, training, SeededSource(1, "train"))
    assert np.array_equal(one.vector, two.vector)


def test_a_network_that_is_no_number_any_more_is_not_handed_on() -> None:
    training = NetworkTraining((16,), 1e30, 20, 3, decay=0.0)
    with pytest.raises(NoisefloorError, match="NaN or infinite"):
        train(examples_of(60, 7, 3), training, SeededSource(1, "train"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: NetworkShape((3,)),
        lambda: NetworkShape((3, 1)),
        lambda: NetworkShape((0, 2)),
        lambda: NetworkTraining(learning_rate=0),
        lambda: NetworkTraining(epochs=0),
        lambda: NetworkTraining(batch=0),
        lambda: NetworkTraining(decay=-1.0),
        lambda: DenseNetwork(SHAPE, np.zeros(3, np.float32)),
    ],
)
def test_what_cannot_be_trained_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(BadParameter):
        make()


def test_on_adult_it_reaches_the_printed_figures(real_data: Callable[[str], None]) -> None:
    """The paper prints 0.85 and 0.79; one fold of ten, whose standard error is 0.005."""
    real_data("adult")
    records = load_records("adult")
    examples = OneHot(records.schema, "income").examples(records)
    fold = folds(len(examples), 10, SeededSource(1, "folds"))
    network = train(
        examples[fold > 0], NetworkTraining(learning_rate=0.1, epochs=5), SeededSource(1, "adult")
    )
    held_out = examples[fold == 0]
    reached = classification_scores(network.predict_classes(held_out.features), held_out.labels, 2)
    assert reached.accuracy > 0.84
    assert reached.macro_f1 > 0.77
