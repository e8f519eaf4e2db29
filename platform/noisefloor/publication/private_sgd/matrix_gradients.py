"""Gradients of matrices, from rows of inputs and rows of gradients: which way for which block.

Blocks of whole parameters that are clipped together are one contribution. Every other block has
its own: units and factors are outer products of other rows, entries need a mask.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from noisefloor.publication.private_sgd.contributions import (
    Contribution,
    MaterialisedGradients,
    OuterProduct,
    SummedOuterProducts,
    lost_to_underflow,
    squared_norms,
)
from noisefloor.publication.private_sgd.coordinates import CoordinateBlock


class BlockSums(NamedTuple):
    """A block, and where its sum goes."""

    block: CoordinateBlock
    sums: Tensor

    def flags(self, dtype: torch.dtype) -> Tensor:
        """Return one for each kept entry of the parameter as a matrix, otherwise zero."""
        entries = self.block.entries
        return torch.ones(self.block.matrix, dtype=dtype) if entries is None else entries.to(dtype)

    def add(self, total: Tensor) -> None:
        """Add what is kept of a sum over all entries."""
        places = self.block.places
        kept = total.reshape(-1) if places is None else total.reshape(-1).index_select(0, places)
        self.sums.view(-1).add_(kept)


Places: TypeAlias = Mapping[str, Sequence[BlockSums]]
"""Where the sums of a layer's gradients go, by parameter; frozen ones have no place."""

Parted: TypeAlias = list[tuple[Contribution, int]]
"""Contributions, each with the place of its part."""

_MOST_WRITTEN = 1 << 23
"""Numbers of written-out gradients at once, for entry masks: 32 MB of single floats."""


def matrix_gradients(
    weights: Sequence[tuple[Tensor, Sequence[BlockSums]]],
    gradients: Tensor,
    biases: Sequence[Sequence[BlockSums]],
) -> Parted:
    """Return what examples say about matrices and biases with the same gradients of outputs.

    Args:
        weights: Inputs, [examples, columns] or [examples, rows, columns], and the blocks of the
            matrix that takes them.
        gradients: Of the outputs, with as many axes.
        biases: The blocks of each bias.
    """
    whole: dict[int, tuple[list[tuple[Tensor, Tensor]], list[Tensor]]] = {}
    found: Parted = []
    for inputs, places in weights:
        for block, sums in places:
            if block.is_whole:
                whole.setdefault(block.part, ([], []))[0].append((inputs, sums))
            else:
                found.append((_of_block(block, inputs, gradients, sums), block.part))
    for places in biases:
        for block, sums in places:
            if block.is_whole:
                whole.setdefault(block.part, ([], []))[1].append(sums)
            else:
                totals = gradients if gradients.dim() == 2 else gradients.sum(1)
                own = MaterialisedGradients([(block.of_written(totals), sums)])
                found.append((own, block.part))
    return found + [
        (_outer_products(pairs, gradients, plain), part) for part, (pairs, plain) in whole.items()
    ]


def written_gradients(
    rows: Sequence[tuple[Tensor, Sequence[BlockSums]]],
) -> Parted:
    """Return what examples say by gradients that are written out, [examples, values]."""
    return [
        (MaterialisedGradients([(block.of_written(one.flatten(1)), sums)]), block.part)
        for one, places in rows
        for block, sums in places
    ]


def _outer_products(
    pairs: Sequence[tuple[Tensor, Tensor]], gradients: Tensor, biases: Sequence[Tensor]
) -> Contribution:
    if gradients.dim() == 3:
        return SummedOuterProducts(pairs, gradients, biases)
    inputs, weight = pairs[0] if pairs else (gradients, None)
    return OuterProduct(inputs, gradients, weight=weight, bias=biases[0] if biases else None)


def _of_block(
    block: CoordinateBlock, inputs: Tensor, gradients: Tensor, sums: Tensor
) -> Contribution:
    if gradients.dim() == 3 and block.entries is not None:
        numbers = len(inputs) * block.entries.numel()
        if numbers <= _MOST_WRITTEN and block.entries.numel() <= inputs[0].numel():
            written = torch.bmm(gradients.transpose(1, 2), inputs).flatten(1)
            return MaterialisedGradients([(block.of_written(written), sums)])
    if block.entries is not None:
        kind = EntryOuterProduct if gradients.dim() == 2 else SummedEntryProducts
        return kind(inputs, gradients, BlockSums(block, sums))
    if gradients.dim() == 3 and _is_cheaper_cut_late(block, inputs.shape[1]):
        sides, others = block.on_carriers(gradients, inputs)
        written = torch.bmm(sides.transpose(1, 2), others)
        return MaterialisedGradients([(block.of_units(written).flatten(1), sums)])
    sides, others = block.of_outputs(gradients), block.of_inputs(inputs)
    return _outer_products([(others, sums)], sides, [])


def _is_cheaper_cut_late(block: CoordinateBlock, rows: int) -> bool:
    """Whether units are cut out of written-out gradients and not out of rows.

    A factor of low rank has fewer numbers in an example's gradient than in its rows.
    """
    height, width = block.full
    return height * width <= rows * min(height + width, max(block.shape))


class EntryOuterProduct:
    """Some entries of g a^T, one row for each example.

    The squared norm is sum_ij M_ij g_i^2 a_j^2: one product of squares with the mask.

    Args:
        inputs: A row for each example.
        gradients: Of the outputs, a row for each example.
        kept: Which entries there are, and where their sum goes.
    """

    def __init__(self, inputs: Tensor, gradients: Tensor, kept: BlockSums) -> None:
        self._inputs, self._gradients, self._kept = inputs, gradients, kept

    def squares(self) -> Tensor:
        """Return the squared norms of the kept entries; no term is negative, so none cancels."""
        lost = lost_to_underflow(self._inputs.dtype, 1)
        sides, others = (one.square().add_(lost) for one in (self._gradients, self._inputs))
        return (sides @ self._kept.flags(sides.dtype)).mul_(others).sum(1)

    def add(self, factors: Tensor) -> None:
        """Add the kept entries of G^T diag(factors) A."""
        scaled = self._gradients * factors.unsqueeze(1)
        self._kept.add(scaled.t() @ self._inputs)


class SummedEntryProducts:
    """Some entries of sum_t g_t a_t^T, several rows for each example.

    No formula on rows gives their norm: gradients are written out, some examples at a time.

    Args:
        inputs: [examples, rows, columns].
        gradients: [examples, rows, outputs].
        kept: Which entries there are, and where their sum goes.
    """

    def __init__(self, inputs: Tensor, gradients: Tensor, kept: BlockSums) -> None:
        self._inputs, self._gradients, self._kept = inputs, gradients, kept

    def squares(self) -> Tensor:
        """Return the squared norms of the kept entries."""
        flags = self._kept.flags(self._inputs.dtype)
        most = max(1, _MOST_WRITTEN // max(1, flags.numel()))
        found = []
        for inputs, gradients in zip(
            torch.split(self._inputs, most), torch.split(self._gradients, most), strict=True
        ):
            written = torch.bmm(gradients.transpose(1, 2), inputs).mul_(flags)
            found.append(squared_norms(written.flatten(1)))
        return torch.cat(found)

    def add(self, factors: Tensor) -> None:
        """Add the kept entries of the sum over examples and rows."""
        scaled = (self._gradients * factors.view(-1, 1, 1)).flatten(0, 1)
        self._kept.add(scaled.t() @ self._inputs.flatten(0, 1))
