"""Generalisation of entities: the paper's climb to k-anonymity, and forms that are private.

    ladders = Ladders(shared_place_graph())                  # what each kind generalises to
    form = FixedLevels({EntityKind.LOCATION: 3})             # places become countries
    done = generalise(texts, mentions, form, ladders)        # done.texts
    plan = NoisyPlacesPlan.of(cost, ladders.places)          # or: places kept by noisy counts
    form = plan.release(mentions, ladders, source)

``KAnonymous`` is the paper's form and has no guarantee: ``climb`` says what removing one document
does to the others. ``PublicThresholds`` and ``Placeholders`` are free, as ``FixedLevels`` is.
``place_graph`` has the places, ``people``, ``organisations`` and ``quantities`` what names
generalise to; all that is written in place of a mention follows from the mention's own document.
"""

from noisefloor.publication.text.generalisation.climb import (
    climb_to_k,
    group_size,
    most_rewritten,
)
from noisefloor.publication.text.generalisation.forms import (
    FixedLevels,
    KAnonymous,
    Placeholders,
    PublicThresholds,
)
from noisefloor.publication.text.generalisation.hierarchy import SUPPRESSED, Hierarchy
from noisefloor.publication.text.generalisation.ladders import Ladders, PlacedMentions
from noisefloor.publication.text.generalisation.noisy_counts import NoisyPlaces, NoisyPlacesPlan
from noisefloor.publication.text.generalisation.place_graph import (
    PLACE_LEVELS,
    PlaceGraph,
    place_graph,
    shared_place_graph,
)
from noisefloor.publication.text.generalisation.rewriting import (
    GeneralisationForm,
    GeneralisedTexts,
    generalise,
)

__all__ = [
    "PLACE_LEVELS",
    "SUPPRESSED",
    "FixedLevels",
    "GeneralisationForm",
    "GeneralisedTexts",
    "Hierarchy",
    "KAnonymous",
    "Ladders",
    "NoisyPlaces",
    "NoisyPlacesPlan",
    "PlaceGraph",
    "PlacedMentions",
    "Placeholders",
    "PublicThresholds",
    "climb_to_k",
    "generalise",
    "group_size",
    "most_rewritten",
    "place_graph",
    "shared_place_graph",
]
