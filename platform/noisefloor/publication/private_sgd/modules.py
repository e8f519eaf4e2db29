"""Which modules can be trained privately, and whether the books say what autograd says."""

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm

from noisefloor.errors import UnsupportedModule
from noisefloor.publication.private_sgd.bookkeeping import BookKeeping, Inputs, Loss, check_losses
from noisefloor.publication.private_sgd.per_example import PerExample

_ALIKE = 1e-3
"""Relative difference beyond which two ways to the same number disagree; floats differ by less."""

_MOST = 32
"""Examples that a check looks at."""


def check_module(module: nn.Module) -> None:
    """Refuse layers that couple examples or are random.

    Raises:
        UnsupportedModule: With the layer's name, and what to do.
    """
    for name, layer in module.named_modules():
        place = f"{name or '<module>'} ({type(layer).__name__})"
        if isinstance(layer, _BatchNorm) or _keeps_statistics(layer):
            raise UnsupportedModule(
                f"{place} mixes the examples of a batch: no example's share could be bounded. Use "
                "LayerNorm or GroupNorm."
            )
        if _is_random(layer):
            raise UnsupportedModule(
                f"{place} draws its own random numbers: set its rate to 0, or call eval()."
            )


def _keeps_statistics(layer: nn.Module) -> bool:
    return isinstance(layer, _InstanceNorm) and bool(layer.track_running_stats)


def _is_random(layer: nn.Module) -> bool:
    if not layer.training:
        return False
    if isinstance(layer, _DropoutNd):
        return layer.p > 0
    return isinstance(layer, nn.RNNBase) and layer.dropout > 0 and layer.num_layers > 1


def check_first_batch(
    module: nn.Module,
    road: BookKeeping | PerExample,
    sums: Tensor,
    loss: Loss,
    inputs: Inputs,
    targets: Tensor,
) -> None:
    """Compare, on a few examples, what is about to be done with what plain torch says.

    Catches a module or a loss that couples examples; one that uses a layer's weights behind the
    layer's back, whose gradient the book would miss; and one that moves the axis of examples, so
    that norms would be of something else. It looks at private examples; a module that is as it
    should be passes whatever they are. ``sums`` is written over.
    """
    inputs, targets = tuple(one[:_MOST] for one in inputs), targets[:_MOST]
    _check_apart(module, loss, inputs, targets)
    if isinstance(road, BookKeeping):
        _check_books(module, road, sums, loss, inputs, targets)


def _check_apart(module: nn.Module, loss: Loss, inputs: Inputs, targets: Tensor) -> None:
    with torch.enable_grad():
        together = check_losses(loss(module(*inputs), targets), len(targets)).detach()
    with torch.no_grad():
        alone = loss(module(*(one[:1] for one in inputs)), targets[:1])
    if alone.shape != (1,) or _differ(alone, together[:1]):
        raise UnsupportedModule(
            "The loss of an example depends on the others in its batch: no example's share could "
            "be bounded."
        )


def _check_books(
    module: nn.Module,
    road: BookKeeping,
    sums: Tensor,
    loss: Loss,
    inputs: Inputs,
    targets: Tensor,
) -> None:
    squares = road.add_unclipped(inputs, targets)

    def gradient(some: slice) -> Tensor:
        with road.by_autograd() as parameters, torch.enable_grad():
            total = loss(module(*(one[some] for one in inputs)), targets[some]).sum()
            found = torch.autograd.grad(total, parameters, allow_unused=True)
        parts = zip(found, parameters, strict=True)
        return torch.cat(
            [(torch.zeros_like(like) if one is None else one).reshape(-1) for one, like in parts]
        )

    last = len(targets) - 1
    alone = torch.stack([gradient(slice(one, one + 1)).norm() for one in (0, last)])
    noted = squares[[0, last]].sqrt()
    if _differ(sums, gradient(slice(None))) or _differ(noted, alone):
        raise UnsupportedModule(
            "The gradients of the layers are not those of the module: does it use a layer's "
            "weights without calling the layer, or move the axis of examples? Train with "
            "per_example=True."
        )


def _differ(one: Tensor, other: Tensor) -> bool:
    """Whether two vectors differ by more than rounding; the gates see what is not finite."""
    gap = torch.linalg.vector_norm(one - other)
    size = torch.maximum(torch.linalg.vector_norm(one), torch.linalg.vector_norm(other))
    return bool(gap > _ALIKE * size + 1e-6)
