"""A training's first steps on made-up examples: what a module does wrong is seen before any step.

Nothing here looks at private examples, so that a refusal says nothing about them. The weights are
moved by made-up amounts meanwhile: what a layer of zeros would hide in the first step, it would
not hide in the second. Everything is put back afterwards.

Not seen is what made-up examples do not bring about: a module that mixes examples, or draws random
numbers, only where a value or a number of examples that are never made up meets a condition.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from noisefloor.errors import DeadRun, UnsupportedModule
from noisefloor.publication.private_sgd.bookkeeping import BookKeeping, Loss, check_losses
from noisefloor.publication.private_sgd.made_up import ExampleBatch, scattered
from noisefloor.publication.private_sgd.parameters import FlatParameters
from noisefloor.publication.private_sgd.per_example import PerExample
from noisefloor.publication.private_sgd.state import State

_ALIKE = 1e-3
"""Relative difference beyond which two ways to the same number disagree; floats differ by less."""

_EQUAL = 1e-5
"""The same where the same product is computed twice, of matrices of the same shape."""

_MOVED = 0.1
"""How far weights are moved, at most."""


class DryRun:
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
        self._state = State([one for one in (module, loss) if isinstance(one, nn.Module)], flat)

    def check(self, kinds: Iterable[ExampleBatch], largest: int) -> None:
        """Check everything, on the first kind of examples that the module takes.

        Args:
            kinds: Public examples, at least two of each kind.
            largest: How many examples a step will take at once.

        Raises:
            UnsupportedModule: The module cannot be trained privately, or takes no kind.
            DeadRun: No example has a gradient.
        """
        draws = torch.get_rng_state()
        before = self._flat.vector.clone()
        try:
            self._flat.vector.add_(_MOVED * (2 * scattered(before.numel()) - 1))
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
            raise DeadRun("All gradients are zero: the loss does not reach the weights.")
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
        with self._state.held(), torch.enable_grad():
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
            own = rows * self._is_in(group)
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
        return torch.stack(rows)

    def _is_in(self, group: int) -> Tensor:
        """Return one where a weight is in a group of clipping, otherwise zero."""
        group_of = self._road.clipping.group_of
        return torch.cat(
            [
                torch.full((parameter.numel(),), float(group_of(layer) == group))
                for layer, own in self._flat.owners.items()
                for parameter in own.values()
            ]
        ).to(self._sums.dtype)


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
