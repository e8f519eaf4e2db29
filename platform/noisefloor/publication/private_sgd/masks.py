"""Masks: which units or entries of a parameter are trained.

Made of public or released weights, they are post-processing and cost no privacy. Made of gradients
or of losses they would not be covered: a training hands weights to a rule, and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from noisefloor.errors import BadParameter


@dataclass(frozen=True, slots=True)
class KeptUnits:
    """Units of a parameter that are trained: rows, columns, or both; None for all of them.

    A coordinate is kept if its row and its column are. Rows are along the first axis, columns
    along the second; of a carried matrix they are rows of the left and columns of the right
    factor.

    Attributes:
        rows: A flag for each row.
        columns: A flag for each column.
    """

    rows: Tensor | None = None
    columns: Tensor | None = None


@dataclass(frozen=True, slots=True)
class KeptEntries:
    """Single entries of a parameter that are trained.

    Attributes:
        entries: A flag for each, in the parameter's shape.
    """

    entries: Tensor


Kept: TypeAlias = KeptUnits | KeptEntries


def is_same_kept(one: Mapping[str, Kept], other: Mapping[str, Kept]) -> bool:
    """Whether two masks leave out the same, said in the same way."""
    return one.keys() == other.keys() and all(
        len(_flags(one[name])) == len(_flags(other[name]))
        and all(map(_is_same, _flags(one[name]), _flags(other[name])))
        for name in one
    )


def copied_kept(kept: Mapping[str, Kept]) -> dict[str, Kept]:
    """Return masks that stay as they are, whatever becomes of the flags that were given."""
    return {
        name: KeptEntries(one.entries.clone())
        if isinstance(one, KeptEntries)
        else KeptUnits(*(flags if flags is None else flags.clone() for flags in _flags(one)))
        for name, one in kept.items()
    }


def _flags(kept: Kept) -> tuple[Tensor | None, ...]:
    return (kept.rows, kept.columns) if isinstance(kept, KeptUnits) else (kept.entries,)


def _is_same(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return torch.equal(one, other)


def without_smallest_units(matrix: Tensor, share: float) -> KeptUnits:
    """Leave out a share of the rows and of the columns, by the sums of their entries' sizes.

    Args:
        matrix: Public, or released by the training; columns of a convolution are its channels.
        share: In [0, 1); rounded down to whole units.
    """
    _check_share(share)
    sizes = matrix.detach().abs()
    if sizes.dim() > 2:
        sizes = sizes.flatten(2).sum(2)
    return KeptUnits(_largest(sizes.sum(1), share), _largest(sizes.sum(0), share))


def without_smallest_entries(matrix: Tensor, share: float) -> KeptEntries:
    """Leave out a share of the entries, by their sizes; see ``without_smallest_units``."""
    _check_share(share)
    kept = _largest(matrix.detach().abs().reshape(-1), share)
    return KeptEntries(kept.view(matrix.shape))


def _largest(sizes: Tensor, share: float) -> Tensor:
    """Return a flag for each but the smallest; ties are broken by place, so that counts hold."""
    kept = torch.ones(len(sizes), dtype=torch.bool)
    kept[torch.argsort(sizes, stable=True)[: int(share * len(sizes))]] = False
    return kept


def _check_share(share: float) -> None:
    if not 0 <= share < 1:
        raise BadParameter("share", share, "in [0, 1)")
