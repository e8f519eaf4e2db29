"""Gradients of lookup tables: few rows of many, of each example its own."""

from collections.abc import Callable

import torch
from torch import Tensor

from noisefloor.publication.private_sgd.contributions import squared_norms


class EmbeddingLookups:
    """Gradients of the rows of a table that were looked up; repeated ones add up first.

    Args:
        places: Which rows, [examples, lookups].
        gradients: [examples, lookups, width].
        size: How many rows there are.
        table: Where the sum goes, if not to a part of the table only.
    """

    def __init__(
        self, places: Tensor, gradients: Tensor, *, size: int, table: Tensor | None = None
    ) -> None:
        self._table = table
        self._examples = len(places)
        owners = torch.arange(self._examples).unsqueeze(1) * size
        keys, inverse = torch.unique(places + owners, return_inverse=True)
        self.owners = keys.div(size, rounding_mode="floor")
        self.places = keys.sub_(self.owners * size)
        self.rows = gradients.new_zeros(len(keys), gradients.shape[2])
        self.rows.index_add_(0, inverse.view(-1), gradients.flatten(0, 1))

    def squares(self) -> Tensor:
        """Return the sums of the squared norms of the rows that each example looked up."""
        each = squared_norms(self.rows)
        return each.new_zeros(self._examples).index_add_(0, self.owners, each)

    def add(self, factors: Tensor) -> None:
        """Add the rows in their places."""
        if self._table is not None:
            scaled = self.rows.mul_(factors[self.owners].unsqueeze(1))
            self._table.index_add_(0, self.places, scaled)


class EntryLookups:
    """Some entries of the rows of a table that were looked up.

    Args:
        looked_up: All entries of the rows.
        flags: One for each kept entry, otherwise zero, [rows, width].
        add_kept: Adds what is kept of a whole table to its sum.
    """

    def __init__(
        self, looked_up: EmbeddingLookups, flags: Tensor, add_kept: Callable[[Tensor], None]
    ) -> None:
        self._all, self._flags, self._add_kept = looked_up, flags, add_kept
        self._all.rows.mul_(flags[self._all.places])

    def squares(self) -> Tensor:
        """Return the squared norms of the kept entries."""
        return self._all.squares()

    def add(self, factors: Tensor) -> None:
        """Add the kept entries in their places."""
        table = torch.zeros_like(self._flags)
        scaled = self._all.rows.mul_(factors[self._all.owners].unsqueeze(1))
        self._add_kept(table.index_add_(0, self._all.places, scaled))
