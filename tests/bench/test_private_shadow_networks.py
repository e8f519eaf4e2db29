"""DP-SGD on many models: clipping against a loop, sampling and noise against their
distributions."""

import numpy as np
import pytest
import torch
from bench.private_shadow_networks import PrivateDenseTraining, _sampled, clipped_sums
from bench.shadow_networks import Networks, tensors
from scipy.stats import norm
from torch import nn

from noisefloor.accounting import SampledGaussian, epsilon_at
from noisefloor.adversary.models.shadow_runs import fair_members
from noisefloor.errors import BadParameter
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource
from noisefloor.tables.one_hot import Examples
from statistics_of_tests import FALSE_ALARM, binomial_p, ks_p

SIZES = (6, 5, 4, 2)


def some_examples(count: int = 40) -> Examples:
    drawn = SeededSource(1, "features").words(count * 6) >> np.uint64(11)
    features = (drawn.astype(np.float64) * 2.0**-53).astype(np.float32).reshape(count, 6)
    return Examples(features, (features[:, 0] > 0.5).astype(np.int64), 2)


def some_networks(models: int) -> Networks:
    networks = Networks(models, SIZES)
    networks.start([SeededSource(2, "start", model) for model in range(models)])
    return networks


def sum_by_loop(
    networks: Networks, model: int, rows: torch.Tensor, examples: Examples, clip: float
) -> tuple[list[torch.Tensor], list[float]]:
    """Clip each record's gradient by itself, by autograd, and add up."""
    layers: list[nn.Module] = []
    for weight, bias in zip(networks.weights, networks.biases, strict=True):
        layer = nn.Linear(*weight.shape[1:])
        with torch.no_grad():
            layer.weight.copy_(weight[model].T)
            layer.bias.copy_(bias[model, 0])
        layers += [layer, nn.ReLU()]
    network = nn.Sequential(*layers[:-1])
    features, labels = tensors(examples)
    total = [torch.zeros_like(parameter) for parameter in network.parameters()]
    norms = []
    for row in rows:
        network.zero_grad()
        nn.CrossEntropyLoss()(network(features[row]), labels[row]).backward()
        grads = [parameter.grad for parameter in network.parameters()]
        parts = [grad for grad in grads if grad is not None]
        length = float(torch.cat([part.flatten() for part in parts]).norm())
        norms.append(length)
        for place, part in enumerate(parts):
            total[place] += part * min(1.0, clip / length)
    return total, norms


@pytest.mark.parametrize("clip", [0.05, 0.5, 100.0])
def test_clipped_sums_are_those_of_a_loop_over_records(clip: float) -> None:
    examples, networks = some_examples(), some_networks(3)
    features, labels = tensors(examples)
    rows = torch.arange(27).view(3, 9)
    is_there = torch.ones(3, 9, dtype=torch.bool)
    is_there[1, 4:] = False  # the second model sampled fewer: the rest is padding
    with torch.no_grad():
        norms = clipped_sums(networks, features[rows], labels[rows], is_there, clip)
    for model in range(3):
        kept = rows[model][is_there[model]]
        total, lengths = sum_by_loop(networks, model, kept, examples, clip)
        assert norms[model][is_there[model]].numpy() == pytest.approx(lengths, rel=1e-4)
        for number in range(3):
            ours = networks._weight_gradients[number][model].T
            assert torch.allclose(ours, total[2 * number], rtol=1e-4, atol=1e-5)
            bias = networks._bias_gradients[number][model, 0]
            assert torch.allclose(bias, total[2 * number + 1], rtol=1e-4, atol=1e-5)


def test_no_record_moves_a_sum_by_more_than_the_clip() -> None:
    examples, networks, clip = some_examples(), some_networks(1), 0.3
    features, labels = tensors(examples)
    sums = []
    for count in (20, 21):
        rows = torch.arange(count).view(1, count)
        there = torch.ones(1, count, dtype=torch.bool)
        with torch.no_grad():
            clipped_sums(networks, features[rows], labels[rows], there, clip)
        sums.append(networks.gradient.clone())
    assert 0 < float((sums[1] - sums[0]).norm()) <= clip * (1 + 1e-5)


@pytest.mark.statistical
def test_each_own_record_is_sampled_by_its_own_draw() -> None:
    """200,000 draws: false alarm 1e-6; a rate a tenth too high is found."""
    members = fair_members(40, 10_000, SeededSource(3, "members"))
    rows, is_there = _sampled(members, int(0.05 * 2**64), SeededSource(3, "sample"))
    taken = np.zeros(members.shape, dtype=np.int64)
    for model, (own, there) in enumerate(zip(rows.numpy(), is_there.numpy(), strict=True)):
        np.add.at(taken[model], own[there], 1)
    assert taken.max() == 1
    assert not taken[~members].any()
    assert binomial_p(int(taken.sum()), int(members.sum()), 0.05) > FALSE_ALARM
    assert binomial_p(int(taken.sum()), int(members.sum()), 0.055) < FALSE_ALARM


@pytest.mark.statistical
def test_the_noise_is_gaussian_of_multiplier_times_clip() -> None:
    """About 20,000 draws: false alarm 1e-6; a scale a tenth too small is found."""
    training = PrivateDenseTraining(some_examples(), 2.0, 0.1, 1, clip=0.5)
    networks = Networks(200, SIZES)
    training._add_noise(networks, SeededSource(4, "noise"))
    drawn = networks.gradient.numpy()
    assert len(drawn) > 12_000
    assert ks_p(drawn, norm(scale=1.0).cdf) > FALSE_ALARM
    assert ks_p(drawn, norm(scale=0.9).cdf) < FALSE_ALARM


def test_the_guarantee_is_the_account_of_all_steps() -> None:
    training = PrivateDenseTraining.within(some_examples(), 1.0, 1e-5, sampling_rate=0.1, steps=5)
    event = SampledGaussian(training.noise_multiplier, 0.1, 5)
    assert training.guarantee(1e-5).epsilon == pytest.approx(epsilon_at([event], 1e-5).epsilon)
    assert 0.99 < training.guarantee(1e-5).epsilon <= 1.0
    swapped = training.guarantee(1e-5, Neighbours.RECORD_SUBSTITUTE)
    assert swapped.epsilon > 1.2


def test_little_noise_learns_and_much_noise_does_not() -> None:
    examples = some_examples(400)
    members = fair_members(3, 400, SeededSource(5, "members"))
    found = []
    for noise in (0.3, 300.0):
        training = PrivateDenseTraining(examples, noise, 0.2, 100, hidden=(8,), rate=0.03)
        logits = training(members, SeededSource(6, "noise", round(noise)))
        assert logits.shape == (3, 400, 2)
        assert np.isfinite(logits).all()
        found.append(float((logits.argmax(axis=-1) == examples.labels).mean()))
    assert found[0] > 0.85 > found[1]


@pytest.mark.parametrize(
    "wrong",
    [{"noise_multiplier": 0.0}, {"sampling_rate": 1.5}, {"steps": 0}, {"clip": -1.0}],
)
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    settings = {"noise_multiplier": 1.0, "sampling_rate": 0.1, "steps": 1} | wrong
    with pytest.raises(BadParameter):
        PrivateDenseTraining(some_examples(), **settings)  # type: ignore[arg-type]  # on purpose
