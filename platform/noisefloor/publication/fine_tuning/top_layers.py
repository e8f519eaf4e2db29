"""The trained part of an encoder: its top layers and a linear head, on what is frozen below.

    states = run_frozen(backbone, tokens, (4, 5, 6), train_layers=2)
    module = TopLayers(backbone, 2, (4, 5, 6), scaling, classes=2)
    train(module, module.inputs(states), labels, plan, source)
    TextModelFile(schema, (4, 5, 6), ..., tensors=module.trained_tensors())

``LayeredModule`` is what all methods of fine-tuning take: layers in a list and a linear head,
however a forward pass joins them, such as a small convolutional network trained from scratch.

Both are plain modules, which private SGD trains as any other. Frozen parameters (those of a
layer of which only adapters are trained) are not published.
"""

import copy
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from noisefloor.publication.fine_tuning import published_text_model as form
from noisefloor.publication.fine_tuning.backbone import Backbone, additive_mask, run_layer
from noisefloor.publication.fine_tuning.feature_scaling import FeatureScaling
from noisefloor.publication.fine_tuning.frozen_layers import (
    FrozenStates,
    check_pooled,
    mean_over_pieces,
)

Floats = NDArray[np.float32]


class LayeredModule(nn.Module):
    """A network whose parameters are those of layers and of a head.

    Attributes:
        first: The number of the first of the layers in the whole network, counted from 1.
        layers: The layers.
        head: A linear layer whose outputs are the classes.
    """

    first: int = 1
    layers: nn.ModuleList
    head: nn.Linear

    def published_head(self) -> Mapping[str, Floats]:
        """Return weight and bias of the head as they are published."""
        own = self.head.named_parameters()
        return {f"head.{name}": one.detach().numpy().copy() for name, one in own}

    def trained_tensors(self) -> dict[str, Floats]:
        """Return what is published: trained parameters by their names in the file."""
        found = dict(self.published_head())
        for number, layer in enumerate(self.layers, start=self.first):
            for name, parameter in layer.named_parameters():
                if parameter.requires_grad:
                    place = f"{form.LAYERS}{number}.{name}"
                    found[place] = parameter.detach().numpy().copy()
        return found


class TopLayers(LayeredModule):
    """Top layers of an encoder and a head on the means of chosen layers.

    Args:
        backbone: Its top layers are copied; it stays as it is.
        train_layers: How many.
        pooled: Layers whose means over pieces are the features, counted from 1.
        scaling: Public scales of the features.
        classes: Outputs of the head, which starts at zero.
    """

    def __init__(
        self,
        backbone: Backbone,
        train_layers: int,
        pooled: Sequence[int],
        scaling: FeatureScaling,
        *,
        classes: int,
    ) -> None:
        super().__init__()
        self.first = backbone.depth - backbone.check_trained(train_layers) + 1
        self.pooled = check_pooled(backbone, pooled)
        self.layers = nn.ModuleList(
            copy.deepcopy(one) for one in backbone.layers[self.first - 1 :]
        )
        self.layers.requires_grad_(True)
        self.head = nn.Linear(backbone.width * len(self.pooled), classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.mean: Tensor
        self.factor: Tensor
        self.register_buffer("mean", torch.from_numpy(scaling.mean))
        self.register_buffer("factor", torch.from_numpy(scaling.factor))
        self._scaling = scaling

    def inputs(self, states: FrozenStates) -> tuple[Tensor, ...]:
        """Return what ``forward`` takes, an example in each row."""
        found = (states.hidden, states.mask, states.pooled)
        return tuple(torch.from_numpy(one) for one in found)

    def forward(self, hidden: Tensor, mask: Tensor, pooled: Tensor) -> Tensor:
        """Return a figure for each class.

        Args:
            hidden: Input of the first trained layer, [examples, positions, width].
            mask: 1 for pieces, 0 for padding, [examples, positions].
            pooled: Features of frozen layers.
        """
        found, added = [pooled], additive_mask(mask)
        for number, layer in enumerate(self.layers, start=self.first):
            hidden = run_layer(layer, hidden, added)
            if number in self.pooled:
                found.append(mean_over_pieces(hidden, mask))
        features: Tensor = (torch.cat(found, dim=1) - self.mean) * self.factor
        return self.head(features)  # type: ignore[no-any-return]

    def published_head(self) -> Mapping[str, Floats]:
        """Return the head with the public scales of features folded in."""
        weight, bias = self.head.weight.detach().numpy(), self.head.bias.detach().numpy()
        return self._scaling.folded(weight, bias)
