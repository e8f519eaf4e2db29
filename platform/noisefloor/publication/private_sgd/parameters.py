"""The trainable parameters of a module as one vector.

First weights from a source: no generator of torch takes part.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from noisefloor.errors import UnsupportedModule
from noisefloor.publication.private_sgd.coordinates import NamedParameter
from noisefloor.randomness import Source

_BITS = 24


def initialise(module: nn.Module, source: Source) -> None:
    """Draw all trainable weights afresh, by torch's distribution for each kind of layer.

    Linear layers, convolutions, LSTMs and GRUs are uniform within one over the root of their
    inputs (of the hidden size, for LSTM and GRU); embeddings are normal; normalisations start as
    identity.

    Raises:
        UnsupportedModule: A kind of layer whose distribution is not known here.
    """
    stream = source.stage("weights")
    drawn: set[int] = set()
    for name, layer in module.named_modules():
        own = {key: one for key, one in layer.named_parameters(recurse=False) if one.requires_grad}
        with torch.no_grad():
            for key, parameter in own.items():
                if id(parameter) not in drawn:  # a tied one follows its first layer
                    _fill(layer, name, key, parameter, stream)
                drawn.add(id(parameter))


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


class FlatParameters:
    """One vector of which the trainable parameters are views, for as long as it is held.

    Noise and optimiser then take one pass each, however many layers there are.

    Args:
        module: Its parameters with ``requires_grad`` are taken; they have to be of one type,
            float32 or float64. One that several layers have belongs to the first of them.

    Attributes:
        owners: The trained parameters by layer and name, each once.
        ties: Of parameters that several layers have, by name: these layers, and its names there.
    """

    def __init__(self, module: nn.Module) -> None:
        self.owners, self.ties = owned_parameters(module)
        self.parameters = [one for _, own in self.owners.items() for one in own.values()]
        _check_types(self.parameters)
        self.vector = torch.cat([one.detach().reshape(-1) for one in self.parameters])
        self._sizes = [one.numel() for one in self.parameters]
        self._shapes = [one.shape for one in self.parameters]
        self._own_views = self.views(self.vector)
        self.attach()

    @property
    def names(self) -> list[str]:
        """The names of the trained parameters, in the order of the vector."""
        return [full_name(layer, name) for layer, own in self.owners.items() for name in own]

    @property
    def named(self) -> list[NamedParameter]:
        """Names and shapes, in the order of the vector."""
        return [*map(NamedParameter, self.names, self._shapes)]

    def attach(self) -> None:
        """Let each parameter be its view of the vector, where it is not so already."""
        for parameter, view in zip(self.parameters, self._own_views, strict=True):
            if parameter.data_ptr() != view.data_ptr() or parameter.shape != view.shape:
                parameter.data = view

    def views(self, vector: Tensor) -> list[Tensor]:
        """Return the parts of such a vector, each in the shape of its parameter."""
        parts = torch.split(vector, self._sizes)
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]

    def joined(self, gradients: Sequence[Tensor | None]) -> Tensor:
        """Return gradients of the parameters as one vector; None is a gradient of zero."""
        parts = zip(gradients, self.parameters, strict=True)
        return torch.cat(
            [(torch.zeros_like(like) if one is None else one).reshape(-1) for one, like in parts]
        )

    def release(self) -> None:
        """Give each parameter memory of its own again."""
        for parameter in self.parameters:
            parameter.data = parameter.data.clone()


Ties: TypeAlias = dict[str, list[tuple[str, str]]]


def owned_parameters(module: nn.Module) -> tuple[dict[str, dict[str, nn.Parameter]], Ties]:
    """Return the trainable parameters by layer and name, each once, and which are tied.

    Raises:
        UnsupportedModule: Parameters share memory: the gradient of one example would be counted
            in parts, and its norm be wrong.
    """
    found: dict[str, dict[str, nn.Parameter]] = {}
    users: dict[int, list[tuple[str, str]]] = {}
    for layer_name, layer in module.named_modules():
        for name, parameter in layer.named_parameters(recurse=False, remove_duplicate=False):
            if parameter.requires_grad:
                if id(parameter) not in users:
                    found.setdefault(layer_name, {})[name] = parameter
                users.setdefault(id(parameter), []).append((layer_name, name))
    _check_memory(module)
    tied = [some for some in users.values() if len(some) > 1]
    return found, {full_name(*some[0]): some for some in tied}


def full_name(layer: str, name: str) -> str:
    """Return the name of a layer's parameter in the module."""
    return f"{layer}.{name}" if layer else name


def _check_memory(module: nn.Module) -> None:
    spans = sorted(
        (one.data_ptr(), one.data_ptr() + one.numel() * one.element_size(), name)
        for name, one in module.named_parameters()
        if one.numel()
    )
    for (_, end, name), (start, _, other) in pairwise(spans):
        if start < end:
            raise UnsupportedModule(f"{other} shares memory with {name}: give each its own.")


def _check_types(parameters: list[nn.Parameter]) -> None:
    if not parameters:
        raise UnsupportedModule("No parameter of the module is trainable.")
    types = {one.dtype for one in parameters}
    if len(types) > 1 or not types <= {torch.float32, torch.float64}:
        raise UnsupportedModule("Trainable parameters have to be float32, or all float64.")
    if any(one.device.type != "cpu" for one in parameters):
        raise UnsupportedModule("Noise is drawn on the CPU: move the module there.")
