"""Sums of clipped gradients from one forward and one short backward pass.

The backward pass computes gradients of the layers' outputs only. From these and the noted inputs
follow the norm of each example's gradient, and then, in one weighted product for each layer, the
sum of the clipped gradients: no gradient of a single example is made where that is not cheaper.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from noisefloor.errors import UnsupportedModule
from noisefloor.publication.private_sgd import layer_taps
from noisefloor.publication.private_sgd.clipping import Clipping
from noisefloor.publication.private_sgd.contributions import (
    ClippedBatch,
    Contribution,
    NonFiniteExamples,
    clip_factors,
)
from noisefloor.publication.private_sgd.module_state import ModuleState
from noisefloor.publication.private_sgd.parameters import FlatParameters
from noisefloor.publication.private_sgd.recurrent_taps import LstmTap

Inputs: TypeAlias = tuple[Tensor, ...]
Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Takes a module's outputs and the targets, gives the loss of each example."""

# Any: a tap for each kind of layer. Subclasses of a kind are not that kind: they may do anything.
_TAPS: dict[type[nn.Module], Any] = {
    nn.Linear: layer_taps.LinearTap,
    nn.Embedding: layer_taps.EmbeddingTap,
    nn.LayerNorm: layer_taps.LayerNormTap,
    nn.Conv1d: layer_taps.ConvolutionTap,
    nn.Conv2d: layer_taps.ConvolutionTap,
    nn.LSTM: LstmTap,
}


def find_untapped_layers(module: nn.Module, flat: FlatParameters) -> list[str]:
    """Return the layers with parameters to train for which no book can be kept."""
    layers = dict(module.named_modules())
    return [
        f"{name or '<module>'} ({type(layers[name]).__name__})"
        for name in flat.owners
        if not _has_tap(layers[name])
    ]


def _has_tap(layer: nn.Module) -> bool:
    kind = _TAPS.get(type(layer))
    return kind is not None and bool(kind.takes(layer))


class BookKeeping:
    """Adds up clipped gradients by taps on the layers; use it as a context.

    Inside the context no parameter asks for a gradient, and the layers' ``forward`` is the taps'.

    Args:
        module: Each of its trainable layers has a tap.
        flat: Its parameters.
        sums: A vector like ``flat.vector``, to which gradients are added.
        loss: Gives the loss of each example.
        clipping: How gradients are clipped.
    """

    name = "book-keeping"

    def __init__(
        self,
        module: nn.Module,
        flat: FlatParameters,
        sums: Tensor,
        *,
        loss: Loss,
        clipping: Clipping,
    ) -> None:
        self._module, self._loss, self._flat = module, loss, flat
        self.clipping = clipping
        self._parameters = flat.parameters
        layers = dict(module.named_modules())
        views = iter(flat.views(sums))
        self._taps: list[layer_taps.Tap] = []
        self._groups: list[int] = []
        for name, own in flat.owners.items():
            places = {parameter: next(views) for parameter in own}
            kind = _TAPS[type(layers[name])]
            self._taps.append(kind(layers[name], places))
            self._groups.append(clipping.group_of(name))

    def __enter__(self) -> "BookKeeping":
        for parameter in self._parameters:
            parameter.requires_grad_(False)
        for tap in self._taps:
            tap.on()
        self._state = ModuleState(
            [one for one in (self._module, self._loss) if isinstance(one, nn.Module)], self._flat
        )
        return self

    def __exit__(self, *_: object) -> None:
        for tap in self._taps:
            tap.off()
        for parameter in self._parameters:
            parameter.requires_grad_(True)

    def clip(self, inputs: Inputs, targets: Tensor) -> ClippedBatch:
        """Return the clipped gradients of a batch; the module is as it was afterwards.

        Raises:
            BrokenExamples: A loss or a gradient is not finite.
        """
        with self._state.preserved(), torch.no_grad():
            contributions = self._contributions(inputs, targets)
            squares = self._squares(contributions, len(targets))
            return ClippedBatch(contributions, squares, clip_factors(self.clipping, squares))

    def settle(self) -> None:
        """Copy outputs of layers no more, but where they were changed in place so far."""
        for tap in self._taps:
            tap.settle()

    @contextmanager
    def by_autograd(self) -> Iterator[list[nn.Parameter]]:
        """Take the taps off for a while, and let the parameters ask for gradients."""
        self.__exit__()
        try:
            yield self._parameters
        finally:
            self.__enter__()

    def _contributions(self, inputs: Inputs, targets: Tensor) -> list[tuple[Contribution, int]]:
        """Run both passes, and return what each layer has to say, with its group."""
        for tap in self._taps:
            tap.forget()
        with torch.enable_grad():
            losses = check_losses(self._loss(self._module(*inputs), targets), len(targets))
            tracked = [tap.tracked_outputs() for tap in self._taps]
            every = [one for some in tracked for one in some]
            total = check_total(losses)
            gradients = iter(torch.autograd.grad(total, every, allow_unused=True))
        found = []
        for tap, some, group in zip(self._taps, tracked, self._groups, strict=True):
            contribution = tap.contribution([next(gradients) for _ in some])
            if contribution is not None:
                found.append((contribution, group))
        for tap in self._taps:
            tap.forget()
        return found

    def _squares(
        self, contributions: list[tuple[Contribution, int]], examples: int
    ) -> list[Tensor]:
        totals: list[Tensor | None] = [None] * len(self.clipping.bounds)
        for contribution, group in contributions:
            one, so_far = contribution.squares(), totals[group]
            if len(one) != examples:
                raise UnsupportedModule(
                    "A layer is given something whose first axis is not that of the examples: "
                    "keep [examples, positions, values], or train with per_example=True."
                )
            totals[group] = one if so_far is None else so_far.add_(one)
        nothing = torch.zeros(examples, dtype=self._parameters[0].dtype)
        return [nothing if total is None else total for total in totals]


def check_total(losses: Tensor) -> Tensor:
    """Return the sum of losses.

    Raises:
        BrokenExamples: The loss of an example is NaN or infinite, whether its gradient is or not.
    """
    total = losses.sum()
    if not math.isfinite(total.item()):  # one number to look at, as a rule
        broken = ~torch.isfinite(losses.detach())
        if bool(broken.any()):
            raise NonFiniteExamples(broken)
    return total


def check_losses(losses: Tensor, examples: int) -> Tensor:
    """Return losses, once there is one for each example and it depends on the module."""
    if losses.shape != (examples,):
        raise UnsupportedModule(
            f"A loss gives one number for each example: expected shape ({examples},), got "
            f"{tuple(losses.shape)}. Use reduction='none', and sum over positions."
        )
    if not losses.requires_grad:
        raise UnsupportedModule("The loss does not depend on any trainable parameter.")
    return losses
