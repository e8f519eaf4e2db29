"""What each way of delivery is worth at its proved epsilon, from exact laws: no simulation."""

from dataclasses import dataclass

import numpy as np

from noisefloor.ads.delivery.ad_request import AdDelivery, AdSelection


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
