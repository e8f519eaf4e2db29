"""Organisations: their kind by the words of their name, or the place where they are.

Through the place is the paper's earlier system: the place in the name, otherwise the place that
the same document mentions nearest to it; that choice is ours. Through the kind is our reading.
"""

import numpy as np

from noisefloor.publication.text.entities import EntityKind, Mentions
from noisefloor.publication.text.generalisation.hierarchy import ROOT, Nodes, Step
from noisefloor.publication.text.generalisation.place_graph import PLACE_LEVELS, PlaceGraph
from noisefloor.publication.text.generalisation.spelling import spelling_key

ORGANISATION_LEVELS = ("name", "kind", "organisation")

ORGANISATION_PLACE_LEVELS = ("name", *PLACE_LEVELS)

_NAME, _KIND, _ANY = range(len(ORGANISATION_LEVELS))

_KINDS = {
    "university": "university universities college institute polytechnic faculty academy",
    "school": "school schools kindergarten highschool",
    "hospital": "hospital clinic infirmary hospice medical",
    "bank": "bank banks bancorp banking savings",
    "film company": "films film pictures picture studios studio cinema entertainment pixar disney "
    "miramax hbo netflix paramount mgm universal dreamworks lionsgate",
    "broadcaster": "tv television broadcasting radio channel network cnn bbc abc cbs nbc pbs mtv "
    "itv fox",
    "publisher": "press publishing publishers books magazine times post news journal herald",
    "museum": "museum gallery",
    "court": "court tribunal",
    "ministry": "ministry department bureau agency commission fbi cia nasa senate congress "
    "parliament council",
    "military unit": "army navy marines regiment battalion brigade corps",
    "party": "party democrats republicans",
    "church": "church cathedral diocese ministries mosque synagogue temple",
    "team": "fc united football baseball basketball club league",
    "union": "union federation association society foundation trust",
    "airline": "airlines airline airways",
    "restaurant": "restaurant cafe diner mcdonalds",
    "company": "inc ltd llc corp corporation company co plc gmbh ag group holdings industries "
    "international partners motors energy pharmaceuticals systems technologies software",
}
"""Words by the kind that they show; of several kinds in a name, the first of this list."""

_KIND_OF = {
    word: (place, kind)
    for place, (kind, words) in reversed(list(enumerate(_KINDS.items())))
    for word in words.split()
}


def organisation_kind(name: str) -> str:
    """Return the kind that the words of a name show; empty if they show none."""
    found = [_KIND_OF[word] for word in spelling_key(name).split() if word in _KIND_OF]
    return min(found)[1] if found else ""


def organisation_chain(name: str) -> tuple[Step, ...]:
    """Return what an organisation generalises to by its kind, itself first."""
    key = spelling_key(name)
    if not key:
        return ()
    kind = organisation_kind(name)
    steps = [Step(_NAME, key, written(key))]
    steps += [Step(_KIND, kind, f"a {kind}")] if kind else []
    return *steps, Step(_ANY, "organisation", "an organisation")


def places_of(mentions: Mentions, graph: PlaceGraph) -> Nodes:
    """Return the place of each organisation of ``mentions``; the root where there is none.

    What is found depends on the mention's own document alone.
    """
    rows = mentions.of_kind(EntityKind.ORGANISATION)
    found = np.array([graph.find_within(name) for name in mentions.surfaces[rows]], dtype=np.int64)
    others = mentions.of_kind(EntityKind.LOCATION)
    nodes = graph.find(mentions.surfaces[others])
    others, nodes = others[nodes != ROOT], nodes[nodes != ROOT]
    if not len(others) or not len(rows):
        return found
    lacking = np.flatnonzero(found == ROOT)
    found[lacking] = _nearest(mentions, rows[lacking], others, nodes)
    return found


def _nearest(mentions: Mentions, rows: Nodes, others: Nodes, nodes: Nodes) -> Nodes:
    """Return the node of the nearest of the other mentions in the same document.

    Spans of one document do not overlap: the nearest is the one before or the one after; of
    equals, the one before.
    """
    after = np.searchsorted(others, rows)
    gaps = []
    for place in (after - 1, after):
        inside = np.clip(place, 0, len(others) - 1)
        is_near = (place >= 0) & (place < len(others))
        is_near &= mentions.documents[others[inside]] == mentions.documents[rows]
        gap = np.maximum(
            mentions.starts[rows] - mentions.ends[others[inside]],
            mentions.starts[others[inside]] - mentions.ends[rows],
        )
        gaps.append((np.where(is_near, gap, np.iinfo(np.int64).max), inside))
    (gap_before, before), (gap_after, behind) = gaps
    nearest = np.where(gap_before <= gap_after, nodes[before], nodes[behind])
    is_none = np.minimum(gap_before, gap_after) == np.iinfo(np.int64).max
    return np.where(is_none, ROOT, nearest)


def organisation_place_chain(name: str, place: int, graph: PlaceGraph) -> tuple[Step, ...]:
    """Return what an organisation generalises to by its place, itself first.

    Args:
        name: As it is written.
        place: Its node; the root if there is none.
        graph: Of the places.
    """
    key = spelling_key(name)
    if not key:
        return ()
    steps = [Step(0, f"{key}|{place}", written(key))]
    node = place
    while node != ROOT:
        level = int(graph.hierarchy.levels[node]) + 1
        steps.append(Step(level, str(node), f"an organisation in {graph.hierarchy.labels[node]}"))
        node = int(graph.hierarchy.parents[node])
    return tuple(steps)


def written(key: str) -> str:
    """Write a name with capitals: all its spellings look the same."""
    return " ".join(
        word if word in _SMALL else word.upper() if len(word) <= 3 else word.capitalize()
        for word in key.split()
    )


_SMALL = frozenset("of and for the in at to on de la".split())
