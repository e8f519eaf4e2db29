"""Texts of given first pieces and lengths, continued by chains of noisy pairs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.text import Documents
from noisefloor.publication.text.generators import Prompts
from noisefloor.publication.text.ngrams import PairModel
from noisefloor.randomness import Source

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class PromptedChains:
    """Continues prompts by the chain of their label, with pieces of a vocabulary alone.

    Attributes:
        model: The chains.
        is_known: Which pieces the vocabulary has.
    """

    model: PairModel
    is_known: Flags

    def write(self, prompts: Prompts, source: Source) -> Documents:
        """Return a text for each prompt, in their order."""
        longest = int(prompts.lengths.max(initial=1))
        table = np.empty((len(prompts.seeds), longest), dtype=np.int32)
        for label in range(len(self.model.chains)):
            rows = np.flatnonzero(prompts.labels == label)
            if rows.size:
                stream = source.child("pieces", label)
                table[rows] = self._continued(label, prompts.seeds[rows], longest, stream)
        is_in = np.arange(longest) < prompts.lengths[:, None]
        offsets = np.append(0, np.cumsum(prompts.lengths))
        return Documents(table[is_in], offsets, prompts.labels)

    def _continued(
        self, label: int, seeds: NDArray[np.int32], longest: int, source: Source
    ) -> NDArray[np.int32]:
        model, chain = self.model, self.model.chains[label]
        starts = np.searchsorted(model.before, np.arange(model.size + 2))
        running = np.append(0.0, np.cumsum(chain.pairs * self.is_known[model.pieces]))
        other = np.cumsum(chain.others * self.is_known)
        table = np.empty((len(seeds), longest), dtype=np.int32)
        table[:, 0], last = seeds, seeds.astype(np.int64)
        for place in range(1, longest):
            step = source.child(place)
            own = running[starts[last + 1]] - running[starts[last]]
            drawn = step.stage("pairs").uniforms(len(last)) * (own + chain.rests[last])
            at = np.searchsorted(running, running[starts[last]] + np.minimum(drawn, own), "right")
            low, high = starts[last], np.maximum(starts[last + 1] - 1, starts[last])
            chosen = model.pieces[np.clip(np.clip(at - 1, low, high), 0, len(model.pieces) - 1)]
            is_other = (drawn >= own) | (own <= 0)
            uniform = step.stage("others").uniforms(int(is_other.sum())) * other[-1]
            picked = np.searchsorted(other, uniform, "right")
            chosen[is_other] = np.minimum(picked, model.size - 1)
            table[:, place] = last = chosen
        return table
