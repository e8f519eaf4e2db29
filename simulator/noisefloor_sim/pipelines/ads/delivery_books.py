"""The book of a day's delivery, and what it tells: how well ads are liked, and what was asked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.factors import Single
from noisefloor_sim.pipelines.base import Metric

Counts = NDArray[np.uint32]


@dataclass(slots=True)
class DeliveryBook:
    """What was shown on one day, in whole numbers over all cohorts; only scoring reads it.

    Attributes:
        slots: Slots for ads.
        users: Users who had any on a device in contact.
        requests: Fresh requests.
        askers: Users who made any.
        most: Of one user, the most.
        refused: Requests that the budget did not cover.
        personal: Slots filled by a request, of this day or an earlier one.
        pushed: Slots with the ad that fakes push.
        hits: Slots with the ad that the user likes best.
        liking: How much the shown ads are liked, in millionths.
        popular: The same of popular ads.
        best: The same of the best ads by the model.
    """

    slots: int = 0
    users: int = 0
    requests: int = 0
    askers: int = 0
    most: int = 0
    refused: int = 0
    personal: int = 0
    pushed: int = 0
    hits: int = 0
    liking: int = 0
    popular: int = 0
    best: int = 0

    def ask(self, wanted: NDArray[np.int64], granted: NDArray[np.int64]) -> None:
        """Write down a cohort's requests."""
        self.users += int(np.count_nonzero(wanted))
        self.requests += int(granted.sum())
        self.askers += int(np.count_nonzero(granted))
        self.most = max(self.most, int(granted.max(initial=0)))
        self.refused += int((wanted - granted).sum())


def millionths(values: Single) -> int:
    """Return a sum that does not depend on the order of cohorts."""
    return int(np.rint(1e6 * values.astype(np.float64)).astype(np.int64).sum())


def requests_a_day(books: Sequence[DeliveryBook]) -> int:
    """Return how many fresh requests a user makes who makes any, on the busiest day.

    The mean, rounded up; at least one.
    """
    busiest = max((book.requests / max(1, book.askers) for book in books), default=0.0)
    return max(1, math.ceil(busiest))


def busiest_requests(books: Sequence[DeliveryBook]) -> int:
    """Return the most fresh requests that any user made on one day."""
    return max((book.most for book in books), default=0)


def requests_in_all(asked: Mapping[int, Counts]) -> int:
    """Return how many fresh requests a user makes in the whole run who makes any.

    The mean, rounded up; at least one. A budget that is spent shows here.

    Args:
        asked: Requests of each user, by cohort.
    """
    total = sum(int(counts.sum()) for counts in asked.values())
    askers = sum(int(np.count_nonzero(counts)) for counts in asked.values())
    return max(1, math.ceil(total / max(1, askers)))


def delivery_metrics(books: Sequence[DeliveryBook], asked: Mapping[int, Counts]) -> list[Metric]:
    """Tell how well the shown ads were liked, and what asking for them took."""
    slots, users = sum(book.slots for book in books), sum(book.users for book in books)
    if not slots:
        return []

    def share(name: str) -> float:
        return float(sum(getattr(book, name) for book in books) / slots)

    requests = sum(book.requests for book in books)
    return [
        Metric("relevance", share("liking") / 1e6, n=slots),
        Metric("relevance.popular", share("popular") / 1e6, n=slots),
        Metric("relevance.open", share("best") / 1e6, n=slots),
        Metric("top_one", share("hits"), n=slots),
        Metric("pushed_share", share("pushed"), n=slots),
        Metric("personal_share", share("personal"), n=slots),
        Metric("requests", float(requests), n=users),
        Metric("requests_per_day", requests / max(1, users), n=users),
        Metric("requests_refused", float(sum(book.refused for book in books)), n=users),
        Metric("requests_per_user", float(requests_in_all(asked)), n=users),
        Metric("requests_busiest_day", float(requests_a_day(books)), n=users),
        Metric("requests_busiest_user", float(busiest_requests(books)), n=users),
    ]
