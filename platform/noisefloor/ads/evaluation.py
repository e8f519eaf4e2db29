"""How good a model of the ads is: the error of predicted ratings, and how often it picks best.

Tastes and true ratings are needed, so this is for whoever has both: a simulation, or a device
about itself.
"""

import math

import numpy as np

from noisefloor.ads.factors import AdModel, Ratings, Single, held, user_blocks
from noisefloor.errors import OutOfDomain


def rmse(model: AdModel, tastes: Single, held_out: Ratings) -> float:
    """Return the root mean square error over held-out ratings.

    Predictions are clipped to the rating scale [0, 1], as whoever shows one would.
    """
    model.check(tastes, held_out)
    total, count = 0.0, int(np.count_nonzero(held_out.rated))
    for rows in user_blocks(len(held_out)):
        some = held_out[rows]
        error = np.clip(model.predict(tastes[rows]), 0.0, 1.0)
        np.subtract(some.rating, error, out=error)
        held(error, some.rated)
        total += float(np.einsum("ij,ij->", error, error, dtype=np.float64))
    if not count:
        raise OutOfDomain("Expected at least one held-out rating.")
    return math.sqrt(total / count)


def hit_rate(model: AdModel, tastes: Single, truth: Ratings) -> float:
    """Return how often the ad predicted to be the best is the best, among those in ``truth``.

    Users for whom ``truth`` holds no ad do not count. Of ads that are equally good, any will do.
    """
    model.check(tastes, truth)
    hits = 0
    for rows in user_blocks(len(truth)):
        some = truth[rows]
        predicted = np.where(some.rated, model.predict(tastes[rows]), -np.inf)
        rating = np.where(some.rated, some.rating, -np.inf)
        picked = predicted.argmax(axis=1)
        good = rating[np.arange(len(some)), picked] == rating.max(axis=1)
        hits += int(np.count_nonzero(good & some.rated.any(axis=1)))
    users = int(np.count_nonzero(truth.rated.any(axis=1)))
    if not users:
        raise OutOfDomain("Expected at least one user with a true rating.")
    return hits / users
