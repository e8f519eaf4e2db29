"""Examples of no one, with the shapes and types of the real ones: what checks are made on.

Whether a check passes would otherwise depend on private values. Nothing is drawn: the numbers are
the fractional parts of a fixed formula, so that no source and no generator of torch is touched.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from noisefloor.errors import OutOfDomain

ROWS = 4
"""Made-up examples: enough to tell pairs, first and last ones, and all of them apart."""


class ExampleBatch(NamedTuple):
    """Inputs and targets, with an example in each row."""

    inputs: tuple[Tensor, ...]
    targets: Tensor

    def taken(self, places: Tensor | slice) -> "ExampleBatch":
        """Return some of the rows, in the order of the places; a row may be taken often."""
        return ExampleBatch(tuple(one[places] for one in self.inputs), self.targets[places])


def as_batch(inputs: object, targets: object) -> ExampleBatch:
    """Return examples as tensors.

    Raises:
        OutOfDomain: There is not one row for each example in all of them.
    """
    several = inputs if isinstance(inputs, tuple) else (inputs,)
    tensors = tuple(torch.as_tensor(one) for one in several)
    wanted = torch.as_tensor(targets)
    if any(one.dim() == 0 or len(one) != len(wanted) for one in (*tensors, wanted)):
        raise OutOfDomain("Expected inputs and targets with an example in each row, as many.")
    return ExampleBatch(tensors, wanted)


def made_up(like: ExampleBatch) -> Iterator[ExampleBatch]:
    """Return examples of several kinds; a module need not take all of them.

    Numbers of either sign or positive ones only (as for a logarithm); whole numbers 0 and 1, or
    only 1 (as for lengths), or only 0. Rows that are all the same would check nothing.
    """
    for lowest, (least, most) in ((-1.0, (0, 1)), (0.0, (0, 1)), (0.0, (1, 1)), (0.0, (0, 0))):
        tensors = [
            _filled(one, number, lowest, (least, most))
            for number, one in enumerate((*like.inputs, like.targets))
        ]
        if any(bool((one[1:] != one[:-1]).any()) for one in tensors[:-1]):
            yield ExampleBatch(tuple(tensors[:-1]), tensors[-1])


def scattered(count: int, salt: int = 0) -> Tensor:
    """Return numbers in [0, 1) without visible order, always the same."""
    places = torch.arange(1, count + 1, dtype=torch.float64)
    return torch.frac(torch.frac(torch.sin(places * 12.9898 + salt) * 43758.5453) + 1)


def _filled(like: Tensor, salt: int, lowest: float, whole: tuple[int, int]) -> Tensor:
    shape = (ROWS, *like.shape[1:])
    drawn = scattered(torch.Size(shape).numel(), salt).reshape(shape)
    if like.is_floating_point() or like.is_complex():
        return (lowest + (1 - lowest) * drawn).to(like.dtype)
    least, most = whole
    return torch.where(drawn < 0.5, least, most).to(like.dtype)
