"""What repeated answers about one decision give away, each with fresh draws."""

import numpy as np

from noisefloor.accounting import success
from noisefloor.adversary.audit import AttackOutcome, score
from noisefloor.adversary.records.channels import plurality
from noisefloor.checks import check_count
from noisefloor.collection.collecting import repeated_success
from noisefloor.mechanisms import BinaryResponse, KaryResponse
from noisefloor.privacy import Neighbours
from noisefloor.randomness import Source
from noisefloor.tables import Labels


def attack_decisions(
    response: BinaryResponse | KaryResponse, decisions: Labels, queries: int, source: Source
) -> AttackOutcome:
    """Guess a decision from several protected answers to the same question.

    Sees:      T answers of each device, each with fresh draws.
    Knows:     the response, and nothing of decisions.
    Guesses:   what most answers say, ties tossed.
    Reference: Bayes; ``decisions.repeated_success`` is the closed form for two labels.
    """
    reported = [
        response.randomise(decisions, source.child("query", number))
        for number in range(check_count(queries, "queries"))
    ]
    labels = 2 if isinstance(response, BinaryResponse) else response.size
    guessed = plurality(np.stack(reported, axis=1), labels, source.child("ties"))
    epsilon = queries * response.guarantee(Neighbours.USER).epsilon
    return score(
        guessed,
        np.asarray(decisions).astype(np.intp),
        baseline=1 / labels,
        bound=float(success(epsilon, labels)),
        closed_form=repeated_success(response.epsilon, queries)
        if isinstance(response, BinaryResponse)
        else None,
    )
