"""A training's first steps on made-up examples: what a module does wrong is seen before any step.

Nothing here looks at private examples, so that a refusal says nothing about them. The weights are
moved by made-up amounts meanwhile: what a layer of zeros would hide in the first step, it would
not hide in the second. Everything is put back afterwards.

Not seen is what made-up examples do not bring about: a module that mixes examples, or draws random
numbers, only where a value or a number of examples that are never made up meets a condition.

Examples of no one, with the shapes and types of the real ones: what checks are made on.

Whether a check passes would otherwise depend on private values. Nothing is drawn: the numbers are
the fractional parts of a fixed formula, so that no source and no generator of torch is touched.

Which layers can be trained privately; what no type tells, a dry run finds out.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.parameter import is_lazy

from noisefloor.errors import OutOfDomain, TrainingFailed, UnsupportedModule
from noisefloor.publication.private_sgd.bookkeeping import BookKeeping, Loss, check_losses
from noisefloor.publication.private_sgd.module_state import ModuleState
from noisefloor.publication.private_sgd.parameters import FlatParameters
from noisefloor.publication.private_sgd.per_example import PerExample


def check_module(module: nn.Module) -> None:
    """Refuse layers that couple examples, are random, or change weights in a forward pass.

    Raises:
        UnsupportedModule: With the layer's name, and what to do.
    """
    for name, layer in module.named_modules():
        reason = _reason(layer)
        if reason is not None:
            raise UnsupportedModule(f"{name or '<module>'} ({type(layer).__name__}) {reason}")


def _reason(layer: nn.Module) -> str | None:
    """Return why a layer cannot be trained privately; None if nothing is known."""
    own = (*layer._parameters.values(), *layer._buffers.values())
    if any(is_lazy(one) for one in own if one is not None):
        return "has no shapes yet: call the module once on a public example."
    if _mixes_examples(layer):
        return (
            "mixes the examples of a batch: no example's share could be bounded. Use LayerNorm or "
            "GroupNorm, or freeze its statistics with eval()."
        )
    if isinstance(layer, nn.Embedding | nn.EmbeddingBag) and layer.max_norm is not None:
        return (
            "has a max_norm: looked-up rows are renormalised in the forward pass, and would be "
            "released without noise. Set max_norm=None."
        )
    if _is_random(layer):
        return "draws its own random numbers: set its rate to 0, or call eval()."
    return None


def _mixes_examples(layer: nn.Module) -> bool:
    """Whether it normalises by statistics of a batch, or keeps them; frozen ones are constants."""
    if isinstance(layer, _BatchNorm):
        return layer.training or layer.running_mean is None
    keeps = isinstance(layer, _InstanceNorm) and layer.track_running_stats
    return bool(keeps) and layer.training


def _is_random(layer: nn.Module) -> bool:
    if not layer.training:
        return False
    if isinstance(layer, _DropoutNd):
        return layer.p > 0
    if isinstance(layer, nn.MultiheadAttention):
        return bool(layer.dropout > 0)
    return isinstance(layer, nn.RNNBase) and layer.dropout > 0 and layer.num_layers > 1


PLACEHOLDER_ROWS = 4
"""Made-up examples: enough to tell pairs, first and last ones, and all of them apart."""


class ExampleBatch(NamedTuple):
    """Inputs and targets, with an example in each row."""

    inputs: tuple[Tensor, ...]
    targets: Tensor

    def taken(self, places: Tensor | slice) -> "ExampleBatch":
        """Return some of the rows, in the order of the places; a row may be taken often."""
        return ExampleBatch(tuple(one[places] for one in self.inputs), self.targets[places])


def as_batch(inputs: object, targets: object) -> ExampleBatch:
    """Return examples as tensors.

    Raises:
        OutOfDomain: There is not one row for each example in all of them.
    """
    several = inputs if isinstance(inputs, tuple) else (inputs,)
    tensors = tuple(torch.as_tensor(one) for one in several)
    labels = torch.as_tensor(targets)
    if any(one.dim() == 0 or len(one) != len(labels) for one in (*tensors, labels)):
        raise OutOfDomain("Expected inputs and targets with an example in each row, as many.")
    return ExampleBatch(tensors, labels)


def placeholder_examples(like: ExampleBatch) -> Iterator[ExampleBatch]:
    """Return examples of several kinds; a module need not take all of them.

    Numbers of either sign or positive ones only (as for a logarithm); whole numbers 0 and 1, or
    only 1 (as for lengths), or only 0. Rows that are all the same would check nothing.
    """
    for lowest, (least, most) in ((-1.0, (0, 1)), (0.0, (0, 1)), (0.0, (1, 1)), (0.0, (0, 0))):
        tensors = [
            _filled(one, number, lowest, (least, most))
            for number, one in enumerate((*like.inputs, like.targets))
        ]
        if any(bool((one[1:] != one[:-1]).any()) for one in tensors[:-1]):
            yield ExampleBatch(tuple(tensors[:-1]), tensors[-1])


def quasi_random(count: int, salt: int = 0) -> Tensor:
    """Return numbers in [0, 1) without visible order, always the same."""
    places = torch.arange(1, count + 1, dtype=torch.float64)
    return torch.frac(torch.frac(torch.sin(places * 12.9898 + salt) * 43758.5453) + 1)


def _filled(like: Tensor, salt: int, lowest: float, whole: tuple[int, int]) -> Tensor:
    shape = (PLACEHOLDER_ROWS, *like.shape[1:])
    drawn = quasi_random(torch.Size(shape).numel(), salt).reshape(shape)
    if like.is_floating_point() or like.is_complex():
        return (lowest + (1 - lowest) * drawn).to(like.dtype)
    least, most = whole
    return torch.where(drawn < 0.5, least, most).to(like.dtype)


_ALIKE = 1e-3
"""Relative difference beyond which two ways to the same number disagree; floats differ by less."""

_EQUAL = 1e-5
"""The same where the same product is computed twice, of matrices of the same shape."""

_MOVED = 0.1
"""How far weights are moved, at most."""


class ModuleDryRun:
    """The checks of one training.

    Args:
        module: What will be trained.
        loss: Gives the loss of each example.
        road: How clipped gradients will be summed; entered already.
        flat: The trained parameters.
        sums: The vector that the road adds to; written over.
    """

    def __init__(
        self,
        module: nn.Module,
        loss: Loss,
        road: BookKeeping | PerExample,
        flat: FlatParameters,
        sums: Tensor,
    ) -> None:
        self._module, self._loss, self._road = module, loss, road
        self._flat, self._sums = flat, sums
        self._state = ModuleState(
            [one for one in (module, loss) if isinstance(one, nn.Module)], flat
        )

    def check(self, kinds: Iterable[ExampleBatch], largest: int) -> None:
        """Check everything, on the first kind of examples that the module takes.

        Args:
            kinds: Public examples, at least two of each kind.
            largest: How many examples a step will take at once.

        Raises:
            UnsupportedModule: The module cannot be trained privately, or takes no kind.
            TrainingFailed: No example has a gradient.
        """
        draws = torch.get_rng_state()
        before = self._flat.vector.clone()
        try:
            self._flat.vector.add_(_MOVED * (2 * quasi_random(before.numel()) - 1))
            self._check_kinds(kinds, largest)
            self._road.settle()
        finally:
            self._flat.vector.copy_(before)
            self._sums.zero_()
            torch.set_rng_state(draws)

    def _check_kinds(self, kinds: Iterable[ExampleBatch], largest: int) -> None:
        failure, was_taken = "", False
        for kind in kinds:
            try:
                if self._length_of(kind, largest) > 0:
                    return
                was_taken = True
            except UnsupportedModule:
                raise
            except Exception as error:  # a module may raise anything where values do not suit it
                failure = f"{type(error).__name__}: {error}".splitlines()[0]
        if was_taken:
            raise TrainingFailed("All gradients are zero: the loss does not reach the weights.")
        raise UnsupportedModule(
            f"The module or the loss takes no made-up examples ({failure}): give some public "
            "ones as public_examples=(inputs, targets)."
        )

    def _length_of(self, kind: ExampleBatch, largest: int) -> float:
        """Check one kind of examples, and return the length of their gradients."""
        losses = self._losses(kind)
        if not bool(torch.isfinite(losses).all()):
            raise ArithmeticError("losses are not finite")
        if _differ(self._losses(kind), losses, _EQUAL):
            raise _random()
        self._check_apart(kind, losses, largest)
        return self._check_sums(kind)

    def _losses(self, examples: ExampleBatch) -> Tensor:
        """Return the losses of a forward pass; refuse one that changes or draws anything."""
        inputs = tuple(one.clone() for one in examples.inputs)
        draws = torch.get_rng_state()
        with self._state.preserved(), torch.enable_grad():
            losses = self._loss(self._module(*inputs), examples.targets.clone())
            changed = self._state.changed()
        if changed is not None:
            raise UnsupportedModule(
                f"{changed} changes in a forward pass: it would be released without noise. Call "
                "eval() if it is a running statistic; otherwise keep nothing of a batch."
            )
        if not torch.equal(draws, torch.get_rng_state()):
            raise _random()
        if not all(map(torch.equal, inputs, examples.inputs)):
            raise UnsupportedModule("The module changes its inputs in place: set inplace=False.")
        return check_losses(losses, len(examples.targets)).detach()

    def _check_apart(self, kind: ExampleBatch, losses: Tensor, largest: int) -> None:
        """Refuse examples that act on one another: beside others, alone, and in a large batch."""
        count = len(losses)
        places = torch.arange(count)
        beside_copies = [self._losses(kind.taken(one.expand(count)))[one] for one in places]
        alone = [self._losses(kind.taken(one.view(1)))[0] for one in places]
        many = torch.arange(max(largest, count)) % count
        if (
            _differ(torch.stack(beside_copies), losses, _EQUAL)
            or _differ(torch.stack(alone), losses, _ALIKE)
            or _differ(self._losses(kind.taken(many)), losses[many], _ALIKE)
        ):
            raise UnsupportedModule(
                "The loss of an example depends on the others in its batch: no example's share "
                f"could be bounded. {_hint(self._module)}"
            )

    def _check_sums(self, kind: ExampleBatch) -> float:
        """Compare norms and the clipped sum with those of plain autograd, example by example."""
        rows = self._gradients(kind)
        clipped = self._road.clip(kind.inputs, kind.targets)
        self._sums.zero_()
        clipped.add()
        expected = torch.zeros_like(self._sums)
        for group, (factors, squares) in enumerate(
            zip(clipped.factors, clipped.squares, strict=True)
        ):
            own = rows * self._road.layout.flags_of(group).to(rows.dtype)
            norms = torch.linalg.vector_norm(own, dim=1)
            is_short = squares.sqrt() < (1 - _ALIKE) * norms - 1e-6 * norms.max()
            if bool(is_short.any()):
                raise _not_the_gradients()
            expected += factors @ own
        if _differ(self._sums, expected, _ALIKE):
            raise _not_the_gradients()
        return float(torch.linalg.vector_norm(rows))

    def _gradients(self, kind: ExampleBatch) -> Tensor:
        """Return the gradient of each example by plain autograd, an example in each row."""
        rows = []
        with self._road.by_autograd() as parameters, torch.enable_grad():
            for place in range(len(kind.targets)):
                inputs, target = kind.taken(torch.tensor([place]))
                total = self._loss(self._module(*inputs), target).sum()
                found = torch.autograd.grad(total, parameters, allow_unused=True)
                rows.append(self._flat.joined(found))
        sizes = [one.numel() for one in self._flat.parameters]
        return self._road.layout.of_written(torch.split(torch.stack(rows), sizes, dim=1))


def _differ(one: Tensor, other: Tensor, share: float) -> bool:
    """Whether two vectors differ by more than a share of their length, and more than rounding."""
    gap = torch.linalg.vector_norm(one - other)
    size = torch.maximum(torch.linalg.vector_norm(one), torch.linalg.vector_norm(other))
    return not bool(gap <= share * size + 1e-6)


def _random() -> UnsupportedModule:
    return UnsupportedModule(
        "The module or the loss draws its own random numbers: set its rate to 0, or call eval()."
    )


def _not_the_gradients() -> UnsupportedModule:
    return UnsupportedModule(
        "The gradients of the layers are not those of the module: does it use a layer's weights "
        "without calling the layer, or move the axis of examples? Train with per_example=True."
    )


def _hint(module: nn.Module) -> str:
    """Name the layers that expect examples along the second axis, if any."""
    names = [
        f"{name or '<module>'} ({type(layer).__name__})"
        for name, layer in module.named_modules()
        if getattr(layer, "batch_first", True) is False
    ]
    return f"With batch_first=False, as in {', '.join(names)}, time comes first." if names else ""
