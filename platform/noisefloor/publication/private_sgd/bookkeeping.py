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
    NonFiniteExamples,
    clip_factors,
    squares_by_group,
)
from noisefloor.publication.private_sgd.coordinates import GradientLayout
from noisefloor.publication.private_sgd.matrix_gradients import BlockSums, Parted
from noisefloor.publication.private_sgd.module_state import ModuleState
from noisefloor.publication.private_sgd.parameters import FlatParameters, full_name
from noisefloor.publication.private_sgd.recurrent_taps import GruTap, LstmTap
from noisefloor.publication.private_sgd.tied_weights import TIED_KINDS, TiedWeights

Inputs: TypeAlias = tuple[Tensor, ...]
Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Takes a module's outputs and the targets, gives the loss of each example."""

# Any: a tap for each kind of layer. Subclasses of a kind are not that kind: they may do anything.
_TAPS: dict[type[nn.Module], Any] = {
    nn.Linear: layer_taps.LinearTap,
    nn.Embedding: layer_taps.EmbeddingTap,
    nn.LayerNorm: layer_taps.LayerNormTap,
    nn.GroupNorm: layer_taps.GroupNormTap,
    nn.Conv1d: layer_taps.ConvolutionTap,
    nn.Conv2d: layer_taps.ConvolutionTap,
    nn.LSTM: LstmTap,
    nn.GRU: GruTap,
}


def find_untapped_layers(module: nn.Module, flat: FlatParameters) -> list[str]:
    """Return the layers with parameters to train for which no book can be kept."""
    layers = dict(module.named_modules())
    names = [name for name in flat.owners if not _has_tap(layers[name])]
    for users in flat.ties.values():
        names += [
            name
            for name, parameter in users
            if parameter != "weight"
            or type(layers[name]) not in TIED_KINDS
            or not _has_tap(layers[name])
        ]
    return [
        f"{name or '<module>'} ({type(layers[name]).__name__})" for name in dict.fromkeys(names)
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
        layout: Which coordinates there are; all of them, of scale 1, if left out.
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
        layout: GradientLayout | None = None,
    ) -> None:
        self._module, self._loss, self._flat = module, loss, flat
        self.clipping = clipping
        self._parameters = flat.parameters
        layers = dict(module.named_modules())
        tied = [name for users in flat.ties.values() for name, _ in users]
        self._taps: dict[str, Any] = {  # Any: a kind of tap for each kind of layer
            name: _TAPS[type(layers[name])](layers[name])
            for name in dict.fromkeys([*flat.owners, *tied])
        }
        self.use(GradientLayout(flat.named, clipping) if layout is None else layout, sums)

    def use(self, layout: GradientLayout, sums: Tensor) -> None:
        """Say which coordinates there are from now on, and where their sums go.

        Raises:
            UnsupportedModule: A layer cannot leave coordinates out, or carry them, in this way.
        """
        self.layout = layout
        self._tied: list[TiedWeights] = []
        views = zip(layout.blocks, layout.views(sums), strict=True)
        own: dict[str, dict[str, list[BlockSums]]] = {name: {} for name in self._taps}
        for layer, parameters in self._flat.owners.items():
            for name in parameters:
                places = [*map(BlockSums, *next(views))]
                users = self._flat.ties.get(full_name(layer, name))
                if users is None:
                    own[layer][name] = places
                else:
                    taps = {user: self._taps[user] for user, _ in users}
                    self._tied.append(TiedWeights(taps, places))
        for name, tap in self._taps.items():
            tap.use(own[name])

    def __enter__(self) -> "BookKeeping":
        for parameter in self._parameters:
            parameter.requires_grad_(False)
        for tap in self._taps.values():
            tap.on()
        self._state = ModuleState(
            [one for one in (self._module, self._loss) if isinstance(one, nn.Module)], self._flat
        )
        return self

    def __exit__(self, *_: object) -> None:
        for tap in self._taps.values():
            tap.off()
        for parameter in self._parameters:
            parameter.requires_grad_(True)

    def clip(self, inputs: Inputs, targets: Tensor) -> ClippedBatch:
        """Return the clipped gradients of a batch; the module is as it was afterwards.

        Raises:
            BrokenExamples: A loss or a gradient is not finite.
        """
        with self._state.preserved(), torch.no_grad():
            found = self._contributions(inputs, targets)
            parts, groups = self.layout.parts, len(self.clipping.bounds)
            nothing = torch.zeros(len(targets), dtype=self._parameters[0].dtype)
            squares = squares_by_group(found, parts, groups, nothing)
            return ClippedBatch(found, squares, clip_factors(self.clipping, squares), parts)

    def settle(self) -> None:
        """Copy outputs of layers no more, but where they were changed in place so far."""
        for tap in self._taps.values():
            tap.settle()

    @contextmanager
    def by_autograd(self) -> Iterator[list[nn.Parameter]]:
        """Take the taps off for a while, and let the parameters ask for gradients."""
        self.__exit__()
        try:
            yield self._parameters
        finally:
            self.__enter__()

    def _contributions(self, inputs: Inputs, targets: Tensor) -> Parted:
        """Run both passes, and return what each layer has to say, with its part."""
        taps = self._taps.values()
        for tap in taps:
            tap.forget()
            tap.examples = len(targets)
        try:
            with torch.enable_grad():
                losses = check_losses(self._loss(self._module(*inputs), targets), len(targets))
                tracked = [tap.tracked_outputs() for tap in taps]
                every = [one for some in tracked for one in some]
                total = check_total(losses)
                gradients = iter(torch.autograd.grad(total, every, allow_unused=True))
        finally:
            for tap in taps:
                tap.examples = None
        by_layer = {
            name: [next(gradients) for _ in some]
            for name, some in zip(self._taps, tracked, strict=True)
        }
        found = [one for name, tap in self._taps.items() for one in tap.parts(by_layer[name])]
        found += [one for tied in self._tied for one in tied.parts(by_layer)]
        for tap in taps:
            tap.forget()
        return found


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
