"""Lengths: a generator that copies the lengths of its originals gives them away exactly.

Two questions. Was a text of this length in the corpus? Which published text stands for it?
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import success
from noisefloor.adversary.audit import AttackOutcome, score
from noisefloor.adversary.text.relations import membership_bound, of_exchange
from noisefloor.checks import check_finite
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee
from noisefloor.randomness import Source

Lengths = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LengthAttack:
    """What lengths alone gave away of membership.

    Attributes:
        all: Guesses about all targets.
        unique: The same for targets whose length no other target and no known text has; nothing
            where there is no such target. A generator that copies lengths loses all of these.
    """

    all: AttackOutcome
    unique: AttackOutcome | None


def attack_lengths(
    targets: Lengths,
    members: NDArray[np.bool_],
    published: Lengths,
    guarantee: Guarantee,
    *,
    rest: Lengths | None = None,
    prior: float = 0.5,
) -> LengthAttack:
    """Infer membership from one more published text of the target's length than is known.

    Sees:      the lengths of the published texts.
    Knows:     the lengths of the target's text and of some of the others, all of them at best.
    Guesses:   membership if more published texts than known ones have the length.

    Args:
        targets: Lengths of texts, of members and of others.
        members: Which of them were in the corpus.
        published: Lengths of all published texts.
        guarantee: Of what was published.
        rest: Lengths of texts of the corpus that the adversary knows; no target is among them.
        prior: The share of members that the adversary expects.
    """
    if targets.shape != members.shape or not len(targets):
        raise BadParameter("targets", targets.shape, f"one for each member, {members.shape}")
    if not 0 <= check_finite(prior, "prior") <= 1:
        raise BadParameter("prior", prior, "in [0, 1]")
    known = np.empty(0, dtype=np.int64) if rest is None else rest
    longest = int(max(some.max(initial=0) for some in (targets, published, known)))
    seen, expected, sought = (
        np.bincount(some, minlength=longest + 1)[targets] for some in (published, known, targets)
    )
    guesses = (seen > expected).astype(np.int64)
    alone = (sought == 1) & (expected == 0)
    baseline, bound = max(prior, 1 - prior), membership_bound(guarantee, prior)
    every = score(guesses, members, baseline=baseline, bound=bound)
    if not alone.any():
        return LengthAttack(every, None)
    unique = score(guesses[alone], members[alone], baseline=baseline, bound=bound)
    return LengthAttack(every, unique)


def link_lengths(
    originals: Lengths, published: Lengths, guarantee: Guarantee, source: Source
) -> AttackOutcome:
    """Name for each original the published text that has its length.

    Sees:      the lengths of the published texts, in their order.
    Knows:     the length of each original.
    Guesses:   one of the published texts of that length, each with equal probability.

    The i-th published text is the i-th original's: that is what is scored. Where lengths are
    copied, each different length is linked once on average; ``closed_form`` says so.

    Args:
        originals: Lengths of the corpus.
        published: Lengths of the published texts, as many.
        guarantee: Of what was published.
        source: Chooses among texts of one length.
    """
    n = len(originals)
    if not n or len(published) != n:
        raise BadParameter("published", len(published), f"as many as the originals, {n}, above 0")
    order = np.argsort(published, kind="stable")
    ranked = published[order]
    first = np.searchsorted(ranked, originals, side="left")
    count = np.searchsorted(ranked, originals, side="right") - first
    there = np.flatnonzero(count)
    drawn = source.below(count[there].astype(np.uint64), len(there)).astype(np.int64)
    guessed = np.full(n, -1, dtype=np.int64)
    guessed[there] = order[first[there] + drawn]
    is_copied = np.array_equal(originals, published)
    # Two originals that change places are two texts that become others.
    exchange = of_exchange(guarantee, 2)
    return score(
        guessed,
        np.arange(n),
        baseline=1 / n,
        bound=float(success(exchange.epsilon, n, exchange.delta)),
        closed_form=len(np.unique(originals)) / n if is_copied else None,
        candidates=n,
    )
