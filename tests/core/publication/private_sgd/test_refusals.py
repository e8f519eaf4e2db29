"""What is refused, and what dies."""

import pytest
import torch
from torch import Tensor, nn

from noisefloor.errors import OutOfDomain, TrainingFailed, UnsupportedModule
from noisefloor.publication.private_sgd import Flat, SgdPlan, cross_entropy, initialise, train
from noisefloor.publication.private_sgd.module_checks import PLACEHOLDER_ROWS
from noisefloor.publication.private_sgd.optimisers import check_moved, check_weights
from noisefloor.randomness import SeededSource, new_run
from private_sgd_cases import (
    CASES,
    PLAN,
    Case,
    SelfAttention,
    TimeFirst,
    blobs,
    made,
    mlp,
    weights,
)


def refused(module: nn.Module, message: str, *shape: int, plan: SgdPlan = PLAN) -> None:
    """Check that a module is refused before the first step, by the same words."""
    inputs = torch.zeros(7, *(shape or (8,)))
    with pytest.raises(UnsupportedModule, match=message):
        train(module, inputs, torch.zeros(7, dtype=torch.int64), plan, SeededSource(1, message))


def test_batch_normalisation_is_refused_unless_it_is_frozen() -> None:
    module = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    refused(module, r"1 \(BatchNorm1d\) mixes the examples")
    statistics = [one.clone() for one in module.buffers()]
    module[1].eval()
    assert train(module, *blobs(7, "frozen"), PLAN, SeededSource(1, "frozen")).moved > 0
    assert all(map(torch.equal, statistics, module.buffers()))
    module[1] = nn.BatchNorm1d(4, track_running_stats=False).eval()
    refused(module, "mixes the examples")
    refused(nn.Sequential(nn.InstanceNorm1d(3, track_running_stats=True)), "mixes", 3, 8)


class Centred(nn.Module):
    """Takes the mean of the batch away, or a share of it, from some number of examples on."""

    def __init__(self, share: float = 1.0, least: int = 0) -> None:
        super().__init__()
        self.head, self.share, self.least = nn.Linear(8, 3), share, least

    def forward(self, values: Tensor) -> Tensor:
        if len(values) >= self.least:
            values = values - self.share * values.mean(0)
        logits: Tensor = self.head(values)
        return logits


def test_coupling_that_no_type_tells_is_refused() -> None:
    refused(Centred(), "depends on the others")
    refused(Centred(share=3e-4), "depends on the others")
    hidden = Centred()
    nn.init.zeros_(hidden.head.weight)  # which hides it until the first step
    refused(hidden, "depends on the others")
    large = SgdPlan(examples=100, expected_batch=40, steps=1, noise_multiplier=1.0)
    refused(Centred(least=30), "depends on the others", plan=large)


@pytest.mark.parametrize("expected_batch", [1e-6, 1.0, 2.0])
def test_coupling_is_refused_whatever_the_sample_is(expected_batch: float) -> None:
    """Two examples of forty: with some seeds the first samples have one example, or none."""
    plan = SgdPlan(examples=7, expected_batch=expected_batch, steps=1, noise_multiplier=1.0)
    for seed in range(10):
        with pytest.raises(UnsupportedModule, match="depends on the others"):
            train(Centred(), *blobs(7, "few", seed), plan, SeededSource(seed, "few"))


def test_an_lstm_with_examples_in_the_place_of_time_is_refused() -> None:
    """The first example of a batch does not notice; the later ones do."""
    refused(TimeFirst(turned=False), r"With batch_first=False, as in lstm \(LSTM\)", 5, 8)


def test_a_loss_that_is_shared_by_the_batch_is_refused() -> None:
    def shared(outputs: Tensor, targets: Tensor) -> Tensor:
        return cross_entropy(outputs, targets) / len(targets)

    with pytest.raises(UnsupportedModule, match="depends on the others"):
        train(mlp(), *blobs(7, "shared"), PLAN, SeededSource(1, "shared"), loss=shared)


def test_random_layers_are_refused_for_what_they_are() -> None:
    refused(SelfAttention(dropout=0.5), r"attention \(MultiheadAttention\) draws its own", 6, 8)
    linear = nn.Linear(8, 3)
    nn.init.constant_(linear.bias, -1.0)  # of what is above 0, RReLU draws nothing
    refused(nn.Sequential(linear, nn.RReLU()), "draws its own random numbers")
    drawn = torch.get_rng_state()

    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(8, 3)

        def forward(self, values: Tensor) -> Tensor:
            logits: Tensor = self.head(nn.functional.dropout(values, 0.1))
            return logits

    torch.set_rng_state(drawn)
    refused(Noisy(), "draws its own random numbers")
    assert train(
        SelfAttention(dropout=0.5).eval(),
        torch.ones(7, 6, 8),
        torch.zeros(7, dtype=torch.int64),
        PLAN,
        SeededSource(1, "attention"),
    ).moved


def test_inputs_that_are_changed_in_place_are_refused() -> None:
    """A full batch is a view of what the caller holds."""
    refused(nn.Sequential(nn.ReLU(inplace=True), nn.Linear(8, 3)), "changes its inputs in place")


@pytest.mark.parametrize("per_example", [False, True])
def test_activations_may_be_changed_in_place(per_example: bool) -> None:
    found = []
    for inplace in (False, True):
        with new_run():
            module = mlp()
            module[1].inplace = inplace  # type: ignore[index]
            initialise(module, SeededSource(1, "weights"))
            inputs, labels = blobs(30, "in place")
            source = SeededSource(1, "training")
            train(module, inputs, labels, PLAN, source, per_example=per_example)
        found.append(weights(module))
    assert torch.equal(found[0], found[1])


def test_weights_used_behind_a_layers_back_are_refused() -> None:
    class Behind(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(8, 8), nn.Linear(8, 3)

        def forward(self, values: Tensor) -> Tensor:
            logits: Tensor = self.two(torch.relu(values @ self.one.weight + self.one(values)))
            return logits

    with pytest.raises(UnsupportedModule, match="without calling the layer"):
        train(Behind(), *blobs(7, "behind"), PLAN, SeededSource(1, "behind"))
    slow = train(Behind(), *blobs(7, "slowly"), PLAN, SeededSource(1, "slowly"), per_example=True)
    assert slow.road == "per-example"


def test_weights_whose_use_makes_gradients_smaller_are_refused() -> None:
    """The noted norm is long enough; it is the sum that would go astray."""

    class Halved(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(8, 3)

        def forward(self, values: Tensor) -> Tensor:
            logits: Tensor = self.head(values) - 0.5 * values @ self.head.weight.t()
            return logits

    refused(Halved(), "without calling the layer")


@pytest.mark.parametrize("positions", [PLACEHOLDER_ROWS, 5, 7])
@pytest.mark.parametrize("bound", [1.0, 1e6])
def test_a_moved_axis_of_examples_is_refused(positions: int, bound: float) -> None:
    """With as many positions as examples no shape tells: norms do, also where none is clipped."""

    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(8, 8), nn.Linear(8, 3)

        def forward(self, values: Tensor) -> Tensor:
            hidden = torch.relu(self.body(values.transpose(0, 1))).transpose(0, 1)
            logits: Tensor = self.head(hidden.mean(1))
            return logits

    module, inputs, targets = made(Case(Turned, (positions, 8)), "turned", positions, int(bound))
    full = SgdPlan(
        examples=7, expected_batch=7, steps=3, noise_multiplier=1.0, clipping=Flat(bound)
    )
    with pytest.raises(UnsupportedModule, match="axis"):
        train(module, inputs, targets, full, SeededSource(1, "turned", positions, int(bound)))


def test_dropout_is_refused_unless_it_is_off() -> None:
    module = nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 3))
    with pytest.raises(UnsupportedModule, match="random"):
        train(module, *blobs(7, "drop"), PLAN, SeededSource(1, "drop"))
    module.eval()
    assert train(module, *blobs(7, "off"), PLAN, SeededSource(1, "off")).moved > 0


def test_other_layers_take_the_slow_road_and_the_report_says_so() -> None:
    module = nn.Sequential(nn.Linear(8, 4), nn.PReLU(), nn.Linear(4, 3))
    report = train(module, *blobs(7, "slow"), PLAN, SeededSource(1, "slow"))
    assert report.road == "per-example"
    assert report.untapped_layers == ("1 (PReLU)",)


def test_a_run_without_gradients_is_dead() -> None:
    def flat(outputs: Tensor, targets: Tensor) -> Tensor:
        return 0.0 * cross_entropy(outputs, targets)

    with pytest.raises(TrainingFailed, match="All gradients are zero"):
        train(mlp(), *blobs(7, "zero"), PLAN, SeededSource(1, "zero"), loss=flat)


def test_a_run_whose_weights_are_no_numbers_is_dead() -> None:
    from dataclasses import replace

    plan = replace(PLAN, learning_rate=1e38, optimiser="sgd")
    with pytest.raises(TrainingFailed):
        train(mlp(), *blobs(7, "far"), plan, SeededSource(1, "far"))


def test_the_gates_by_themselves() -> None:
    check_weights(torch.ones(3))
    for bad in (float("nan"), float("inf")):
        with pytest.raises(TrainingFailed):
            check_weights(torch.tensor([1.0, bad]))
    assert check_moved(torch.zeros(4), torch.ones(4)) == 2.0
    with pytest.raises(TrainingFailed):
        check_moved(torch.ones(2), torch.ones(2))


def test_examples_and_targets_have_to_be_as_many() -> None:
    inputs, targets = blobs(7, "many")
    with pytest.raises(OutOfDomain):
        train(mlp(), inputs[:5], targets, PLAN, SeededSource(1, "many"))


def test_first_weights_follow_the_source() -> None:
    found = []
    for path in ("one", "one", "two"):
        with new_run():
            found.append(weights(made(CASES["lstm"], path)[0]))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    layer = nn.Linear(100, 200)
    initialise(layer, SeededSource(1, "reach"))
    assert (
        0.099 < float(layer.weight.detach().abs().max()) < 0.1
    )  # 20,000 uniform draws: 1e-87 to fail
    with pytest.raises(UnsupportedModule, match="No law"):
        initialise(nn.PReLU(), SeededSource(1, "unknown"))
