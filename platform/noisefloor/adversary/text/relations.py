"""What a guarantee for texts says of two corpora that an attack distinguishes.

A guarantee is for one document that is there or not, or for everything of one user. An author of
r texts is r documents, and one who takes another's place is 2 r: group privacy, or a guarantee for
users, is all that there is.
"""

from noisefloor.accounting import binary_success, group
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours

_STEPS = {
    Neighbours.DOCUMENT: (1, 2),
    Neighbours.RECORD_ADD_REMOVE: (1, 2),
    Neighbours.RECORD_SUBSTITUTE: (1, 1),
}
"""Steps of each relation to a text that is there or not, and to one that becomes another."""


def of_removal(guarantee: Guarantee, texts: int = 1) -> Guarantee:
    """Return the guarantee for some texts of one person that are there or not.

    Of a guarantee for substitution it is that for texts that become others: the size is public
    there, and a text is there or something else is.
    """
    return _converted(guarantee, texts, 0)


def of_exchange(guarantee: Guarantee, texts: int = 1) -> Guarantee:
    """Return the guarantee for some texts of one person that become those of another."""
    return _converted(guarantee, texts, 1)


def membership_bound(guarantee: Guarantee, prior: float = 0.5) -> float:
    """Bound how often it is guessed whether a text is there, if it is with probability ``prior``.

    Formula: ``max((e^epsilon + delta) / (1 + e^epsilon), p + (1 - p) delta, (1 - p) + p delta)``:
    what is guessed right is linear in both rates, so it is largest at a corner of what
    (epsilon, delta) allows them to be.
    """
    removal = of_removal(guarantee)
    fair = float(binary_success(removal.epsilon, removal.delta))
    return max(fair, *(p + (1 - p) * removal.delta for p in (prior, 1 - prior)))


def _converted(guarantee: Guarantee, texts: int, place: int) -> Guarantee:
    if guarantee.neighbours is Neighbours.USER:
        return guarantee
    if guarantee.neighbours not in _STEPS:
        raise BadParameter("neighbours", guarantee.neighbours.value, "a relation of texts")
    steps = texts * _STEPS[guarantee.neighbours][place]
    return guarantee if steps == 1 else group(guarantee, steps, guarantee.neighbours)
