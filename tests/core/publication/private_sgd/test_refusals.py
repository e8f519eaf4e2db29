"""What is refused, and what dies."""

import pytest
import torch
from torch import Tensor, nn

from noisefloor.errors import DeadRun, OutOfDomain, UnsupportedModule
from noisefloor.publication.private_sgd import (
    SgdPlan,
    check_learnt,
    cross_entropy,
    initialise,
    train,
)
from noisefloor.publication.private_sgd.gates import GradientWatch, check_moved, check_weights
from noisefloor.randomness import SeededSource, new_run
from private_sgd_cases import CASES, PLAN, Case, blobs, made, mlp, weights


def test_batch_normalisation_is_refused() -> None:
    module = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    with pytest.raises(UnsupportedModule, match=r"1 \(BatchNorm1d\) mixes the examples"):
        train(module, *blobs(7, "norm"), PLAN, SeededSource(1, "norm"))


def test_coupling_that_no_type_tells_is_refused() -> None:
    class Centred(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(8, 3)

        def forward(self, values: Tensor) -> Tensor:
            logits: Tensor = self.head(values - values.mean(0))
            return logits

    with pytest.raises(UnsupportedModule, match="depends on the others"):
        train(Centred(), *blobs(7, "couple"), PLAN, SeededSource(1, "couple"))


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


@pytest.mark.parametrize("positions", [5, 7])
def test_a_moved_axis_of_examples_is_refused(positions: int) -> None:
    """With as many positions as examples no shape tells: the norms do."""

    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(8, 8), nn.Linear(8, 3)

        def forward(self, values: Tensor) -> Tensor:
            hidden = torch.relu(self.body(values.transpose(0, 1))).transpose(0, 1)
            logits: Tensor = self.head(hidden.mean(1))
            return logits

    module, inputs, targets = made(Case(Turned, (positions, 8)), "turned", positions)
    full = SgdPlan(examples=7, expected_batch=7, steps=3, noise_multiplier=1.0)
    with pytest.raises(UnsupportedModule, match="axis"):
        train(module, inputs, targets, full, SeededSource(1, "turned", positions))


def test_a_loss_that_is_no_number_stops_the_run_though_its_gradient_is_one() -> None:
    def marred(outputs: Tensor, wanted: Tensor) -> Tensor:
        nothing = torch.where(wanted == 1, torch.nan, 0.0)
        return cross_entropy(outputs, wanted) + nothing

    for slowly in (False, True):
        source = SeededSource(1, "marred", int(slowly))
        full = SgdPlan(examples=30, expected_batch=30, steps=3, noise_multiplier=1.0)
        with pytest.raises(DeadRun, match="loss of an example"):
            train(mlp(), *blobs(30, "marred"), full, source, loss=marred, per_example=slowly)


def test_dropout_is_refused_unless_it_is_off() -> None:
    module = nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 3))
    with pytest.raises(UnsupportedModule, match="random"):
        train(module, *blobs(7, "drop"), PLAN, SeededSource(1, "drop"))
    module.eval()
    assert train(module, *blobs(7, "off"), PLAN, SeededSource(1, "off")).moved > 0


def test_other_layers_take_the_slow_road_and_the_report_says_so() -> None:
    module = nn.Sequential(nn.Linear(8, 4), nn.GroupNorm(2, 4), nn.Linear(4, 3))
    report = train(module, *blobs(7, "slow"), PLAN, SeededSource(1, "slow"))
    assert report.road == "per-example"
    assert report.without_a_tap == ("1 (GroupNorm)",)


def test_a_run_without_gradients_is_dead() -> None:
    def flat(outputs: Tensor, targets: Tensor) -> Tensor:
        return 0.0 * cross_entropy(outputs, targets)

    with pytest.raises(DeadRun, match="All gradients are zero"):
        train(mlp(), *blobs(7, "zero"), PLAN, SeededSource(1, "zero"), loss=flat)


def test_a_run_whose_weights_are_no_numbers_is_dead() -> None:
    from dataclasses import replace

    plan = replace(PLAN, learning_rate=1e38, optimiser="sgd")
    with pytest.raises(DeadRun):
        train(mlp(), *blobs(7, "far"), plan, SeededSource(1, "far"))


def test_an_example_without_a_number_stops_the_run() -> None:
    inputs, targets = blobs(7, "nan")
    inputs[2, 2] = float("nan")
    full = SgdPlan(examples=7, expected_batch=7, steps=3, noise_multiplier=1.0)
    with pytest.raises(DeadRun, match="NaN"):
        train(mlp(), inputs, targets, full, SeededSource(1, "nan"))


def test_the_gates_by_themselves() -> None:
    check_weights(torch.ones(3))
    for bad in (float("nan"), float("inf")):
        with pytest.raises(DeadRun):
            check_weights(torch.tensor([1.0, bad]))
    assert check_moved(torch.zeros(4), torch.ones(4)) == 2.0
    with pytest.raises(DeadRun):
        check_moved(torch.ones(2), torch.ones(2))
    watch = GradientWatch()
    watch.check()
    watch.see(torch.tensor([0.0, 0.0]))
    with pytest.raises(DeadRun):
        watch.check()
    watch.see(torch.tensor([0.0, 1e-20]))
    watch.check()
    assert check_learnt([0, 1, 0], [0, 1, 0]) == 1.0
    with pytest.raises(DeadRun, match="majority"):
        check_learnt([0, 0, 0], [0, 1, 0])
    with pytest.raises(OutOfDomain):
        check_learnt([0], [0, 1])


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
