"""First weights from a source: no generator of torch takes part."""

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from noisefloor.errors import UnsupportedModule
from noisefloor.randomness import Source

_BITS = 24


def initialise(module: nn.Module, source: Source) -> None:
    """Set all trainable weights afresh, by the laws that torch has for each kind of layer.

    Linear layers, convolutions and LSTMs are uniform within one over the root of their inputs (of
    the hidden size, for an LSTM); embeddings are normal; normalisations start as identity.

    Raises:
        UnsupportedModule: A kind of layer whose law is not known here.
    """
    stream = source.stage("weights")
    for name, layer in module.named_modules():
        own = {key: one for key, one in layer.named_parameters(recurse=False) if one.requires_grad}
        with torch.no_grad():
            for key, parameter in own.items():
                _fill(layer, name, key, parameter, stream)


def _fill(layer: nn.Module, name: str, key: str, parameter: Tensor, stream: Source) -> None:
    if isinstance(layer, nn.Linear | nn.Conv1d | nn.Conv2d):
        _uniform(parameter, 1 / math.sqrt(max(1, layer.weight[0].numel())), stream)
    elif isinstance(layer, nn.LSTM | nn.GRU):
        _uniform(parameter, 1 / math.sqrt(layer.hidden_size), stream)
    elif isinstance(layer, nn.Embedding):
        drawn = torch.from_numpy(stream.normals(parameter.numel()))
        parameter.copy_(drawn.view(parameter.shape))
        if layer.padding_idx is not None:
            parameter[layer.padding_idx] = 0
    elif isinstance(layer, nn.LayerNorm | nn.GroupNorm | _BatchNorm):
        parameter.fill_(1.0 if key == "weight" else 0.0)
    else:
        raise UnsupportedModule(
            f"No law for the first weights of {name} ({type(layer).__name__})."
        )


def _uniform(parameter: Tensor, reach: float, stream: Source) -> None:
    """Fill with multiples of a step, from the middle of the lowest to that of the highest."""
    words = stream.halves_of(parameter.numel())[: parameter.numel()] >> np.uint32(32 - _BITS)
    steps = (words.astype(np.float64) + 0.5) * 2.0**-_BITS
    drawn = torch.from_numpy((2 * steps - 1) * reach)
    parameter.copy_(drawn.view(parameter.shape))
