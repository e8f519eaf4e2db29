"""What a forward pass changes is refused, and put back where it shows only later."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from noisefloor.errors import UnsupportedModule
from noisefloor.publication.private_sgd import PrivateTraining, SgdPlan, train
from noisefloor.publication.private_sgd.module_state import ModuleState
from noisefloor.publication.private_sgd.parameters import FlatParameters
from noisefloor.randomness import SeededSource, new_run
from private_sgd_cases import PLAN, blobs, weights


class Remembering(nn.Module):
    """A linear layer that does something with every batch it is given."""

    mean: Tensor
    unsaved: Tensor

    def __init__(self, remember: Callable[["Remembering", Tensor], None]) -> None:
        super().__init__()
        self.head = nn.Linear(8, 3)
        self.remember = remember
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("unsaved", torch.zeros(8), persistent=False)
        self.frozen = nn.Parameter(torch.zeros(8), requires_grad=False)
        self.attribute, self.array, self.number = torch.zeros(8), np.zeros(8), 0.0
        self.kept: list[Tensor] = []
        self.nested: dict[str, object] = {"deep": [torch.zeros(8)]}

    def forward(self, values: Tensor) -> Tensor:
        known = self.mean + self.unsaved + self.frozen + self.attribute + self.number
        logits: Tensor = self.head(values - known)
        with torch.no_grad():
            self.remember(self, values)
        return logits


def _mean(module: Remembering, values: Tensor) -> None:
    module.mean.lerp_(values.mean(0), 0.1)


def _unsaved(module: Remembering, values: Tensor) -> None:
    module.unsaved.lerp_(values.mean(0), 0.1)


def _by_data(module: Remembering, values: Tensor) -> None:
    module.mean.data.copy_(values.mean(0))  # no version counts it


def _replaced(module: Remembering, values: Tensor) -> None:
    module.mean = values.mean(0)


def _frozen(module: Remembering, values: Tensor) -> None:
    module.frozen.add_(values.mean(0))


def _attribute(module: Remembering, values: Tensor) -> None:
    module.attribute = values.mean(0)


def _array(module: Remembering, values: Tensor) -> None:
    module.array += values.mean(0).numpy()


def _number(module: Remembering, values: Tensor) -> None:
    module.number += float(values.mean())


def _kept(module: Remembering, values: Tensor) -> None:
    module.kept.append(values)


def _nested(module: Remembering, values: Tensor) -> None:
    module.nested["deep"][0].add_(values.mean(0))  # type: ignore[index]


def _new(module: Remembering, values: Tensor) -> None:
    module.seen = values


def _weight(module: Remembering, values: Tensor) -> None:
    module.head.weight[0] += values.mean(0)


def _weight_data(module: Remembering, values: Tensor) -> None:
    module.head.weight.data = module.head.weight.data * (1 + values.mean())


WAYS = {
    **{"mean": _mean, "unsaved": _unsaved, "frozen": _frozen, "attribute": _attribute},
    **{"array": _array, "number": _number, "kept.0": _kept, "nested.deep.0": _nested},
    **{"seen": _new, "head.weight": _weight},
}
MORE_WAYS = {"mean": _by_data, "mean ": _replaced, "head.weight": _weight_data}
EVERY_WAY = [*WAYS.items(), *MORE_WAYS.items()]


@pytest.mark.parametrize(("name", "remember"), EVERY_WAY)
def test_what_changes_in_a_forward_pass_is_refused(
    name: str, remember: Callable[[Remembering, Tensor], None]
) -> None:
    module = Remembering(remember)
    before = [one.clone() for one in (*module.parameters(), *module.buffers())]
    with pytest.raises(UnsupportedModule, match=rf"^{name.strip()} changes in a forward pass"):
        train(module, *blobs(7, "state"), PLAN, SeededSource(1, "state", name))
    after = [*module.parameters(), *module.buffers()]
    assert all(map(torch.equal, before, after))
    assert not module.kept and not hasattr(module, "seen")


@pytest.mark.parametrize("per_example", [False, True])
@pytest.mark.parametrize(("name", "remember"), EVERY_WAY)
def test_what_changes_later_acts_on_nothing_and_is_not_released(
    name: str, remember: Callable[[Remembering, Tensor], None], per_example: bool
) -> None:
    """Only real examples are far from zero: the dry run does not see it, and nothing stops."""

    def far_only(module: Remembering, values: Tensor) -> None:
        if float(values.abs().max()) > 1.5:
            remember(module, values)

    found = []
    inputs, labels = blobs(7, "later")
    for way in (far_only, lambda *_: None):
        with new_run():
            module = Remembering(way)
            nn.init.eye_(module.head.weight)
            nn.init.zeros_(module.head.bias)
            source = SeededSource(1, "later")
            train(module, inputs, labels, PLAN, source, per_example=per_example, micro_batch=2)
        found.append(weights(module))
        assert not module.mean.any() and not module.unsaved.any() and not module.frozen.any()
        assert not module.attribute.any() and not module.array.any() and not module.number
        assert not module.kept and not hasattr(module, "seen")
        assert not module.nested["deep"][0].any()  # type: ignore[index]
    assert torch.equal(found[0], found[1])


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_a_table_with_a_largest_norm_is_refused(kind: Callable[..., nn.Module]) -> None:
    module = nn.Sequential(kind(5, 6, max_norm=1.0), nn.Flatten(), nn.LazyLinear(3))
    tokens = torch.zeros(7, 2, dtype=torch.int64)
    module(tokens)
    before = weights(module)
    with pytest.raises(UnsupportedModule, match=r"0 \(Embedding(Bag)?\) has a max_norm"):
        train(module, tokens, tokens[:, 0], PLAN, SeededSource(1, "norm"))
    assert torch.equal(weights(module), before)


def test_power_iterations_are_refused_unless_they_are_off() -> None:
    """A spectral norm keeps two vectors, which it improves in every pass of training mode."""
    module = nn.Sequential(parametrizations.spectral_norm(nn.Linear(8, 3)))
    with pytest.raises(UnsupportedModule, match=r"parametrizations\.weight\.0\._[uv] changes"):
        train(module, *blobs(7, "power"), PLAN, SeededSource(1, "power"))
    module.eval()
    report = train(module, *blobs(7, "off"), PLAN, SeededSource(1, "power off"))
    assert report.road == "per-example"


def test_a_normed_weight_is_trained_by_the_slow_road() -> None:
    module = nn.Sequential(parametrizations.weight_norm(nn.Linear(8, 3)))
    report = train(module, *blobs(7, "weight norm"), PLAN, SeededSource(1, "weight norm"))
    assert report.road == "per-example"


def test_a_layer_without_shapes_is_refused() -> None:
    module = nn.Sequential(nn.LazyLinear(4), nn.Linear(4, 3))
    with pytest.raises(UnsupportedModule, match=r"0 \(LazyLinear\) has no shapes yet"):
        train(module, *blobs(7, "lazy"), PLAN, SeededSource(1, "lazy"))


def test_a_loss_that_remembers_is_refused() -> None:
    class Balanced(nn.Module):
        counts: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("counts", torch.zeros(3))

        def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
            self.counts += torch.bincount(targets, minlength=3)
            return nn.functional.cross_entropy(outputs, targets, reduction="none")

    with pytest.raises(UnsupportedModule, match="counts changes"):
        train(nn.Linear(8, 3), *blobs(7, "loss"), PLAN, SeededSource(1, "l"), loss=Balanced())


def test_what_is_set_to_the_same_value_has_not_changed() -> None:
    """Shapes and masks that are made anew in every pass say nothing about a batch."""

    def same(module: Remembering, values: Tensor) -> None:
        module.attribute, module.number = torch.zeros(8), 0.0
        module.nested = {"deep": [torch.zeros(8)]}

    report = train(Remembering(same), *blobs(7, "same"), PLAN, SeededSource(1, "same"))
    assert report.moved > 0


def test_everything_is_put_back_bit_by_bit() -> None:
    module = Remembering(lambda *_: None)
    module.mean[0] = float("nan")
    flat = FlatParameters(module)
    state = ModuleState([module], flat)
    kept, mean = flat.vector.clone(), module.mean
    with state.preserved():
        assert state.changed() is None  # NaN is NaN
        module.mean.fill_(1.0)
        module.kept.append(mean)
        module.head.weight.data.zero_()
        module.head.bias = nn.Parameter(torch.ones(3))
        del module.attribute
        module.nested.clear()
        module.unsaved.resize_(3)
        assert state.changed() is not None
    assert state.changed() is None
    assert torch.equal(flat.vector, kept) and torch.equal(weights(module)[8:], kept)
    assert bool(module.mean[0].isnan()) and not module.mean[1:].any()
    assert module.unsaved.shape == (8,) and not module.unsaved.any()


def test_a_training_that_is_broken_off_leaves_no_trace() -> None:
    """An interrupt in the middle of a pass: the module is as the last step left it."""

    def interrupted(module: Remembering, values: Tensor) -> None:
        if float(values.abs().max()) > 1.5:
            _mean(module, values)
            _weight(module, values)
            raise KeyboardInterrupt

    module = Remembering(interrupted)
    before = weights(module)
    full = SgdPlan(examples=7, expected_batch=7, steps=1, noise_multiplier=1.0)
    with (
        pytest.raises(KeyboardInterrupt),
        PrivateTraining(module, *blobs(7, "stop"), full, SeededSource(1, "stop")) as training,
    ):
        training.run()
    assert torch.equal(weights(module), before)
    assert not module.mean.any()
