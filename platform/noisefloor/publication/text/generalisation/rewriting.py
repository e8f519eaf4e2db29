"""Texts with their mentions replaced; the log of changes is for the holder of the texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee
from noisefloor.publication.text.entities import EntityKind, Mentions
from noisefloor.publication.text.generalisation.hierarchy import Hierarchy, Nodes
from noisefloor.publication.text.generalisation.ladders import Ladders, PlacedMentions

Replacements = NDArray[np.object_]


class GeneralisationForm(Protocol):
    """One way to choose how far mentions are generalised."""

    @property
    def proved(self) -> Guarantee:
        """Of the choice: what the text of one document reveals of the others."""

    @property
    def facts(self) -> dict[str, Any]:
        """What a card may say of the form: nothing that was counted without noise."""

    def nodes(self, kind: EntityKind, placed: PlacedMentions) -> Nodes:
        """Return what each mention of a kind is replaced by."""

    def label(self, kind: EntityKind, hierarchy: Hierarchy, nodes: Nodes) -> Replacements:
        """Return how nodes are written."""


@dataclass(frozen=True, slots=True, eq=False)
class GeneralisedTexts:
    """Rewritten texts, and what was done to them.

    Attributes:
        texts: As they may be handed on to what is published.
        mentions: What was replaced; private.
        replacements: What each mention was replaced by; private.
        level_counts: Of each kind, how many mentions ended on each level, ``*`` the last. These
            count private texts without noise: for the holder alone, never for a card.
    """

    texts: list[str]
    mentions: Mentions
    replacements: Replacements
    level_counts: Mapping[EntityKind, NDArray[np.int64]]


def generalise(
    texts: Sequence[str], mentions: Mentions, form: GeneralisationForm, ladders: Ladders
) -> GeneralisedTexts:
    """Replace all mentions by what a form generalises them to.

    Args:
        texts: Whatever is written in them stays, but for the mentions.
        mentions: Of these texts; those that overlap are replaced as one.
        form: How far each is generalised.
        ladders: What each kind generalises to.
    """
    if mentions.count and int(mentions.documents[-1]) >= len(texts):
        raise BadParameter("mentions", "<mentions>", "of these texts")
    apart = mentions.disjoint()
    replacements = np.empty(apart.count, dtype=np.object_)
    counts = {}
    for kind, placed in ladders.place(apart).items():
        nodes = form.nodes(kind, placed)
        replacements[placed.rows] = form.label(kind, placed.hierarchy, nodes)
        counts[kind] = np.bincount(
            placed.hierarchy.levels[nodes], minlength=placed.hierarchy.height + 1
        )
    return GeneralisedTexts(_rewritten(texts, apart, replacements), apart, replacements, counts)


def _rewritten(texts: Sequence[str], mentions: Mentions, replacements: Replacements) -> list[str]:
    bounds = np.searchsorted(mentions.documents, np.arange(len(texts) + 1))
    starts, ends = mentions.starts.tolist(), mentions.ends.tolist()
    found = []
    for text, first, last in zip(texts, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        parts, done = [], 0
        for row in range(first, last):
            parts += [text[done : starts[row]], replacements[row]]
            done = ends[row]
        found.append("".join([*parts, text[done:]]))
    return found
