"""Networks trained together end where they would have ended one after another."""

import numpy as np
import pytest
import torch
from bench.shadow_networks import DenseTraining, Networks, fit, orders, slopes_of_loss, tensors
from numpy.typing import NDArray
from torch import nn

from noisefloor.adversary.models.shadow_runs import fair_members
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource, Source, new_run
from noisefloor.tables.one_hot import Examples

MODELS, SIZES = 5, (9, 8, 6, 3)


def some_examples(count: int = 60) -> Examples:
    drawn = SeededSource(1, "features").words(count * 9) >> np.uint64(11)
    features = (drawn.astype(np.float64) * 2.0**-53).astype(np.float32).reshape(count, 9)
    labels = (features[:, 0] * 3).astype(np.int64)
    return Examples(features, labels, 3)


def sources(name: str, count: int = MODELS) -> list[Source]:
    return [SeededSource(2, name, model) for model in range(count)]


def started() -> Networks:
    networks = Networks(MODELS, SIZES)
    networks.start(sources("start"))
    return networks


def ordinary(networks: Networks, model: int) -> nn.Sequential:
    """Return one of the networks as torch would write it."""
    layers: list[nn.Module] = []
    for weight, bias in zip(networks.weights, networks.biases, strict=True):
        layer = nn.Linear(*weight.shape[1:])
        with torch.no_grad():
            layer.weight.copy_(weight[model].T)
            layer.bias.copy_(bias[model, 0])
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def train_alone(
    network: nn.Sequential, examples: Examples, batches: NDArray[np.int32], rate: float
) -> None:
    features, labels = tensors(examples)
    optimiser, loss = torch.optim.Adam(network.parameters(), lr=rate), nn.CrossEntropyLoss()
    for rows in torch.from_numpy(batches.astype(np.int64)):
        optimiser.zero_grad()
        loss(network(features[rows]), labels[rows]).backward()
        optimiser.step()


def test_trained_together_is_trained_one_after_another() -> None:
    examples, networks = some_examples(), started()
    members = fair_members(MODELS, 60, SeededSource(3, "members"))
    batches = orders(members, 40, 8, sources("order"))
    alone = [ordinary(networks, model) for model in range(MODELS)]
    features, labels = tensors(examples)
    before = networks.logits(features)
    with torch.no_grad():
        fit(networks, features, labels, batches, 0.01)
    after = networks.logits(features)
    assert np.abs(after - before).max() > 0.5
    for model, network in enumerate(alone):
        train_alone(network, examples, batches[:, model], 0.01)
        expected = network(features).detach().numpy()
        assert after[model] == pytest.approx(expected, abs=2e-4)


def test_the_gradient_is_that_of_autograd() -> None:
    examples, networks = some_examples(), started()
    features, labels = tensors(examples)
    inputs = features.expand(MODELS, *features.shape)
    with torch.no_grad():
        outputs = networks.forward(inputs)
        slope = slopes_of_loss(outputs[-1], labels.repeat(MODELS, 1))
        networks.backward(outputs, networks.deltas(outputs, slope))
    for model in range(MODELS):
        network = ordinary(networks, model)
        nn.CrossEntropyLoss(reduction="sum")(network(features), labels).backward()
        layers = [layer for layer in network if isinstance(layer, nn.Linear)]
        for number, layer in enumerate(layers):
            assert layer.weight.grad is not None and layer.bias.grad is not None
            ours = networks._weight_gradients[number][model].T
            assert torch.allclose(ours, layer.weight.grad, rtol=1e-4, atol=1e-5)
            bias = networks._bias_gradients[number][model, 0]
            assert torch.allclose(bias, layer.bias.grad, rtol=1e-4, atol=1e-5)


def test_how_many_train_together_changes_nothing() -> None:
    examples = some_examples()
    members = fair_members(MODELS, 60, SeededSource(6, "members"))
    found = []
    for together in (2, MODELS):
        with new_run():
            training = DenseTraining(examples, (8, 6), 8, 20, 0.01, together)
            found.append(training(members, SeededSource(7, "coins")))
    assert found[0].shape == (MODELS, 60, 3)
    assert found[0].dtype == np.float32
    assert found[0] == pytest.approx(found[1], abs=1e-4)


def test_every_pass_takes_each_own_record_once() -> None:
    members = fair_members(3, 50, SeededSource(8, "members"))
    drawn = orders(members, 30, 7, sources("passes", 3))
    assert drawn.shape == (30, 3, 7)
    for model, own in enumerate(members):
        stream, size = drawn[:, model].ravel(), int(own.sum())
        passes = stream[: len(stream) // size * size].reshape(-1, size)
        assert (np.sort(passes, axis=1) == np.flatnonzero(own)).all()
        assert not np.array_equal(passes[0], passes[1])


def test_starts_lie_within_torchs_own_range_and_differ_by_model() -> None:
    networks = started()
    for weight in networks.weights:
        reach = weight.shape[1] ** -0.5
        assert 0.8 * reach < float(weight.abs().max()) <= reach
    assert not torch.equal(networks.weights[0][0], networks.weights[0][1])


def test_members_learn_by_heart_what_others_do_not() -> None:
    examples = some_examples(80)
    noise = Examples(examples.features, SeededSource(9, "labels").below(3, 80).astype(np.int64), 3)
    members = fair_members(4, 80, SeededSource(10, "members"))
    logits = DenseTraining(noise, (32,), 16, 600, 0.01)(members, SeededSource(11, "heart"))
    correct = logits.argmax(axis=-1) == noise.labels
    assert correct[members].mean() > 0.95
    assert correct[~members].mean() < 0.7


@pytest.mark.parametrize(
    "wrong",
    [{"hidden": (0,)}, {"rate": 0.0}, {"batch": 0}, {"steps": 0}, {"together": 0}],
)
def test_impossible_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadParameter):
        DenseTraining(some_examples(), **wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_subsets_of_other_records_and_empty_ones_are_refused() -> None:
    training = DenseTraining(some_examples(), steps=1)
    with pytest.raises(BadParameter, match="models by 60 records"):
        training(np.ones((2, 59), dtype=np.bool_), SeededSource(12, "other"))
    with pytest.raises(BadParameter, match="a record at least"):
        training(np.zeros((2, 60), dtype=np.bool_), SeededSource(12, "empty"))
