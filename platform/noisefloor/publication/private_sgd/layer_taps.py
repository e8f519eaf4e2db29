"""Layers that keep their inputs and outputs, so that gradients can be taken of them later.

While a tap is on, it stands in for the layer's ``forward``. No parameter asks for a gradient then,
so that a backward pass stops at the outputs; the first of them are made leaves, since nothing
before them needs one.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from noisefloor.errors import UnsupportedModule
from noisefloor.publication.private_sgd import contributions

Sums: TypeAlias = Mapping[str, Tensor]
"""Where the sums of a layer's gradients go, by parameter; frozen ones have no place."""


class LayerCall(NamedTuple):
    """One use of a layer in a forward pass.

    Attributes:
        inputs: What went in.
        outputs: What came out; its gradient is tracked.
        handed: What the module got: the outputs, or a copy of them that it may change.
        versions: Of inputs and handed, as torch counts changes in place.
    """

    inputs: Tensor
    outputs: Tensor
    handed: Tensor
    versions: tuple[int, int]


class Tap(ABC):
    """Keeps the book of one layer.

    Args:
        layer: What it stands in for.
        sums: Where the sums of its gradients go.
    """

    def __init__(self, layer: Any, sums: Sums) -> None:  # Any: a kind of layer for each tap
        self.layer = layer
        self.sums = sums
        self.calls: list[LayerCall] = []
        self._copies, self._was_changed = True, False
        self._plain: Callable[..., Tensor] = layer.forward

    def on(self) -> None:
        """Stand in for the layer."""
        self.layer.forward = self.forward

    def off(self) -> None:
        """Let the layer work by itself again."""
        del self.layer.forward
        self.forget()

    def forget(self) -> None:
        """Drop what was noted."""
        self.calls.clear()

    def forward(self, inputs: Tensor) -> Tensor:
        """Do what the layer does, and note it where gradients are tracked."""
        outputs = self._plain(inputs)
        if torch.is_grad_enabled():
            if not outputs.requires_grad:
                outputs.requires_grad_()
            return self._noted(inputs, outputs)
        return outputs

    def settle(self) -> None:
        """Copy outputs no more, unless the module changed one in place so far."""
        self._copies = self._was_changed
        self.forget()

    def _noted(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Note a use, and return what the module gets: a copy, where it may change it."""
        handed = outputs.clone() if self._copies else outputs
        self.calls.append(LayerCall(inputs, outputs, handed, (inputs._version, handed._version)))
        return handed

    def tracked_outputs(self) -> list[Tensor]:
        """Return the tensors whose gradients are needed; checks that they are as they were."""
        for call in self.calls:
            was_changed = call.handed._version != call.versions[1]
            if call.inputs._version != call.versions[0] or (was_changed and not self._copies):
                raise changed_in_place(self.layer)
            self._was_changed |= was_changed
        return [call.outputs for call in self.calls]

    @abstractmethod
    def contribution(
        self, gradients: Sequence[Tensor | None]
    ) -> contributions.Contribution | None:
        """Return what the examples say about the layer; None if it had no part in the loss."""


class CallTap(Tap):
    """Keeps the book of a layer whose uses tell everything: what came in, what went out."""

    def contribution(
        self, gradients: Sequence[Tensor | None]
    ) -> contributions.Contribution | None:
        """Return what the examples say about the layer; None if it had no part in the loss."""
        used = [
            (call.inputs, gradient)
            for call, gradient in zip(self.calls, gradients, strict=True)
            if gradient is not None
        ]
        return self._contribution(used) if used else None

    @abstractmethod
    def _contribution(self, used: Sequence[tuple[Tensor, Tensor]]) -> contributions.Contribution:
        """Return what inputs and gradients of outputs say; one pair for each use."""


class LinearTap(CallTap):
    """Keeps the book of a linear layer; several uses count as more rows."""

    @staticmethod
    def takes(layer: nn.Linear) -> bool:
        """Whether this tap can stand in for the layer: always."""
        return True

    def _contribution(self, used: Sequence[tuple[Tensor, Tensor]]) -> contributions.Contribution:
        weight, bias = self.sums.get("weight"), self.sums.get("bias")
        if len(used) == 1 and used[0][0].dim() == 2:
            return contributions.OuterProduct(*used[0], weight=weight, bias=bias)
        inputs = _joined([_rows(one) for one, _ in used])
        gradients = _joined([_rows(one) for _, one in used])
        pairs = [] if weight is None else [(inputs, weight)]
        return contributions.SummedOuterProducts(pairs, gradients, [] if bias is None else [bias])


class EmbeddingTap(CallTap):
    """Keeps the book of an embedding."""

    @staticmethod
    def takes(layer: nn.Embedding) -> bool:
        """Whether this tap can stand in: not if norms or frequencies of a batch come in."""
        return layer.max_norm is None and not layer.scale_grad_by_freq and not layer.sparse

    def _contribution(self, used: Sequence[tuple[Tensor, Tensor]]) -> contributions.Contribution:
        places = torch.cat([one.reshape(len(one), -1) for one, _ in used], 1)
        width = used[0][1].shape[-1]
        gradients = _joined([one.reshape(len(one), -1, width) for _, one in used])
        padding: int | None = self.layer.padding_idx
        return contributions.EmbeddingLookups(
            places, gradients, self.sums["weight"], padding=padding
        )


class LayerNormTap(CallTap):
    """Keeps the book of a layer normalisation."""

    @staticmethod
    def takes(layer: nn.LayerNorm) -> bool:
        """Whether this tap can stand in for the layer: always."""
        return True

    def _contribution(self, used: Sequence[tuple[Tensor, Tensor]]) -> contributions.Contribution:
        shape, stability = self.layer.normalized_shape, self.layer.eps
        size = math.prod(shape)
        pairs: list[tuple[Tensor, Tensor]] = []
        parts = [gradient.reshape(len(gradient), -1, size) for _, gradient in used]
        if "weight" in self.sums:
            scaled = (
                part * functional.layer_norm(one, shape, eps=stability).view_as(part)
                for (one, _), part in zip(used, parts, strict=True)
            )
            pairs.append((_total(list(scaled)), self.sums["weight"]))
        if "bias" in self.sums:
            pairs.append((_total(parts), self.sums["bias"]))
        return contributions.MaterialisedGradients(pairs)


class ConvolutionTap(CallTap):
    """Keeps the book of a convolution over one or two axes: windows are rows."""

    @staticmethod
    def takes(layer: nn.Conv1d | nn.Conv2d) -> bool:
        """Whether this tap can stand in for the layer: not if channels are in groups."""
        return layer.groups == 1

    def _contribution(self, used: Sequence[tuple[Tensor, Tensor]]) -> contributions.Contribution:
        weight, bias = self.sums.get("weight"), self.sums.get("bias")
        gradients = _joined([one.flatten(2).transpose(1, 2) for _, one in used])
        pairs = []
        if weight is not None:
            windows = _joined([self._windows(one).transpose(1, 2) for one, _ in used])
            pairs.append((windows, weight))
        return contributions.SummedOuterProducts(pairs, gradients, [] if bias is None else [bias])

    def _windows(self, inputs: Tensor) -> Tensor:
        """Return the values under each place of the kernel, [examples, values, places]."""
        layer = self.layer
        mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
        padded = functional.pad(inputs, _padding(layer), mode=mode)
        sizes, dilation, stride = layer.kernel_size, layer.dilation, layer.stride
        if padded.dim() == 3:  # one axis is two, of which the first has length one
            padded = padded.unsqueeze(2)
            sizes, dilation, stride = (1, *sizes), (1, *dilation), (1, *stride)
        return functional.unfold(padded, sizes, dilation=dilation, stride=stride)


def changed_in_place(layer: nn.Module) -> UnsupportedModule:
    """Return the error for a book that no longer says what happened."""
    kind = type(layer).__name__
    return UnsupportedModule(
        f"What went into a {kind} is changed in place afterwards, so that its gradient is lost: "
        "set inplace=False."
    )


def _padding(layer: nn.Conv1d | nn.Conv2d) -> list[int]:
    """Return the padding as ``pad`` takes it: before and after, the last axis first."""
    if layer.padding == "valid":
        return [0, 0] * len(layer.kernel_size)
    if layer.padding == "same":
        totals = [
            step * (size - 1) for size, step in zip(layer.kernel_size, layer.dilation, strict=True)
        ]
        return [part for total in reversed(totals) for part in (total // 2, total - total // 2)]
    return [size for size in reversed(list[int](layer.padding)) for _ in (0, 1)]  # type: ignore[arg-type] # not a text here


def _rows(values: Tensor) -> Tensor:
    return values.reshape(len(values), -1, values.shape[-1])


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), 1)


def _total(parts: Sequence[Tensor]) -> Tensor:
    return torch.stack([part.sum(1) for part in parts]).sum(0)
