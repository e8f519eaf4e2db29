"""Places kept by noisy counts: how many documents mention a place, released with a guarantee.

Every place of the public graph has a count, mentioned or not, so no place shows up by being
there. A document is counted at its first distinct places alone, regions above them included, up
to a public number of places; that number is what one document can change, by one each. Once the
counts are released, each text is rewritten by itself and the released counts: post-processing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import ReleaseLoss
from noisefloor.checks import check_count
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import GaussianTable
from noisefloor.privacy import Guarantee
from noisefloor.publication.noised_vectors import NoisedVector, ResidualObserver
from noisefloor.publication.synthesis import GaussianEntries, NoiseBudget, table_change
from noisefloor.publication.text.entities import EntityKind, Mentions
from noisefloor.publication.text.generalisation.climb import MOST_K
from noisefloor.publication.text.generalisation.forms import FixedLevels
from noisefloor.publication.text.generalisation.hierarchy import ROOT, Hierarchy, Nodes
from noisefloor.publication.text.generalisation.ladders import Ladders, PlacedMentions
from noisefloor.publication.text.generalisation.place_graph import PlaceGraph
from noisefloor.publication.text.generalisation.rewriting import Replacements
from noisefloor.randomness import Source

Counts = NDArray[np.int64]

PART = "places"
"""The name of the counts among the vectors of a release."""

MOST_PLACES = 1 << 10


@dataclass(frozen=True, slots=True, eq=False)
class NoisyPlaces:
    """What is kept by released counts; other kinds are generalised to fixed levels.

    Attributes:
        counts: Of each node of the graph, with noise; nothing is hidden of them.
        threshold: A place with at least this count is kept.
        most_places: Distinct nodes that one document was counted at.
        proved: Of the counts.
        loss: Of the counts.
        others: The levels of other kinds.
    """

    counts: Counts
    threshold: int
    most_places: int
    proved: Guarantee
    loss: ReleaseLoss
    others: FixedLevels

    @property
    def facts(self) -> dict[str, Any]:
        """What a card may say of the form; the counts are paid for, see ``paid_counts``."""
        figures = {"threshold": self.threshold, "most_places": self.most_places}
        return {"form": "noisy-places", **figures, "others": self.others.facts["levels"]}

    def nodes(self, kind: EntityKind, placed: PlacedMentions) -> Nodes:
        """Return the first of each place's chain that is kept; of others, the fixed level."""
        if kind is not EntityKind.LOCATION:
            return self.others.nodes(kind, placed)
        if len(self.counts) != placed.hierarchy.size:
            raise BadParameter("counts", "<counts>", "of the same graph of places")
        return placed.hierarchy.first_kept(placed.nodes, self.counts >= self.threshold)

    def label(self, kind: EntityKind, hierarchy: Hierarchy, nodes: Nodes) -> Replacements:
        """Return how nodes are written."""
        return hierarchy.labels[nodes]

    def paid_counts(self, graph: PlaceGraph, level: int) -> Mapping[str, int]:
        """Return the released counts of the kept places of a level: a card may have them."""
        kept = np.flatnonzero((self.counts >= self.threshold) & (graph.hierarchy.levels == level))
        order = kept[np.lexsort((kept, -self.counts[kept]))]
        return {str(graph.hierarchy.labels[node]): int(self.counts[node]) for node in order}


@dataclass(frozen=True, slots=True)
class NoisyPlacesPlan:
    """Discrete Gaussian noise on the number of documents of every place.

    Attributes:
        graph: The public places.
        k: Documents that should share a place that is kept.
        most_places: Distinct nodes that one document is counted at.
        budget: The noise, and what it costs.
        others: The levels of other kinds.
    """

    graph: PlaceGraph
    k: int
    most_places: int
    budget: NoiseBudget
    others: FixedLevels = field(default_factory=FixedLevels)

    @classmethod
    def of(
        cls,
        cost: Guarantee,
        graph: PlaceGraph,
        *,
        k: int = 5,
        most_places: int = 10,
        others: FixedLevels | None = None,
    ) -> "NoisyPlacesPlan":
        """Plan the counts with the least noise that keeps to a cost with a delta."""
        check_count(k, "k", most=MOST_K)
        check_count(most_places, "most_places", most=MOST_PLACES)
        if not cost.delta:
            raise BadParameter("delta", cost.delta, "> 0: the noise is Gaussian")
        change = table_change(most_places, cost.neighbours)
        budget = NoiseBudget.of(cost, {PART: change}, {PART: 1.0})
        return cls(graph, k, most_places, budget, others or FixedLevels())

    @property
    def proved(self) -> Guarantee:
        """Of all counts together, from the weights that are drawn from."""
        return self.budget.guarantee

    @property
    def loss(self) -> ReleaseLoss:
        """Of all counts together."""
        return self.budget.loss

    @property
    def table(self) -> GaussianTable:
        """The noise of one count."""
        noise = self.budget.noises[PART]
        assert isinstance(noise, GaussianEntries)  # noqa: S101  NoiseBudget draws it with a delta
        return noise.table

    @property
    def threshold(self) -> int:
        """The least count of at least k that noise alone reaches at one place at most.

        "At one place" is the mean over draws; what a place that nobody mentions is kept for is
        nothing, so this protects use, not privacy.
        """
        tails = np.cumsum(self.table.chances[::-1])[::-1]
        above = np.flatnonzero(tails * self.graph.hierarchy.size <= 1)
        alone = int(above[0]) - self.table.reach if len(above) else self.table.reach + 1
        return max(self.k, alone)

    def count(self, mentions: Mentions, ladders: Ladders) -> Counts:
        """Return how many documents are counted at each node; private, before the noise.

        Args:
            mentions: Of the private texts; overlaps are merged first, as when texts are rewritten.
            ladders: Over the same graph.
        """
        placed = ladders.place(mentions.disjoint())[EntityKind.LOCATION]
        return capped_counts(placed, self.most_places)

    def release(
        self,
        mentions: Mentions,
        ladders: Ladders,
        source: Source,
        residuals: ResidualObserver | None = None,
    ) -> NoisyPlaces:
        """Count, add noise, and return what is kept; each call is a release of its own."""
        if ladders.places is not self.graph:
            raise BadParameter("ladders", "<ladders>", "over the graph of the plan")
        clean = self.count(mentions, ladders)
        noised = self.budget.noises[PART].add(clean, source.child(PART))
        if residuals is not None:
            floats = noised.astype(np.float64), clean.astype(np.float64)
            residuals(NoisedVector(PART, *floats, longest=math.sqrt(self.most_places)))
        return NoisyPlaces(
            noised, self.threshold, self.most_places, self.proved, self.loss, self.others
        )


def capped_counts(placed: PlacedMentions, most: int) -> Counts:
    """Return how many documents have each node among their first distinct ones.

    A document's nodes are taken mention by mention as its rows are listed, and of each from the
    place itself upwards; the root is not counted. The order of documents changes nothing.

    Args:
        placed: The mentions of one kind.
        most: Nodes that one document counts at.
    """
    chains = placed.hierarchy.chains(placed.nodes)
    nodes = chains.reshape(-1)
    documents = np.repeat(placed.documents, chains.shape[1])
    is_counted = nodes != ROOT
    nodes, documents = nodes[is_counted], documents[is_counted]
    pairs = documents * placed.hierarchy.size + nodes
    _, firsts = np.unique(pairs, return_index=True)
    # Document by document: what one changes is bounded by its ranks, in whatever order they are.
    firsts = firsts[np.lexsort((firsts, documents[firsts]))]
    owners = documents[firsts]
    rank = np.arange(len(firsts)) - np.searchsorted(owners, owners)
    return np.bincount(nodes[firsts[rank < most]], minlength=placed.hierarchy.size)
