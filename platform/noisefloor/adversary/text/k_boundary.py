"""The boundary of k-anonymity: one document decides how an entity is written in all others.

An entity in k - 1 documents is generalised, in k it is kept. An adversary who knows k - 1 of them
reads off the published form whether there is one more: deterministically, for every k. So
k-anonymity of entities is no differential privacy; counts with noise are.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit import AttackOutcome, score
from noisefloor.adversary.text.relations import membership_bound
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee

Forms = Mapping[str, str]
"""How each surface form of an entity is written in what was published."""


def guess_presence(released: Forms, with_target: Forms, without: Forms) -> float:
    """Return how much likelier than not it is, by released forms, that the target was there.

    Sees:      how each entity is written in what was published.
    Knows:     all other documents, so what would be published with the target and without it.
    Guesses:   the corpus whose forms agree with more of the released ones.

    Returns:
        How many entities are written as with the target, less how many are as without it, of
        those that the two differ in; 0 if they do not differ, and the prior decides.
    """
    differing = [
        entity
        for entity in sorted({*with_target, *without})
        if with_target.get(entity) != without.get(entity)
    ]
    agree = sum(released.get(entity) == with_target.get(entity) for entity in differing)
    against = sum(released.get(entity) == without.get(entity) for entity in differing)
    return float(agree - against)


def attack_k_boundary(
    released: Sequence[Forms],
    truth: NDArray[np.bool_],
    with_target: Sequence[Forms],
    without: Sequence[Forms],
    guarantee: Guarantee,
    *,
    is_exact: bool = True,
) -> AttackOutcome:
    """Guess in each game whether the k-th document was there.

    Without noise the guess is right whenever the two corpora are written differently.

    Args:
        released: The forms that were published, of each game.
        truth: Whether the target was there, by a fair random bit.
        with_target: What the adversary computes with the target: of a noisy generalisation, what
            is likeliest.
        without: The same without it.
        guarantee: What is claimed of the published forms.
        is_exact: Whether forms follow from the corpus without noise: then the success is known.
    """
    games = len(released)
    if not games or not games == len(truth) == len(with_target) == len(without):
        raise BadParameter("released", games, "one for each game, and as many of the rest")
    scores = np.array(
        [guess_presence(*forms) for forms in zip(released, with_target, without, strict=True)]
    )
    differs = np.array(
        [dict(one) != dict(other) for one, other in zip(with_target, without, strict=True)]
    )
    return score(
        (scores > 0).astype(np.int64),  # where nothing differs: absent
        truth,
        baseline=0.5,
        bound=membership_bound(guarantee),
        closed_form=(1 + float(differs.mean())) / 2 if is_exact else None,
    )
