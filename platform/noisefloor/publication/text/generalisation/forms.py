"""How far mentions are generalised: the paper's climb, and forms that look at no other document.

The paper's form chooses by counting the very documents that it rewrites. The corrected forms
choose a level in public (``FixedLevels``), keep what public texts have often enough
(``PublicThresholds``), or leave nothing but the kind (``Placeholders``): each text is rewritten
by itself, so what follows has the guarantee that it has on texts as they were, at no cost here.
``noisy_counts`` has the form that is paid for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from noisefloor.accounting import ReleaseLoss, group
from noisefloor.checks import check_count
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.text.entities import EntityKind, Mentions
from noisefloor.publication.text.generalisation import climb
from noisefloor.publication.text.generalisation.hierarchy import Flags, Hierarchy, Nodes
from noisefloor.publication.text.generalisation.ladders import Ladders, PlacedMentions
from noisefloor.publication.text.generalisation.rewriting import Replacements

_NO_LEVELS: Mapping[EntityKind, int] = MappingProxyType({})

_REASON = (
    "whether a mention is generalised depends on how many other {owner}s have it: one {owner} "
    "less can rewrite {most:,} others for each of its mentions, so what follows is private for "
    "groups of {group} alone, and the rewritten texts themselves have no guarantee"
)

_OF_DOCUMENTS = (
    Neighbours.RECORD_ADD_REMOVE,
    Neighbours.RECORD_SUBSTITUTE,
    Neighbours.DOCUMENT,
)


def free(neighbours: Neighbours) -> Guarantee:
    """Return the cost of a choice that no private document has a part in."""
    return Guarantee(0.0, neighbours, model=TrustModel.CENTRAL)


@dataclass(frozen=True, slots=True, eq=False)
class KAnonymous:
    """The paper's form: values climb until at least k documents share each.

    Attributes:
        k: Documents that share a value.
        most_parents: Levels between a mention and the root, over all kinds that are climbed; 4
            with places as GeoNames has them, 5 where organisations climb through places.
        authors: Of each document. If given, authors are counted: one who writes k documents
            makes nothing common. One document less can then rewrite any number of others, since
            k - 1 authors may have any number; what is left is a guarantee for groups of authors.
    """

    k: int = 5
    most_parents: int = 4
    authors: Nodes | None = None

    def __post_init__(self) -> None:
        climb.most_rewritten(self.k, self.most_parents)
        if self.authors is not None and (self.authors < 0).any():
            raise BadParameter("authors", "<authors>", "numbers from 0, one for each document")

    @property
    def neighbours(self) -> tuple[Neighbours, ...]:
        """The relations that a group of what is counted is stated for."""
        return _OF_DOCUMENTS if self.authors is None else (Neighbours.USER,)

    @property
    def proved(self) -> Guarantee:
        """None; the reason has the figures."""
        most = climb.most_rewritten(self.k, self.most_parents)
        owner = "document" if self.authors is None else "author"
        group = f"1 + {2 * most:,} {owner}s a mention"
        reason = _REASON.format(most=most, owner=owner, group=group)
        return Guarantee.none(reason, self.neighbours[0], TrustModel.CENTRAL)

    @property
    def facts(self) -> dict[str, Any]:
        """What a card may say of the form."""
        return {"form": "k-anonymous", "k": self.k, "counts_authors": self.authors is not None}

    def group_size(self, entities: int) -> int:
        """Return by how many steps neighbours differ after the climb, with E mentions each."""
        return climb.group_size(entities, self.k, self.most_parents)

    def what_follows(self, guarantee: Guarantee, entities: int) -> Guarantee:
        """Return what is left of a guarantee for what is made of rewritten documents.

        Args:
            guarantee: Of whatever reads the rewritten documents: for documents, or for users if
                authors are counted. Others are refused.
            entities: Distinct mentions that a document is cut to beforehand, for all alike; that
                an author is cut to, in all documents together, if authors are counted.
        """
        if guarantee.neighbours not in self.neighbours:
            whose = "documents" if self.authors is None else "users: authors are counted"
            raise BadParameter("neighbours", guarantee.neighbours.value, f"a relation of {whose}")
        return group(guarantee, self.group_size(entities), guarantee.neighbours)

    def nodes(self, kind: EntityKind, placed: PlacedMentions) -> Nodes:
        """Return each mention's value once no value is in fewer than k documents."""
        counted = placed.documents if self.authors is None else self.authors[placed.documents]
        return climb.climb_to_k(placed.hierarchy, placed.nodes, counted, self.k)

    def label(self, kind: EntityKind, hierarchy: Hierarchy, nodes: Nodes) -> Replacements:
        """Return how nodes are written."""
        return hierarchy.labels[nodes]


@dataclass(frozen=True, slots=True)
class FixedLevels:
    """Every mention of a kind is generalised to one level, chosen in public.

    Attributes:
        levels: By kind, counted from 0; kinds that are left out become ``*``.
        neighbours: The relation that the free guarantee is stated for.
    """

    levels: Mapping[EntityKind, int] = field(default_factory=lambda: _NO_LEVELS)
    neighbours: Neighbours = Neighbours.RECORD_ADD_REMOVE

    def __post_init__(self) -> None:
        for kind, level in self.levels.items():
            check_count(level, f"level of {EntityKind(kind).name}", least=0)
        object.__setattr__(self, "levels", MappingProxyType(dict(self.levels)))

    @property
    def proved(self) -> Guarantee:
        """Nothing is lost."""
        return free(self.neighbours)

    @property
    def loss(self) -> ReleaseLoss:
        """Nothing is lost."""
        return ReleaseLoss()

    @property
    def facts(self) -> dict[str, Any]:
        """What a card may say of the form."""
        named = {kind.name: level for kind, level in sorted(self.levels.items())}
        return {"form": "fixed-levels", "levels": named}

    def nodes(self, kind: EntityKind, placed: PlacedMentions) -> Nodes:
        """Return the first of each mention's chain on the level of its kind or above."""
        height = placed.hierarchy.height
        return placed.hierarchy.at_level(placed.nodes, min(height, self.levels.get(kind, height)))

    def label(self, kind: EntityKind, hierarchy: Hierarchy, nodes: Nodes) -> Replacements:
        """Return how nodes are written."""
        return hierarchy.labels[nodes]


@dataclass(frozen=True, slots=True)
class Placeholders:
    """Every mention becomes the name of its kind: ``<PERSON>``, ``<LOCATION>``.

    Attributes:
        neighbours: The relation that the free guarantee is stated for.
    """

    neighbours: Neighbours = Neighbours.RECORD_ADD_REMOVE

    @property
    def proved(self) -> Guarantee:
        """Nothing is lost."""
        return free(self.neighbours)

    @property
    def loss(self) -> ReleaseLoss:
        """Nothing is lost."""
        return ReleaseLoss()

    @property
    def facts(self) -> dict[str, Any]:
        """What a card may say of the form."""
        return {"form": "placeholders"}

    def nodes(self, kind: EntityKind, placed: PlacedMentions) -> Nodes:
        """Return the root for each."""
        return np.zeros_like(placed.nodes)

    def label(self, kind: EntityKind, hierarchy: Hierarchy, nodes: Nodes) -> Replacements:
        """Return the placeholder of the kind for each."""
        return np.full(len(nodes), f"<{kind.name}>", dtype=np.object_)


@dataclass(frozen=True, slots=True, eq=False)
class PublicThresholds:
    """Values are kept that at least k documents of a public corpus mention, or what they hold.

    Attributes:
        kept: By kind: what is kept, by node where nodes are public, otherwise by key.
        k: Documents of the public corpus.
        neighbours: The relation that the free guarantee is stated for.
    """

    kept: Mapping[EntityKind, Flags | frozenset[str]]
    k: int
    neighbours: Neighbours = Neighbours.RECORD_ADD_REMOVE

    @classmethod
    def learn(
        cls,
        mentions: Mentions,
        ladders: Ladders,
        k: int,
        neighbours: Neighbours = Neighbours.RECORD_ADD_REMOVE,
    ) -> "PublicThresholds":
        """Read what is kept off a public corpus.

        Args:
            mentions: Of the public corpus. Nothing of it may come from the private one.
            ladders: Those that the private texts are generalised by.
            k: Documents of the public corpus that have to share a value, below it or itself.
            neighbours: The relation that the free guarantee is stated for.
        """
        check_count(k, "k", most=climb.MOST_K)
        kept: dict[EntityKind, Flags | frozenset[str]] = {}
        for kind, placed in ladders.place(mentions.disjoint()).items():
            found = is_frequent(placed, k)
            keys = placed.hierarchy.keys
            kept[kind] = found if keys is None else frozenset(keys[found].tolist())
        return cls(kept, k, neighbours)

    @property
    def proved(self) -> Guarantee:
        """Nothing is lost, as long as the corpus was public."""
        return free(self.neighbours)

    @property
    def loss(self) -> ReleaseLoss:
        """Nothing is lost."""
        return ReleaseLoss()

    @property
    def facts(self) -> dict[str, Any]:
        """What a card may say of the form."""
        return {"form": "public-thresholds", "k": self.k}

    def nodes(self, kind: EntityKind, placed: PlacedMentions) -> Nodes:
        """Return the first of each mention's chain that is kept."""
        kept = self.kept.get(kind, frozenset[str]())
        if isinstance(kept, frozenset):
            kept = _among(placed.hierarchy.keys, kept, placed.hierarchy.size)
        elif len(kept) != placed.hierarchy.size:
            raise BadParameter("kept", f"<{kind.name}>", "of the same graph of places")
        return placed.hierarchy.first_kept(placed.nodes, kept)

    def label(self, kind: EntityKind, hierarchy: Hierarchy, nodes: Nodes) -> Replacements:
        """Return how nodes are written."""
        return hierarchy.labels[nodes]


def is_frequent(placed: PlacedMentions, k: int) -> Flags:
    """Say which nodes at least k documents mention, themselves or what lies below them."""
    chains = placed.hierarchy.chains(placed.nodes)
    documents = np.repeat(placed.documents, chains.shape[1])
    counts = climb.document_counts(chains.reshape(-1), documents, placed.hierarchy.size)
    return np.asarray(counts >= k)


def _among(keys: Sequence[str] | Replacements | None, kept: frozenset[str], size: int) -> Flags:
    if keys is None:
        return np.zeros(size, dtype=np.bool_)
    return np.fromiter((key in kept for key in keys), dtype=np.bool_, count=size)
