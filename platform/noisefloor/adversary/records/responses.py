"""What a report of a record gives away of one value of it.

Truths are the codes of owners. Closed forms are of these very codes: owners are given, only the
reports are drawn. So the number of right guesses is a sum of independent Bernoulli draws, and
binomial limits are on the safe side.
"""

import numpy as np

from noisefloor.accounting import success
from noisefloor.adversary.audit import AttackOutcome, Prior, score
from noisefloor.adversary.records.channels import Channel, check_place
from noisefloor.adversary.records.priors import shares_of
from noisefloor.collection.encoding import Codes, UnifiedResponse, check_codes
from noisefloor.privacy import Neighbours
from noisefloor.randomness import Source


def attack_attribute(
    mechanism: UnifiedResponse, codes: Codes, source: Source, place: int, prior: Prior = None
) -> AttackOutcome:
    """Guess one value of each owner from what was reported of it.

    Sees:      the report of one value.
    Knows:     the mechanism, and the shares of the value's classes; without them, nothing.
    Guesses:   the class.
    Reference: Bayes; ``Channel.success`` is the closed form.
    """
    rows = check_codes(codes, mechanism.sizes)
    place = check_place(place, len(mechanism.sizes))
    response, truth = mechanism.responses[place], rows[:, place].astype(np.intp)
    channel, spread = Channel.of(response), shares_of(truth, response.size)
    reports = mechanism.randomise(rows, source)
    top = 1 / channel.size if prior is None else float(spread.max())
    return score(
        channel.guesses(prior)[reports[:, place]],
        truth,
        baseline=top,
        bound=float(success(response.guarantee(Neighbours.ITEM).epsilon, 1 / top)),
        closed_form=channel.success(prior, spread),
    )
