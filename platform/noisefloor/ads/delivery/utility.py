"""What each way of delivery is worth at its proved epsilon, from exact laws: no simulation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from noisefloor.ads.delivery.ad_request import DATA_INDEPENDENT, AdDelivery, AdSelection


@dataclass(frozen=True, slots=True)
class Utility:
    """One row of the table.

    Attributes:
        choice: How ads are asked for.
        claimed: The epsilon that is said of one request.
        proved: The epsilon that is proved of it.
        top_one: How often the best ad is shown.
        expected_score: The mean score of the ad that is shown.
    """

    choice: AdSelection
    claimed: float
    proved: float
    top_one: float
    expected_score: float


def utility_of(delivery: AdDelivery, rows: object) -> Utility:
    """Return what a way of delivery is worth to these users, on average."""
    scores, chances = delivery.clipped(rows), delivery.shown_chances(rows)
    best = np.take_along_axis(chances, scores.argmax(axis=1)[:, None], axis=1)
    return Utility(
        delivery.choice,
        delivery.claimed.epsilon,
        delivery.guarantee().epsilon,
        float(best.mean()),
        float((chances * scores).sum(axis=1).mean()),
    )


def utility_table(
    rows: object,
    epsilons: Sequence[float],
    choices: Iterable[AdSelection] = AdSelection,
    *,
    ads: int,
    **options: float,
) -> list[Utility]:
    """Return one row per choice and epsilon, or one per choice that does not use an epsilon.

    All but PRINTED prove the epsilon that they are asked for, so that rows of one epsilon compare.
    PRINTED at an equal proved epsilon is NOISY_MAX: the same noise, calibrated.

    Args:
        rows: Scores, one row of ``ads`` per user; some hundreds are enough.
        epsilons: What is claimed of one request.
        choices: How ads are asked for.
        ads: Ads in the catalogue.
        options: Other parameters of ``AdDelivery``: top, slate, low, high, steps.
    """
    table = []
    for choice in choices:
        once = choice in DATA_INDEPENDENT or choice is AdSelection.EXACT
        for epsilon in [0.0] if once else epsilons:
            delivery = AdDelivery(ads, epsilon, choice, **options)  # type: ignore[arg-type]  # checked there
            table.append(utility_of(delivery, rows))
    return table
