"""Adapters: W x + L (R x) with W frozen, in the place of a linear layer."""

import math

import torch
from torch import Tensor, nn

from noisefloor.randomness import Source


class AdaptedLinear(nn.Module):
    """A frozen linear layer and two factors; it starts as the linear layer alone.

    Args:
        base: The layer, which is frozen.
        rank: Of the factors.
        source: Draws the right factor, normal with variance 1 / inputs; the left one is zero.
    """

    def __init__(self, base: nn.Linear, rank: int, source: Source) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.right = nn.Linear(base.in_features, rank, bias=False)
        self.left = nn.Linear(rank, base.out_features, bias=False)
        drawn = torch.from_numpy(source.stage("right").normals(rank * base.in_features))
        with torch.no_grad():
            self.right.weight.copy_(drawn.view(rank, -1) / math.sqrt(base.in_features))
            self.left.weight.zero_()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the layer's outputs and those of the factors, added up."""
        added: Tensor = self.base(inputs) + self.left(self.right(inputs))
        return added

    @property
    def matrix(self) -> Tensor:
        """The weight that the layer and the factors are together."""
        return self.base.weight.detach() + self.left.weight.detach() @ self.right.weight.detach()


def add_adapters(layers: nn.Module, rank: int, source: Source) -> None:
    """Put an adapter in the place of every linear layer; right factors draw by their names."""
    for name, layer in list(layers.named_modules()):
        for own, one in list(layer.named_children()):
            if type(one) is nn.Linear:
                place = f"{name}.{own}" if name else own
                setattr(layer, own, AdaptedLinear(one, rank, source.child("adapter", place)))


def adapters_of(module: nn.Module) -> dict[str, AdaptedLinear]:
    """Return the adapters of a module by their names."""
    return {name: one for name, one in module.named_modules() if isinstance(one, AdaptedLinear)}
