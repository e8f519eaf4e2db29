"""Whether a text is counted no more than its tables allow, by texts that would pass the bound.

Residuals speak of noise alone: a text that counts too much leaves them as they are. So corpora of
copies of one text are counted by the code of the release itself: a word that is repeated to the
end, or as many words as there is room for. What is counted before the noise, which only a
simulation gets, is what one text adds, times the copies. Measured in the scales of the cells, its
norm is at most what is declared to be hidden; and some text has to come close to that, or the
bound was never tried.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from noisefloor.publication import NoisedVector
from noisefloor.publication.methods import TextNgramsPlan
from noisefloor.publication.text import Documents
from noisefloor.publication.text.ngrams import count_ngrams
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.api import Metric

FILLED = 0.9
"""Of the bound: a multiplier is rounded down to a sixteenth."""

_MOST_COPIES = 2_000
_RANKS = (0, 5, 20, 60)
"""Of words that are repeated, by how frequent they are in public."""

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class CountingCheck:
    """The norms of what texts add to each table, over the largest that is declared.

    Attributes:
        norms: By table, of each text.
    """

    norms: dict[str, list[float]]

    @property
    def longest(self) -> dict[str, float]:
        """The largest norm in each table that was seen."""
        return {name: max(some) for name, some in self.norms.items() if some}

    def causes(self) -> Iterator[str]:
        """Say where a text counts more than is declared."""
        for name, longest in self.longest.items():
            if longest > 1 + _ROUNDING:
                yield f"{name}: a text adds {longest:.4g} times the largest norm that is declared"

    def metrics(self) -> list[Metric]:
        """Return how far texts go, and whether they reach every bound that was seen, if any."""
        if not self.longest:
            return []
        is_filled = all(self.longest.get(name, 0.0) >= FILLED for name in self.norms)
        return [
            *(Metric(f"counting.longest.{name}", one) for name, one in self.longest.items()),
            Metric("counting.filled", float(is_filled)),
        ]


def check_counting(plan: TextNgramsPlan, source: SeededSource) -> CountingCheck:
    """Count copies of some texts by a plan.

    Args:
        plan: Of a release.
        source: Of the noise, which is not looked at.
    """
    norms: dict[str, list[float]] = {name: [] for name in plan.counting.multipliers}
    copies = max(1, min(plan.spec.size or _MOST_COPIES, _MOST_COPIES))
    for number, text in enumerate(_texts(plan)):

        def watch(vector: NoisedVector) -> None:
            if vector.clean is None or vector.unit is None:
                raise TypeError(f"Nothing without noise is shown of {vector.part}.")
            norm = float(np.linalg.norm(vector.clean / vector.unit)) / copies
            norms[vector.part].append(norm)

        offsets = np.arange(copies + 1, dtype=np.int64) * len(text)
        labels = np.zeros(copies, dtype=np.int64)
        corpus = Documents(np.tile(text, copies), offsets, labels)
        count_ngrams(corpus, plan.counting, plan.public, source.child(number), watch)
    return CountingCheck(norms)


def _texts(plan: TextNgramsPlan) -> Iterator[np.ndarray]:
    """Yield texts as long as any: one word again and again, and as many words as there is room."""
    longest = plan.counting.longest
    by_rank = np.argsort(-plan.public.frequencies, kind="stable").astype(np.int32)
    for rank in _RANKS:
        yield np.full(longest, by_rank[min(rank, len(by_rank) - 1)], dtype=np.int32)
    yield np.resize(by_rank[: max(longest, 1)], longest)
