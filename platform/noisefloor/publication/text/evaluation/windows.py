"""Runs of consecutive pieces, numbered so that equal runs have equal numbers: exactly, unhashed.

A run of 2 m pieces is a pair of runs of m, and of any length in between two that overlap. So
numbers of long runs cost a sort for each doubling.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.publication.text.documents import Documents

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """All runs of some length in some documents.

    Attributes:
        numbers: Of each run; equal runs have equal numbers, across all that were numbered at once.
        owners: The document of each.
    """

    numbers: Numbers
    owners: Numbers


def number_windows(parts: Sequence[Documents], length: int) -> tuple[list[Windows], int]:
    """Number all runs of a length in some corpora, and return how many different ones there are.

    Args:
        parts: Corpora that are compared.
        length: Of a run, in pieces. Documents that are shorter have none.
    """
    check_count(length, "length")
    pieces = np.concatenate([part.pieces.astype(np.int64) for part in parts])
    numbers, whole = _renumbered(pieces), 1
    while whole < length:
        step = min(whole, length - whole)
        numbers, whole = _paired(numbers, step), whole + step
    found, start = [], 0
    for part in parts:
        ends = np.repeat(part.offsets[1:], part.lengths)
        begins = np.flatnonzero(np.arange(len(part.pieces)) + length <= ends)
        found.append(Windows(numbers[start + begins], part.owners[begins]))
        start += len(part.pieces)
    return found, int(numbers.max(initial=-1)) + 1


def number_prefixes(pieces: Numbers, ends: Numbers, reach: int) -> Numbers:
    """Return the place of each position's next pieces in the order of all of them.

    Args:
        pieces: Of all documents, none below 0.
        ends: Where the document of each piece ends; what follows it counts as below any piece.
        reach: The least number of pieces by which positions are distinguished.
    """
    places, whole = np.arange(len(pieces)), 1
    numbers = _renumbered(pieces)
    while whole < reach:
        later = places + whole
        is_inside = later < ends
        follows = np.zeros_like(numbers)
        follows[is_inside] = numbers[later[is_inside]] + 1
        numbers = _renumbered(numbers * (len(pieces) + 1) + follows)
        whole *= 2
    return numbers


def _paired(numbers: Numbers, step: int) -> Numbers:
    """Join each run with the one that starts ``step`` later; past the end there is nothing."""
    later = np.zeros_like(numbers)
    later[: len(numbers) - step] = numbers[step:]
    return _renumbered(numbers * (len(numbers) + 1) + later)


def _renumbered(keys: Numbers) -> Numbers:
    """Return the place of each key among the different ones, in their order."""
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)
