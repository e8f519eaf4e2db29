"""Sequences of unlike length, padded to the longest: batches of about the same length, cut to it.

An example is cut to its own length, rounded up to whole steps, and to nothing that others have: so
its gradient is its own, whether the module minds padding or not. In a batch cut to the longest of
its examples, one long text would change what the others add wherever padding is not masked out
perfectly, and no bound on its own gradient would cover that.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.publication.private_sgd.module_checks import ExampleBatch


@dataclass(frozen=True, slots=True)
class PaddedInputs:
    """Which inputs are padded sequences, and how long each is.

    Positions beyond an example's length, in whole steps, are left out. So padding comes at the
    end, and the module has to mask what is left of it, or it learns from padding.

    Attributes:
        lengths: Positions of each example that are not padding, whole numbers.
        inputs: The places of inputs that are sequences, ``[examples, positions, ...]``.
        targets: Whether targets are as well.
        step: Lengths are rounded up to multiples of it: larger ones make fewer, fuller batches.
    """

    lengths: Tensor
    inputs: tuple[int, ...] = (0,)
    targets: bool = False
    step: int = 8

    def __post_init__(self) -> None:
        check_count(self.step, "step")
        if self.lengths.dim() != 1 or self.lengths.is_floating_point():
            raise BadParameter("lengths", tuple(self.lengths.shape), "a whole number for each")

    def check(self, examples: ExampleBatch) -> None:
        """Refuse examples whose sequences these are not; looks at shapes alone.

        Raises:
            OutOfDomain: Lengths or inputs are not as many, or one has no positions.
        """
        if len(self.lengths) != len(examples.targets):
            raise OutOfDomain("Expected a length for each example.")
        if not all(0 <= place < len(examples.inputs) for place in self.inputs):
            raise OutOfDomain("Expected places of inputs that there are.")
        if any(one.dim() < 2 for one in self._sequences(examples)):
            raise OutOfDomain("Expected padded inputs as [examples, positions, ...].")

    def micro_batches(self, places: Tensor | None, most: int) -> Iterator[Tensor]:
        """Cut a sample into parts of the same cut length that fit into memory.

        Args:
            places: Of the examples that take part; None for all of them.
            most: Examples in a part.
        """
        taken = torch.arange(len(self.lengths)) if places is None else places
        cuts = self._cuts(taken)
        for cut in torch.unique(cuts):
            yield from torch.split(taken[cuts == cut], most)

    def cut(self, batch: ExampleBatch, places: Tensor | slice) -> ExampleBatch:
        """Return examples of the same cut length, cut to it."""
        return self._cut_to(batch, int(self._cuts(places)[0]) * self.step)

    def cut_most(self, batch: ExampleBatch) -> ExampleBatch:
        """Return examples cut to the shortest length there may be."""
        return self._cut_to(batch, self.step)

    def _cuts(self, places: Tensor | slice) -> Tensor:
        """Return lengths in whole steps; an empty sequence keeps one."""
        lengths = self.lengths[places]
        return lengths.add(self.step - 1).div(self.step, rounding_mode="floor").clamp_(min=1)

    def _cut_to(self, batch: ExampleBatch, length: int) -> ExampleBatch:
        inputs = [
            one[:, :length] if place in self.inputs else one
            for place, one in enumerate(batch.inputs)
        ]
        targets = batch.targets[:, :length] if self.targets else batch.targets
        return ExampleBatch(tuple(inputs), targets)

    def _sequences(self, examples: ExampleBatch) -> list[Tensor]:
        found = [examples.inputs[place] for place in self.inputs]
        return [*found, examples.targets] if self.targets else found
