"""The hierarchy of each kind of mention, and where each mention starts in it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from noisefloor.publication.text.entities import EntityKind, Mentions
from noisefloor.publication.text.generalisation import organisations, people, quantities
from noisefloor.publication.text.generalisation.hierarchy import (
    Hierarchy,
    Nodes,
    Step,
    hierarchy_of,
)
from noisefloor.publication.text.generalisation.place_graph import PLACE_LEVELS, PlaceGraph

OrganisationPath = Literal["kind", "place"]

_CHAINS: Mapping[EntityKind, Callable[[str], tuple[Step, ...]]] = {
    EntityKind.PERSON: people.person_chain,
    EntityKind.ORGANISATION: organisations.organisation_chain,
    EntityKind.DATE: quantities.date_chain,
    EntityKind.NUMBER: quantities.number_chain,
    EntityKind.EMAIL: quantities.address_chain,
    EntityKind.HANDLE: quantities.address_chain,
}


@dataclass(frozen=True, slots=True, eq=False)
class PlacedMentions:
    """The mentions of one kind in their hierarchy.

    Attributes:
        rows: Of the table of mentions.
        documents: Of each row.
        nodes: Where each starts; a function of its own document alone.
        hierarchy: Of the kind.
    """

    rows: Nodes
    documents: Nodes
    nodes: Nodes
    hierarchy: Hierarchy


@dataclass(frozen=True, slots=True, eq=False)
class Ladders:
    """What mentions of each kind climb.

    Attributes:
        places: The graph of places.
        organisations: Whether organisations climb through their kind or through their place.
    """

    places: PlaceGraph
    organisations: OrganisationPath = "kind"

    def levels(self, kind: EntityKind) -> tuple[str, ...]:
        """Return the names of a kind's levels, below the root."""
        if kind is EntityKind.ORGANISATION and self.organisations == "place":
            return organisations.ORGANISATION_PLACE_LEVELS
        return {
            EntityKind.PERSON: people.PERSON_LEVELS,
            EntityKind.LOCATION: PLACE_LEVELS,
            EntityKind.ORGANISATION: organisations.ORGANISATION_LEVELS,
            EntityKind.DATE: quantities.DATE_LEVELS,
            EntityKind.NUMBER: quantities.NUMBER_LEVELS,
            EntityKind.EMAIL: quantities.EMAIL_LEVELS,
            EntityKind.HANDLE: quantities.HANDLE_LEVELS,
        }[kind]

    def place(self, mentions: Mentions) -> dict[EntityKind, PlacedMentions]:
        """Return the mentions of each kind in their hierarchies.

        Args:
            mentions: Without overlaps.
        """
        return {kind: self._placed(mentions, kind) for kind in EntityKind}

    def _placed(self, mentions: Mentions, kind: EntityKind) -> PlacedMentions:
        rows = mentions.of_kind(kind)
        hierarchy, nodes = self._nodes(mentions, rows, kind)
        return PlacedMentions(rows, mentions.documents[rows], nodes, hierarchy)

    def _nodes(self, mentions: Mentions, rows: Nodes, kind: EntityKind) -> tuple[Hierarchy, Nodes]:
        names = mentions.surfaces[rows]
        if kind is EntityKind.LOCATION:
            return self.places.hierarchy, self.places.find(names)
        height = len(self.levels(kind))
        if kind is EntityKind.ORGANISATION and self.organisations == "place":
            found = organisations.places_of(mentions, self.places)
            pairs = list(zip(names, found.tolist(), strict=True))
            chains = {
                pair: organisations.organisation_place_chain(*pair, self.places)
                for pair in dict.fromkeys(pairs)
            }
            return hierarchy_of([chains[pair] for pair in pairs], height)
        of_name = {name: _CHAINS[kind](name) for name in dict.fromkeys(names)}
        return hierarchy_of([of_name[name] for name in names], height)
