"""What each example of a batch says about a layer's parameters, before it is clipped.

A contribution knows the squared norm of each example's gradient, and can add the gradients up,
each times a factor; neither makes the gradients one by one unless that is the cheaper way. Three
forms cover all layers: matrices, lookup tables, and vectors that are small enough to write out.

The factors that clip, from squared norms; and a batch that they clip.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from noisefloor.errors import NoisefloorError, UnsupportedModule
from noisefloor.publication.private_sgd.clipping import Automatic, Clipping

_CANCELLED = 4
"""Gram matrices sum terms of either sign. Their float error, in units of the last place of the sum
of sizes, is added to the squared norm: a gradient that seems to vanish but is only blurred by
cancellation must not pass unclipped. Without it one example was seen to reach 275 times the
bound."""


def lost_to_underflow(dtype: torch.dtype, terms: int) -> float:
    """Return what a sum of this number of squares may lose to underflow.

    It is added wherever such a sum is multiplied by another one: a gradient of 2e-23 beside inputs
    of 9e18 has a square of zero, and was seen to pass a bound of 1e-6 by 3,000 times.
    """
    return torch.finfo(dtype).tiny * terms


def squared_norms(rows: Tensor) -> Tensor:
    """Return the squared norm of each row, in two passes that allocate nothing large."""
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return norms.square_()


def squares_by_gram(inner: Tensor, outer: Tensor, *, terms: tuple[int, int]) -> Tensor:
    """Return the squared norms of sums of outer products, with room for what floats lose.

    Args:
        inner: Products of all pairs of rows on one side, [examples, rows, rows]; used up.
        outer: The same on the other side.
        terms: How many numbers a row of each side has.
    """
    sides = [one.diagonal(dim1=1, dim2=2).sqrt() for one in (inner, outer)]
    largest = (sides[0] * sides[1]).sum(1).square_()
    blur = _CANCELLED * torch.finfo(inner.dtype).eps
    squares = inner.mul_(outer).sum((1, 2)).clamp_(min=0).add_(largest, alpha=blur)
    # What is lost of one side is multiplied by the other.
    for side, count in zip(sides, reversed(terms), strict=True):
        squares.add_(side.sum(1).square_(), alpha=lost_to_underflow(side.dtype, count))
    return squares


class Contribution(Protocol):
    """One layer's part in the gradients of a batch."""

    def squares(self) -> Tensor:
        """Return the squared norm of each example's gradient, of this layer's parameters."""

    def add(self, factors: Tensor) -> None:
        """Add the gradients, each times its example's factor, to the sums."""


class OuterProduct:
    """Gradients g a^T of one row for each example, as a plain linear layer has them.

    Args:
        inputs: A row for each example.
        gradients: Of the outputs, a row for each example.
        weight: Where the sum for the matrix goes, if it is trained.
        bias: Where the sum for the bias goes, if it is trained.
    """

    def __init__(
        self, inputs: Tensor, gradients: Tensor, *, weight: Tensor | None, bias: Tensor | None
    ) -> None:
        self._inputs, self._gradients = inputs, gradients
        self._weight, self._bias = weight, bias

    def squares(self) -> Tensor:
        """Return ||g||^2 (||a||^2 + 1), without the one or the other if frozen."""
        sides = squared_norms(self._gradients)
        if self._weight is None:
            return sides
        others = squared_norms(self._inputs)
        for squares, rows in ((sides, self._gradients), (others, self._inputs)):
            squares.add_(lost_to_underflow(rows.dtype, rows.shape[1]))
        return sides.mul_(others if self._bias is None else others.add_(1))

    def add(self, factors: Tensor) -> None:
        """Add G^T diag(factors) A."""
        if self._bias is not None:
            self._bias.addmv_(self._gradients.t(), factors)
        if self._weight is not None:
            scaled = self._gradients * factors.unsqueeze(1)
            self._weight.addmm_(scaled.t(), self._inputs)


class SummedOuterProducts:
    """Gradients sum_t g_t a_t^T of several rows for each example: positions, or steps in time.

    The norm comes from Gram matrices over positions or from the gradients written out, whichever
    is fewer products. The latter are then kept and summed as they are.

    Args:
        pairs: Inputs [examples, rows, columns], and where the sum for their matrix goes.
        gradients: Of the outputs, [examples, rows, outputs]; the same for all pairs.
        biases: Where sums for biases go.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[Tensor, Tensor]],
        gradients: Tensor,
        biases: Sequence[Tensor],
    ) -> None:
        self._pairs, self._gradients, self._biases = pairs, gradients, biases
        self._written: list[Tensor] | None = None

    def squares(self) -> Tensor:
        """Return the squared norms; the biases count as inputs that are always one."""
        _, rows, outputs = self._gradients.shape
        columns = sum(inputs.shape[2] for inputs, _ in self._pairs) + len(self._biases)
        if rows * (columns + outputs) < columns * outputs:
            return self._squares_by_gram(columns)
        return self._squares_written_out()

    def _squares_by_gram(self, columns: int) -> Tensor:
        inner = torch.bmm(self._gradients, self._gradients.transpose(1, 2))
        outer: Tensor | None = None
        for inputs, _ in self._pairs:
            across = inputs.transpose(1, 2)
            outer = (
                torch.bmm(inputs, across)
                if outer is None
                else torch.baddbmm(outer, inputs, across)
            )
        outer = torch.zeros_like(inner) if outer is None else outer
        outer.add_(len(self._biases))
        return squares_by_gram(inner, outer, terms=(self._gradients.shape[2], columns))

    def _squares_written_out(self) -> Tensor:
        across = self._gradients.transpose(1, 2)
        self._written = [torch.bmm(across, inputs).flatten(1) for inputs, _ in self._pairs]
        totals = self._gradients.sum(1)
        squares = totals.square().sum(1).mul_(len(self._biases))
        for written in self._written:
            squares += squared_norms(written)
        self._written.append(totals)
        return squares

    def add(self, factors: Tensor) -> None:
        """Add the sums over examples and positions at once."""
        if self._written is not None:
            for (_, sums), written in zip(self._pairs, self._written, strict=False):
                sums.view(-1).addmv_(written.t(), factors)
            for bias in self._biases:
                bias.addmv_(self._written[-1].t(), factors)
            return
        scaled = _in_lines(self._gradients * factors.view(-1, 1, 1), self._gradients)
        for inputs, sums in self._pairs:
            sums.view(scaled.shape[1], -1).addmm_(scaled.t(), _in_lines(inputs, self._gradients))
        if self._biases:
            total = scaled.sum(0)
            for bias in self._biases:
                bias.add_(total)


def _in_lines(rows: Tensor, like: Tensor) -> Tensor:
    """Return all rows of all examples below one another, in the order that needs no copy."""
    if like.stride(0) < like.stride(1):
        rows = rows.transpose(0, 1)
    return rows.reshape(-1, rows.shape[2])


class MaterialisedGradients:
    """Gradients that are small enough to write out, an example in each row.

    Args:
        pairs: Gradients [examples, size], and where their sum goes.
    """

    def __init__(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
        self._pairs = pairs

    def squares(self) -> Tensor:
        """Return the squared norms."""
        each = [squared_norms(one) for one, _ in self._pairs]
        return torch.stack(each).sum(0)

    def add(self, factors: Tensor) -> None:
        """Add the rows, each times its factor."""
        for gradients, sums in self._pairs:
            sums.view(-1).addmv_(gradients.t(), factors)


class NonFiniteExamples(NoisefloorError):
    """Some examples have a loss or a gradient that is no finite number; they count as zero.

    That there are any is a fact about single examples, which no guarantee covers: a training
    catches this, leaves them out and goes on, and nothing shows it.

    Args:
        broken: A flag for each example of those that were looked at; at least one is set.
    """

    def __init__(self, broken: Tensor) -> None:
        super().__init__("Some examples have a loss or a gradient that is not finite.")
        self.broken = broken


class ClippedBatch(NamedTuple):
    """The clipped gradients of a batch, before they are added to the sums.

    Attributes:
        contributions: Of each layer, with the place of its part.
        squares: The squared norm of each example's gradient, scaled and unclipped, for each group
            of clipping.
        factors: What the scaled gradient is multiplied by, for each group.
        parts: The group and the scale of each part.
    """

    contributions: list[tuple[Contribution, int]]
    squares: list[Tensor]
    factors: list[Tensor]
    parts: Sequence[tuple[int, float]]

    def add(self) -> None:
        """Add them to the sums; sums are of scaled gradients."""
        with torch.no_grad():
            own = [
                self.factors[group] if scale == 1 else self.factors[group] / scale
                for group, scale in self.parts
            ]
            for contribution, part in self.contributions:
                contribution.add(own[part])


class LongestPart:
    """The largest norm of one example's clipped gradient in a step; for observers.

    Attributes:
        norm: Of the clipped gradients, by their norms before and their factors.
        place: Whose gradient was the longest before it was clipped.
    """

    __slots__ = ("_square", "norm", "place")

    def __init__(self) -> None:
        self._square, self.norm = -1.0, 0.0
        self.place: int | None = None

    def note(self, clipped: ClippedBatch, places: Tensor) -> None:
        """Look at the clipped gradients of some examples."""
        if not len(places):
            return
        squares, factors = (
            torch.stack(one).double() for one in (clipped.squares, clipped.factors)
        )
        self.norm = max(self.norm, float((squares * factors.square()).sum(0).max().sqrt()))
        largest, index = squares.sum(0).max(0)
        if float(largest) > self._square:
            self._square, self.place = float(largest), int(places[int(index)])


_MARGIN = 1 - 2.0**-18
"""Bounds are kept to with room for the rounding of norms, factors and products."""


def squares_by_group(
    contributions: Sequence[tuple[Contribution, int]],
    parts: Sequence[tuple[int, float]],
    groups: int,
    like: Tensor,
) -> list[Tensor]:
    """Return the squared norms of each example's scaled gradient, for each group of clipping.

    Args:
        contributions: Each with the place of its part.
        parts: The group and the scale of each part.
        groups: How many there are.
        like: A zero for each example; groups without contributions get it.

    Raises:
        UnsupportedModule: A contribution is not of as many examples.
    """
    totals: list[Tensor | None] = [None] * groups
    for contribution, part in contributions:
        group, scale = parts[part]
        one, so_far = contribution.squares(), totals[group]
        if len(one) != len(like):
            raise UnsupportedModule(
                "A layer is given something whose first axis is not that of the examples: "
                "keep [examples, positions, values], or train with per_example=True."
            )
        one = one if scale == 1 else one.mul_(scale**-2)
        totals[group] = one if so_far is None else so_far.add_(one)
    return [like if total is None else total for total in totals]


def clip_factors(clipping: Clipping, squares: Sequence[Tensor]) -> list[Tensor]:
    """Return what each example's gradient is multiplied by, for each group.

    Args:
        clipping: How.
        squares: The squared norms of each example's gradient, for each group.

    Raises:
        BrokenExamples: A norm is NaN or infinite. A factor of zero would not do: NaN remains.
    """
    found = []
    for bound, square in zip(clipping.bounds, squares, strict=True):
        norms = square.sqrt()
        if not math.isfinite(norms.sum().item()):
            raise NonFiniteExamples(~torch.isfinite(norms))
        if isinstance(clipping, Automatic):
            found.append(torch.reciprocal(norms.add_(clipping.stability)).mul_(bound * _MARGIN))
        else:
            least = bound * _MARGIN
            found.append(torch.reciprocal(norms.clamp_(min=least)).mul_(least))
    return found
