"""What repeated questions about one record give away, each with fresh draws."""

from collections.abc import Sequence

import numpy as np

from noisefloor.accounting import success
from noisefloor.adversary.audit import AttackOutcome, score
from noisefloor.adversary.records.channels import (
    Channel,
    channels,
    check_place,
    plurality,
    plurality_success,
)
from noisefloor.checks import check_count
from noisefloor.collection.collecting import repeated_success
from noisefloor.collection.encoding import Codes, UnifiedResponse, check_codes
from noisefloor.mechanisms import BinaryResponse, KaryResponse, Reports
from noisefloor.privacy import Neighbours
from noisefloor.randomness import Source
from noisefloor.tables import Labels


def attack_repeated(
    mechanism: UnifiedResponse,
    codes: Codes,
    queries: int,
    source: Source,
    place: int | None = None,
) -> AttackOutcome:
    """Guess the record of each owner, or one value of it, from several reports of it.

    Sees:      T reports of each owner, each with fresh draws.
    Knows:     the mechanism; that the record is the same in each; and nothing of records.
    Guesses:   the most frequent class of each value, ties tossed.
    Reference: Bayes for classes that are alike; ``repeated_record_success`` is the closed form.
    """
    rows = check_codes(codes, mechanism.sizes)
    width = len(mechanism.sizes)
    places = list(range(width)) if place is None else [check_place(place, width)]
    reported = [
        mechanism.randomise(rows, source.child("query", number))[:, places]
        for number in range(check_count(queries, "queries"))
    ]
    guessed = _pluralities(np.stack(reported, axis=2), mechanism, places, source)
    spaces = np.prod([float(mechanism.sizes[one]) for one in places])
    of = mechanism if place is None else mechanism.responses[place]
    epsilon = queries * of.guarantee(Neighbours.USER).epsilon
    return AttackOutcome(
        int(np.count_nonzero((guessed == rows[:, places]).all(axis=1))),
        len(rows),
        float(1 / spaces),
        float(success(epsilon, spaces)),
        repeated_record_success(mechanism, queries, place),
    )


def repeated_record_success(
    mechanism: UnifiedResponse, queries: int, place: int | None = None
) -> float:
    """Return how often the pluralities of n reports are the record, or a value of it.

    Formula: the product over the values of ``plurality_success``.
    """
    parts = channels(mechanism) if place is None else [channels(mechanism)[place]]
    known: dict[Channel, float] = {one: plurality_success(one, queries) for one in set(parts)}
    return float(np.prod([known[one] for one in parts]))


def attack_decisions(
    response: BinaryResponse | KaryResponse, decisions: Labels, queries: int, source: Source
) -> AttackOutcome:
    """Guess a decision from several protected answers to the same question.

    Sees:      T answers of each device, each with fresh draws.
    Knows:     the response, and nothing of decisions.
    Guesses:   what most answers say, ties tossed.
    Reference: Bayes; ``decisions.repeated_success`` is the closed form for two labels,
               ``plurality_success`` for more.
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
        else plurality_success(Channel.of(response), queries),
    )


def _pluralities(
    reported: Reports, mechanism: UnifiedResponse, places: Sequence[int], source: Source
) -> Codes:
    """Return the most frequent class of each value of each owner."""
    columns = [
        plurality(reported[:, at], mechanism.sizes[one], source.child("ties", one))
        for at, one in enumerate(places)
    ]
    return np.stack(columns, axis=1).astype(np.uint16)
