"""Which coordinates have gradients in a step, and where they are in the vector of sums.

Left-out coordinates have no place in the vector at all: they are in no norm, no sum, no noise and
no state of the optimiser. What is left is laid out as a module without them would have it, so that
it gets the same draws.

A parameter is one block of coordinates (whole, of some units, or of some entries), or two if
it is carried by factors. A block turns inputs and gradients of a layer into its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from noisefloor.errors import BadParameter
from noisefloor.publication.private_sgd.carriers import Carriers
from noisefloor.publication.private_sgd.clipping import Clipping
from noisefloor.publication.private_sgd.masks import Kept, KeptEntries, KeptUnits


class BlockPart(NamedTuple):
    """What blocks share that are clipped and weighed alike.

    Attributes:
        group: The place of their group of clipping.
        scale: What their gradients are divided by.
    """

    group: int
    scale: float


@dataclass(frozen=True, slots=True)
class CoordinateBlock:
    """Some coordinates of one parameter, or of one of its factors.

    Attributes:
        name: Of the parameter or the factor.
        part: The place of its ``BlockPart``.
        parameter: The shape of the parameter.
        rows: Places of kept rows; None for all.
        columns: Places of kept columns of the parameter as a matrix; None for all.
        entries: One for each kept entry as a matrix, otherwise zero; None for all.
        left: The left carrier, if this is the right factor.
        right: The right carrier, if this is the left factor.
    """

    name: str
    part: int
    parameter: torch.Size
    rows: Tensor | None = None
    columns: Tensor | None = None
    entries: Tensor | None = None
    left: Tensor | None = None
    right: Tensor | None = None
    places: Tensor | None = field(init=False)
    """Where the coordinates are in the parameter; None if there is more to it, or all are in."""
    shape: torch.Size = field(init=False)

    def __post_init__(self) -> None:
        is_some = not self.is_whole and not self.is_factor
        object.__setattr__(self, "places", self._places() if is_some else None)
        object.__setattr__(self, "shape", self._shape())

    def _shape(self) -> torch.Size:
        if self.is_whole:
            return self.parameter
        if self.entries is not None and self.places is not None:
            return self.places.shape
        rows, columns = self.full
        rows = rows if self.rows is None else len(self.rows)
        columns = columns if self.columns is None else len(self.columns)
        return torch.Size([rows] if len(self.parameter) == 1 else [rows, columns])

    @property
    def is_whole(self) -> bool:
        """Whether these are all coordinates of the parameter, as they are."""
        parts = (self.rows, self.columns, self.entries, self.left, self.right)
        return all(one is None for one in parts)

    @property
    def is_factor(self) -> bool:
        """Whether these are coordinates of a factor."""
        return self.left is not None or self.right is not None

    @property
    def matrix(self) -> tuple[int, int]:
        """Rows and columns of the parameter as a matrix; a vector has one column."""
        rows = self.parameter[0]
        return rows, self.parameter.numel() // max(1, rows)

    @property
    def full(self) -> tuple[int, int]:
        """Rows and columns of the matrix or the factor before units are left out."""
        rows, columns = self.matrix
        rows = rows if self.left is None else self.left.shape[1]
        return rows, columns if self.right is None else len(self.right)

    def on_carriers(self, gradients: Tensor, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return gradients of outputs and inputs as a factor has them, of all units."""
        sides = gradients if self.left is None else gradients @ self.left
        return sides, inputs if self.right is None else inputs @ self.right.t()

    def of_inputs(self, inputs: Tensor) -> Tensor:
        """Return what stands for a layer's inputs in outer products; the last axis changes."""
        if self.right is not None:
            return inputs @ self.right.t()
        return inputs if self.columns is None else inputs.index_select(-1, self.columns)

    def of_outputs(self, gradients: Tensor) -> Tensor:
        """Return what stands for the gradients of a layer's outputs; the last axis changes."""
        if self.left is not None:
            return gradients @ self.left
        return gradients if self.rows is None else gradients.index_select(-1, self.rows)

    def of_written(self, gradients: Tensor) -> Tensor:
        """Return this block of gradients that are written out, [examples, parameter's size]."""
        if self.is_whole:
            return gradients
        if self.entries is not None and self.places is not None:
            return gradients.index_select(1, self.places)
        each = gradients.view(len(gradients), *self.matrix)
        if self.right is not None:
            each = each @ self.right.t()
        if self.left is not None:
            each = self.left.t() @ each
        return self.of_units(each).flatten(1)

    def of_units(self, written: Tensor) -> Tensor:
        """Return the kept units of matrices, [examples, rows, columns]."""
        kept = written if self.rows is None else written.index_select(1, self.rows)
        return kept if self.columns is None else kept.index_select(2, self.columns)

    def _places(self) -> Tensor:
        if self.entries is not None:
            return self.entries.reshape(-1).nonzero().view(-1)
        rows, columns = self.matrix
        lines = torch.arange(rows) if self.rows is None else self.rows
        across = torch.arange(columns) if self.columns is None else self.columns
        return (lines.unsqueeze(1) * columns + across).view(-1)

    def spread(self, values: Tensor) -> Tensor:
        """Return a factor in full, with zero where units are left out."""
        if self.rows is None and self.columns is None:
            return values
        full = values.new_zeros(self.full)
        if self.rows is not None:
            return full.index_copy_(0, self.rows, values)
        if self.columns is not None:
            full.index_copy_(1, self.columns, values)
        return full


class NamedParameter(NamedTuple):
    """A trained parameter, as far as layouts are concerned.

    Attributes:
        name: In the module.
        shape: Of its values.
    """

    name: str
    shape: torch.Size


PartOf: TypeAlias = Callable[[str], int]
"""Takes the name of a parameter or a factor, gives the place of its part."""


def blocks_of(
    parameter: NamedParameter, part_of: PartOf, kept: Kept | None, carriers: Carriers | None
) -> list[CoordinateBlock]:
    """Return the blocks of a parameter.

    Raises:
        BadParameter: The flags do not fit the parameter.
    """
    name, shape = parameter
    if isinstance(kept, KeptEntries):
        if kept.entries.shape != shape or kept.entries.dtype != torch.bool or carriers is not None:
            raise BadParameter(
                "entries", tuple(kept.entries.shape), f"flags for {name}, which is not carried"
            )
        flat = kept.entries.reshape(shape[0], -1)
        entries = None if bool(flat.all()) else flat.float()
        return [CoordinateBlock(name, part_of(name), shape, entries=entries)]
    units = KeptUnits() if kept is None else kept
    rows = _unit_places(units.rows, shape, 0, name)
    columns = _unit_places(units.columns, shape, 1, name)
    if columns is not None and len(shape) > 2:  # as a matrix, a channel is several columns
        width = shape[2:].numel()
        columns = (columns.unsqueeze(1) * width + torch.arange(width)).view(-1)
    if carriers is None:
        return [CoordinateBlock(name, part_of(name), shape, rows=rows, columns=columns)]
    left, right = f"{name}.left", f"{name}.right"
    return [
        CoordinateBlock(left, part_of(left), shape, rows=rows, right=carriers.right),
        CoordinateBlock(right, part_of(right), shape, columns=columns, left=carriers.left),
    ]


def _unit_places(flags: Tensor | None, shape: torch.Size, axis: int, name: str) -> Tensor | None:
    if flags is None:
        return None
    if len(shape) <= axis or flags.shape != (shape[axis],) or flags.dtype != torch.bool:
        side = ("rows", "columns")[axis]
        raise BadParameter(side, tuple(flags.shape), f"to be a flag for each of {name}'s {side}")
    return None if bool(flags.all()) else flags.nonzero().view(-1)


class GradientLayout:
    """The blocks of all parameters, one after another in the vector of sums.

    Args:
        parameters: All trained ones, in the order of the weights.
        clipping: Its groups are those of the blocks.
        scale_of: Gives the scale of a parameter or a factor, by name.
        kept: What is trained of parameters of which not everything is, by name.
        carriers: Of parameters that are carried, by name.

    Raises:
        BadParameter: Something is said of a parameter that is not trained, or does not fit it, or
            nothing is left to train.
    """

    def __init__(
        self,
        parameters: Sequence[NamedParameter],
        clipping: Clipping,
        *,
        scale_of: Callable[[str], float] = lambda _: 1.0,
        kept: Mapping[str, Kept] = MappingProxyType({}),
        carriers: Mapping[str, Carriers] = MappingProxyType({}),
    ) -> None:
        unknown = {*kept, *carriers} - {name for name, _ in parameters}
        if unknown:
            raise BadParameter("kept", sorted(unknown), "to name trained parameters")
        self.parameters, self.carriers = parameters, carriers
        places: dict[BlockPart, int] = {}

        def part_of(name: str) -> int:
            return places.setdefault(
                BlockPart(clipping.group_of(name), scale_of(name)), len(places)
            )

        self.blocks = [
            blocks_of(one, part_of, kept.get(one.name), carriers.get(one.name))
            for one in parameters
        ]
        self.parts = list(places)
        self._each = [block for own in self.blocks for block in own]
        self._sizes = [block.shape.numel() for block in self._each]
        self.size = sum(self._sizes)
        if not self.size:
            raise BadParameter("kept", 0, "to leave something to train")
        self.moving = self._moving()

    def _moving(self) -> Tensor | None:
        """Return which weights move, as places in their vector; None for all of them."""
        if all(own[0].places is None for own in self.blocks):
            return None
        start, found = 0, []
        for (_, shape), own in zip(self.parameters, self.blocks, strict=True):
            places = own[0].places
            found.append(
                torch.arange(start, start + shape.numel()) if places is None else places + start
            )
            start += shape.numel()
        return torch.cat(found)

    def views(self, sums: Tensor) -> list[list[Tensor]]:
        """Return the place of each block in a vector of sums, by parameter."""
        parts = iter(torch.split(sums, self._sizes))
        return [[next(parts).view(block.shape) for block in own] for own in self.blocks]

    def of_written(self, rows: Sequence[Tensor]) -> Tensor:
        """Return gradients as rows of such a vector, scaled; from those of each parameter.

        Args:
            rows: [examples, size of the parameter], for each parameter.
        """
        found = []
        for one, own in zip(rows, self.blocks, strict=True):
            for block in own:
                found.append(block.of_written(one) / self.parts[block.part].scale)
        return torch.cat(found, 1)

    def flags_of(self, group: int) -> Tensor:
        """Return one for each coordinate in a group of clipping, otherwise zero."""
        return torch.cat(
            [
                torch.full((size,), float(self.parts[block.part].group == group))
                for block, size in zip(self._each, self._sizes, strict=True)
            ]
        )

    def gradient(self, noised: Tensor) -> Tensor:
        """Return the gradient of the weights that move, from noisy sums; post-processing."""
        for block, one in zip(self._each, torch.split(noised, self._sizes), strict=True):
            if self.parts[block.part].scale != 1:
                one.mul_(self.parts[block.part].scale)
        if not self.carriers:
            return noised
        found = []
        for (name, _), own, views in zip(
            self.parameters, self.blocks, self.views(noised), strict=True
        ):
            carriers = self.carriers.get(name)
            if carriers is not None:
                factors = [block.spread(one) for block, one in zip(own, views, strict=True)]
                found.append(carriers.move_of(*factors).view(-1))
            else:
                found.append(views[0].reshape(-1))
        return torch.cat(found)
