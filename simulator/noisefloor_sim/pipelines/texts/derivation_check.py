"""Whether what was published follows from the noisy tables, and these from what was collected.

Residuals speak of the tables that the observer saw. Here the rest of a release is tied to them:

* what a table is without noise is what the collected texts count;
* cells and scales of each table are those that follow from the tables before it;
* the file is what the plan writes from the tables: it is written again, by the draws of the same
  streams and without any text that was collected, and every byte has to be the same.

A publisher at a service draws its own noise and shows no tables: then nothing of this is checked.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from noisefloor.errors import NoisefloorError
from noisefloor.publication import NoisedVector
from noisefloor.publication.methods import TextNgramsPlan
from noisefloor.publication.text import Documents
from noisefloor.publication.text.ngrams import (
    NoisyCounting,
    ReleasedTables,
    count_cells,
    ngram_tables,
)
from noisefloor.randomness import SeededSource, new_run

_ROUNDING = 1e-9


@dataclass(slots=True)
class DerivationCheck:
    """What was found about one release.

    Attributes:
        misfits: Where a table has other cells, scales or counts than follow, in words.
        faults: Where the file has other bytes than follow, in words.
    """

    misfits: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def check_derivation(
    plan: TextNgramsPlan,
    seen: Mapping[str, NoisedVector],
    content: bytes,
    collected: Documents | None,
    source: SeededSource,
) -> DerivationCheck:
    """Make a release again from the tables that were seen.

    Args:
        plan: By which it was made; what it writes is proved to follow from its tables.
        seen: All of its tables, before and after their noise.
        content: The file that was published.
        collected: The texts that it was made of; only what was counted is compared with them.
        source: Of the release.
    """
    found = DerivationCheck()
    tables = {name: np.rint(one.noised).astype(np.int64) for name, one in seen.items()}
    found.misfits += check_cells(plan, seen, collected)
    with new_run():  # the streams of the writer were opened by the release
        again = _written_again(plan, tables, source.child("texts"))
    if again != content:
        found.faults.append(_difference(again, content))
    return found


def check_cells(
    plan: TextNgramsPlan, seen: Mapping[str, NoisedVector], collected: Documents | None = None
) -> Iterator[str]:
    """Say where the cells, scales or counts of tables are not those that follow.

    Args:
        plan: By which they were released.
        seen: The tables, before and after their noise.
        collected: What they count; counts are not compared if left out.
    """
    tables = {name: np.rint(one.noised).astype(np.int64) for name, one in seen.items()}
    for cells in ngram_tables(plan.counting, plan.public, tables):
        vector, counting = seen[cells.name], cells.counting
        cause = _wrong_scales(vector, counting)
        if not cause and collected is not None:
            cause = _wrong_counts(vector, counting.sums(count_cells(collected, cells)))
        if cause:
            yield f"{cells.name}: {cause}"
            return  # the cells of all later tables follow from this one


def _wrong_scales(vector: NoisedVector, counting: NoisyCounting) -> str:
    if vector.unit is None or len(vector.noised) != counting.size:
        return (
            f"a table of {len(vector.noised):,} cells was released, and {counting.size:,} follow "
            "from the tables before it"
        )
    wrong = np.abs(vector.unit / counting.units - 1) > _ROUNDING
    if not wrong.any():
        return ""
    return (
        f"the scales of {np.count_nonzero(wrong):,} of {counting.size:,} cells are not those that "
        "follow from the tables before it"
    )


def _wrong_counts(vector: NoisedVector, expected: np.ndarray) -> str:
    if vector.clean is None:
        return "it was not shown without noise"
    wrong = np.count_nonzero(vector.clean != expected)
    if not wrong:
        return ""
    return f"{wrong:,} of {len(expected):,} cells do not count the texts that were collected"


def _written_again(
    plan: TextNgramsPlan, tables: ReleasedTables, source: SeededSource
) -> bytes | None:
    """Return the file that follows; None if the tables cannot be read, or nothing written."""
    try:
        return plan.file_of(plan.written_from(tables, source))
    except NoisefloorError:
        return None


def _difference(again: bytes | None, content: bytes) -> str:
    """Say how far two files differ; never what is in them."""
    said = "the published file is not what follows from its noisy tables"
    if again is None:
        return f"{said}: from these tables nothing can be written"
    expected, lines = again.split(b"\n"), content.split(b"\n")
    differ = sum(one != two for one, two in zip(expected, lines, strict=False))
    differ += abs(len(expected) - len(lines))
    return (
        f"{said}: {len(lines) - 1:,} texts, of which {differ:,} differ from the "
        f"{len(expected) - 1:,} that follow"
    )
