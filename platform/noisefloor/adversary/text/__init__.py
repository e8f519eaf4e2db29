"""Attacks on published texts, and on the generators that wrote them.

Each sees what was published and the side knowledge that it declares; which text was in the corpus,
or who wrote it, is for scoring alone. Bounds are those of the guarantee that is handed in: for a
document, or for all documents of a user.
"""

from noisefloor.adversary.text.authorship import (
    Stylometry,
    authorship_bound,
    link_authors,
    train_stylometry,
)
from noisefloor.adversary.text.canary_exposure import (
    CanaryExposure,
    TextScore,
    occurrence_scores,
    rank_canaries,
)
from noisefloor.adversary.text.copied_lengths import LengthAttack, attack_lengths, link_lengths
from noisefloor.adversary.text.k_boundary import Forms, attack_k_boundary, guess_presence
from noisefloor.adversary.text.missed_names import MissedNames, search_names
from noisefloor.adversary.text.nearest_texts import TextLinkage, link_nearest
from noisefloor.adversary.text.relations import membership_bound, of_exchange, of_removal
from noisefloor.adversary.text.seed_leak import attack_seeds, leak_chance, search_pieces
from noisefloor.adversary.text.text_membership import (
    TextMembership,
    attack_membership,
    likelihood_scores,
    nearest_scores,
)

__all__ = [
    "CanaryExposure",
    "Forms",
    "LengthAttack",
    "MissedNames",
    "Stylometry",
    "TextLinkage",
    "TextMembership",
    "TextScore",
    "attack_k_boundary",
    "attack_lengths",
    "attack_membership",
    "attack_seeds",
    "authorship_bound",
    "guess_presence",
    "leak_chance",
    "likelihood_scores",
    "link_authors",
    "link_lengths",
    "link_nearest",
    "membership_bound",
    "nearest_scores",
    "occurrence_scores",
    "of_exchange",
    "of_removal",
    "rank_canaries",
    "search_names",
    "search_pieces",
    "train_stylometry",
]
