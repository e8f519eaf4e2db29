"""A matrix that several layers use: an embedding and the layer of its logits, say.

One example's gradient is the sum over all uses, and its norm is that of the sum: norms of single
uses do not tell it. Uses as a linear layer are rows of one sum of outer products. A lookup is such
a row as well, with a one in the place of the looked-up row; the products with it need no such row.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from noisefloor.errors import UnsupportedModule
from noisefloor.publication.private_sgd.contributions import squares_by_gram
from noisefloor.publication.private_sgd.layer_taps import (
    CallTap,
    EmbeddingTap,
    LinearTap,
    joined_rows,
)
from noisefloor.publication.private_sgd.matrix_gradients import (
    BlockSums,
    Parted,
    matrix_gradients,
)

TIED_KINDS = (nn.Linear, nn.Embedding)
"""Layers whose ``weight`` may be another one's."""


class TiedWeights:
    """Keeps the book of one matrix over all layers that use it.

    Args:
        taps: Of these layers, by name.
        blocks: Of the matrix.

    Raises:
        UnsupportedModule: Not all of a looked-up matrix is trained as it is.
    """

    def __init__(self, taps: Mapping[str, CallTap], blocks: Sequence[BlockSums]) -> None:
        self._taps, self._blocks = taps, blocks
        is_looked_up = any(isinstance(tap, EmbeddingTap) for tap in taps.values())
        if is_looked_up and not blocks[0].block.is_whole:
            raise UnsupportedModule(
                f"{blocks[0].block.name} is tied to an embedding, so that no part of it can be "
                "left out or carried here: untie them, or train with per_example=True."
            )

    def parts(self, gradients: Mapping[str, Sequence[Tensor | None]]) -> Parted:
        """Return what the examples say about the matrix, from gradients of layers' outputs."""
        rows: list[tuple[Tensor, Tensor]] = []
        places: list[Tensor] = []
        lookups: list[Tensor] = []
        for name, tap in self._taps.items():
            used = tap.uses(gradients[name])
            if used and isinstance(tap, EmbeddingTap):
                looked_up = tap.lookups(used)
                places.append(looked_up[0])
                lookups.append(looked_up[1])
            elif isinstance(tap, LinearTap):
                rows += used
        if not places:
            if not rows:
                return []
            inputs, sides = joined_rows(rows)
            return matrix_gradients([(inputs, self._blocks)], sides, [])
        table, first = self._blocks[0].sums, lookups[0]
        nothing = (first[:, :0], first.new_empty(len(first), 0, len(table)))
        inputs, sides = joined_rows(rows) if rows else nothing
        contribution = TiedTable(
            inputs, sides, torch.cat(places, 1), torch.cat(lookups, 1), table=table
        )
        return [(contribution, self._blocks[0].block.part)]


class TiedTable:
    """Gradients of a table that is looked up and multiplied by as well.

    Args:
        inputs: Of the linear uses, [examples, rows, width].
        gradients: Of their outputs, [examples, rows, size of the table].
        places: Which rows were looked up, [examples, lookups].
        lookups: Their gradients, [examples, lookups, width].
        table: Where the sum goes.
    """

    def __init__(
        self, inputs: Tensor, gradients: Tensor, places: Tensor, lookups: Tensor, *, table: Tensor
    ) -> None:
        self._inputs, self._gradients = inputs, gradients
        self._places, self._lookups, self._table = places, lookups, table

    def squares(self) -> Tensor:
        """Return the squared norms, by Gram matrices over rows and lookups together."""
        gradients, places = self._gradients, self._places
        rows, lookups = gradients.shape[1], places.shape[1]
        size = rows + lookups
        inner = gradients.new_empty(len(places), size, size)
        inner[:, :rows, :rows] = torch.bmm(gradients, gradients.transpose(1, 2))
        # The product of a row and a lookup's row of one 1: the row's entry in that place.
        across = gradients.gather(2, places.unsqueeze(1).expand(-1, rows, -1))
        inner[:, :rows, rows:] = across
        inner[:, rows:, :rows] = across.transpose(1, 2)
        inner[:, rows:, rows:] = places.unsqueeze(1) == places.unsqueeze(2)
        sides = torch.cat([self._inputs, self._lookups], 1)
        outer = torch.bmm(sides, sides.transpose(1, 2))
        return squares_by_gram(inner, outer, terms=(gradients.shape[2], sides.shape[2]))

    def add(self, factors: Tensor) -> None:
        """Add both kinds of uses."""
        scale = factors.view(-1, 1, 1)
        scaled = (self._gradients * scale).flatten(0, 1)
        self._table.addmm_(scaled.t(), self._inputs.flatten(0, 1))
        looked_up = (self._lookups * scale).flatten(0, 1)
        self._table.index_add_(0, self._places.reshape(-1), looked_up)
