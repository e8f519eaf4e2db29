"""Adapters: W x + L (R x) with W frozen, in the place of a linear layer or a convolution.

The factors of a convolution are those of its weight as a matrix, [out, in x h x w]: R is a
convolution with the same windows and as many outputs as the rank, L one with a kernel of 1.
"""

import math
from collections.abc import Collection
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from noisefloor.errors import UnsupportedModule
from noisefloor.randomness import Source

Adaptable: TypeAlias = nn.Linear | nn.Conv1d | nn.Conv2d


class AdaptedLayer(nn.Module):
    """A frozen layer and two factors; it starts as that layer alone.

    Args:
        base: The layer, which is frozen.
        rank: Of the factors.
        source: Draws the right factor, normal with variance 1 / inputs; the left one is zero.
    """

    def __init__(self, base: Adaptable, rank: int, source: Source) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.right, self.left = _factors(base, rank)
        shape = self.right.weight.shape
        drawn = torch.from_numpy(source.stage("right").normals(shape.numel()))
        with torch.no_grad():
            self.right.weight.copy_(drawn.view(shape) / math.sqrt(shape[1:].numel()))
            self.left.weight.zero_()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the layer's outputs and those of the factors, added up."""
        added: Tensor = self.base(inputs) + self.left(self.right(inputs))
        return added

    @property
    def matrix(self) -> Tensor:
        """The weight that the layer and the factors are together."""
        left, right = (one.weight.detach().flatten(1) for one in (self.left, self.right))
        frozen = self.base.weight.detach()
        return frozen + (left @ right).view_as(frozen)


def _factors(base: Adaptable, rank: int) -> tuple[Adaptable, Adaptable]:
    """Return the right and the left factor of a layer, as layers."""
    if isinstance(base, nn.Linear):
        return (
            nn.Linear(base.in_features, rank, bias=False),
            nn.Linear(rank, base.out_features, bias=False),
        )
    if base.groups > 1:  # each group of outputs has a matrix of its own
        raise UnsupportedModule("A convolution in groups has no low-rank factors here.")
    kind: Any = type(base)  # Any: the two kinds of convolution take windows of other lengths
    right = kind(
        base.in_channels,
        rank,
        base.kernel_size,
        stride=base.stride,
        padding=base.padding,
        dilation=base.dilation,
        padding_mode=base.padding_mode,
        bias=False,
    )
    return right, kind(rank, base.out_channels, 1, bias=False)


def add_adapters(layers: nn.Module, matrices: Collection[str], rank: int, source: Source) -> None:
    """Put an adapter in the place of linear layers and convolutions.

    Right factors draw by the names of their layers.

    Args:
        layers: Theirs.
        matrices: Names of the weights that get factors, as ``layers`` has them.
        rank: Of the factors.
        source: Draws right factors.

    Raises:
        UnsupportedModule: A convolution has groups.
    """
    for name, layer in list(layers.named_modules()):
        for own, one in list(layer.named_children()):
            place = f"{name}.{own}" if name else own
            if isinstance(one, Adaptable) and f"{place}.weight" in matrices:
                setattr(layer, own, AdaptedLayer(one, rank, source.child("adapter", place)))


def adapters_of(module: nn.Module) -> dict[str, AdaptedLayer]:
    """Return the adapters of a module by their names."""
    return {name: one for name, one in module.named_modules() if isinstance(one, AdaptedLayer)}
