"""Layers that keep their inputs and outputs, so that gradients can be taken of them later.

While a tap is on, it stands in for the layer's ``forward``. No parameter asks for a gradient then,
so that a backward pass stops at the outputs; the first of them are made leaves, since nothing
before them needs one.

What a layer is given once for a whole batch (positions, say, as ``[1, steps]``) counts as given to
each example: its outputs are repeated, so that each example has a gradient of its own.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from noisefloor.errors import UnsupportedModule
from noisefloor.publication.private_sgd.lookup_gradients import EmbeddingLookups, EntryLookups
from noisefloor.publication.private_sgd.matrix_gradients import (
    BlockSums,
    Parted,
    Places,
    matrix_gradients,
    written_gradients,
)


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
    """

    takes_factors: ClassVar[bool] = True
    """Whether a matrix of such a layer can be carried."""

    def __init__(self, layer: Any) -> None:  # Any: a kind of layer for each tap
        self.layer = layer
        self.places: Places = {}
        self.examples: int | None = None
        self.calls: list[LayerCall] = []
        self._copies, self._was_changed = True, False
        self._plain: Callable[..., Tensor] = layer.forward

    def use(self, places: Places) -> None:
        """Say where sums go from now on.

        Raises:
            UnsupportedModule: A matrix is carried, of a kind of layer whose matrices cannot be.
        """
        if not self.takes_factors and any(one.block.is_factor for one in _all_of(places)):
            raise UnsupportedModule(
                f"The matrix of a {type(self.layer).__name__} cannot be carried by factors here: "
                "leave it out of the plan's carriers, or train with per_example=True."
            )
        self.places = places

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
            if self.examples is not None and len(inputs) == 1:
                inputs = inputs.expand(self.examples, *inputs.shape[1:])
                outputs = outputs.expand(self.examples, *outputs.shape[1:])
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
    def parts(self, gradients: Sequence[Tensor | None]) -> Parted:
        """Return what the examples say about the layer; nothing if it had no part in the loss."""


class CallTap(Tap):
    """Keeps the book of a layer whose uses tell everything: what came in, what went out."""

    def parts(self, gradients: Sequence[Tensor | None]) -> Parted:
        """Return what the examples say about the layer; nothing if it had no part in the loss."""
        used = self.uses(gradients)
        return self._parts(used) if used and self.places else []

    def uses(self, gradients: Sequence[Tensor | None]) -> list[tuple[Tensor, Tensor]]:
        """Return inputs and gradients of outputs, for each use that had a part in the loss."""
        return [
            (call.inputs, gradient)
            for call, gradient in zip(self.calls, gradients, strict=True)
            if gradient is not None
        ]

    @abstractmethod
    def _parts(self, used: Sequence[tuple[Tensor, Tensor]]) -> Parted:
        """Return what inputs and gradients of outputs say; one pair for each use."""


class LinearTap(CallTap):
    """Keeps the book of a linear layer; several uses count as more rows."""

    @staticmethod
    def takes(layer: nn.Linear) -> bool:
        """Whether this tap can stand in for the layer: always."""
        return True

    def _parts(self, used: Sequence[tuple[Tensor, Tensor]]) -> Parted:
        weight, bias = self.places.get("weight", ()), self.places.get("bias", ())
        if len(used) == 1 and used[0][0].dim() == 2:
            inputs, gradients = used[0]
        else:
            inputs, gradients = joined_rows(used)
        return matrix_gradients([(inputs, weight)], gradients, [bias])


class EmbeddingTap(CallTap):
    """Keeps the book of an embedding."""

    takes_factors = False

    @staticmethod
    def takes(layer: nn.Embedding) -> bool:
        """Whether this tap can stand in: not if norms or frequencies of a batch come in."""
        return layer.max_norm is None and not layer.scale_grad_by_freq and not layer.sparse

    def _parts(self, used: Sequence[tuple[Tensor, Tensor]]) -> Parted:
        places, gradients = self.lookups(used)
        kept = self.places["weight"][0]
        block, sums = kept
        size = len(self.layer.weight)
        if block.entries is not None:
            looked_up = EmbeddingLookups(places, gradients, size=size)
            flags = kept.flags(gradients.dtype)
            return [(EntryLookups(looked_up, flags, kept.add), block.part)]
        if block.rows is not None:
            where = torch.full((size,), -1).index_copy_(0, block.rows, torch.arange(len(sums)))
            places = where[places]
            gradients = gradients * (places >= 0).unsqueeze(2)
            places = places.clamp_(min=0)
        if block.columns is not None:
            gradients = gradients.index_select(2, block.columns)
        return [(EmbeddingLookups(places, gradients, size=len(sums), table=sums), block.part)]

    def lookups(self, used: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Return which rows were looked up, [examples, lookups], and the gradients of each."""
        places = torch.cat([one.reshape(len(one), -1) for one, _ in used], 1)
        width = used[0][1].shape[-1]
        gradients = _joined([one.reshape(len(one), -1, width) for _, one in used])
        if self.layer.padding_idx is not None:  # a row that is not trained
            gradients = gradients * (places != self.layer.padding_idx).unsqueeze(2)
        return places, gradients


class LayerNormTap(CallTap):
    """Keeps the book of a layer normalisation."""

    @staticmethod
    def takes(layer: nn.LayerNorm) -> bool:
        """Whether this tap can stand in for the layer: always."""
        return True

    def _parts(self, used: Sequence[tuple[Tensor, Tensor]]) -> Parted:
        shape, stability = self.layer.normalized_shape, self.layer.eps
        size = math.prod(shape)
        rows: list[tuple[Tensor, Sequence[BlockSums]]] = []
        parts = [gradient.reshape(len(gradient), -1, size) for _, gradient in used]
        if "weight" in self.places:
            scaled = (
                part * functional.layer_norm(one, shape, eps=stability).view_as(part)
                for (one, _), part in zip(used, parts, strict=True)
            )
            rows.append((_total(list(scaled)), self.places["weight"]))
        if "bias" in self.places:
            rows.append((_total(parts), self.places["bias"]))
        return written_gradients(rows)


class GroupNormTap(CallTap):
    """Keeps the book of a group normalisation: each channel has a weight and a bias."""

    @staticmethod
    def takes(layer: nn.GroupNorm) -> bool:
        """Whether this tap can stand in for the layer: always."""
        return True

    def _parts(self, used: Sequence[tuple[Tensor, Tensor]]) -> Parted:
        groups, stability = self.layer.num_groups, self.layer.eps
        rows: list[tuple[Tensor, Sequence[BlockSums]]] = []
        if "weight" in self.places:
            scaled = [
                (gradient * functional.group_norm(one, groups, eps=stability)).transpose(1, -1)
                for one, gradient in used
            ]
            rows.append((_channel_totals(scaled), self.places["weight"]))
        if "bias" in self.places:
            plain = [gradient.transpose(1, -1) for _, gradient in used]
            rows.append((_channel_totals(plain), self.places["bias"]))
        return written_gradients(rows)


class ConvolutionTap(CallTap):
    """Keeps the book of a convolution over one or two axes: windows are rows."""

    @staticmethod
    def takes(layer: nn.Conv1d | nn.Conv2d) -> bool:
        """Whether this tap can stand in for the layer: always."""
        return True

    def _parts(self, used: Sequence[tuple[Tensor, Tensor]]) -> Parted:
        weight, bias = self.places.get("weight", ()), self.places.get("bias", ())
        gradients = _joined([one.flatten(2).transpose(1, 2) for _, one in used])
        if not weight:
            return matrix_gradients([], gradients, [bias])
        windows = _joined([self._windows(one).transpose(1, 2) for one, _ in used])
        if self.layer.groups == 1:
            return matrix_gradients([(windows, weight)], gradients, [bias])
        written = (self._grouped(windows, gradients), weight)
        return written_gradients([written, (gradients.sum(1), bias)])

    def _grouped(self, windows: Tensor, gradients: Tensor) -> Tensor:
        """Return gradients where each group of outputs sees its own channels, written out.

        A matrix has as many times fewer columns as there are groups, so that this is cheap.
        """
        groups = self.layer.groups
        examples, rows, _ = windows.shape
        inputs, sides = (
            one.reshape(examples, rows, groups, -1).transpose(1, 2) for one in (windows, gradients)
        )
        return torch.matmul(sides.transpose(2, 3), inputs).flatten(1)

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


def joined_rows(used: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Return inputs and gradients of several uses, [examples, rows of all uses, values]."""
    inputs, gradients = zip(*used, strict=True)
    return _joined([_rows(one) for one in inputs]), _joined([_rows(one) for one in gradients])


def _rows(values: Tensor) -> Tensor:
    return values.reshape(len(values), -1, values.shape[-1])


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), 1)


def _channel_totals(parts: Sequence[Tensor]) -> Tensor:
    """Return sums over all but the first and the last axis."""
    return _total([part.reshape(len(part), -1, part.shape[-1]) for part in parts])


def _all_of(places: Places) -> list[BlockSums]:
    return [one for some in places.values() for one in some]


def _total(parts: Sequence[Tensor]) -> Tensor:
    return torch.stack([part.sum(1) for part in parts]).sum(0)
