"""What one person releases in a day, as parts that an auditor can put together."""

import math

import numpy as np

from noisefloor.ads.bit_training import BitTraining
from noisefloor.ads.delivery import Delivery
from noisefloor.ads.laplace_training import LaplaceTraining
from noisefloor.ads.spectral import SpectralTraining
from noisefloor.ads.training import Training
from noisefloor.adversary.joint import Part
from noisefloor.mechanisms.base import Mechanism
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor_sim.pipelines.ads.delivery import DeliveryBook
from noisefloor_sim.pipelines.clicks.block import ClickBlock, memoised_of, report_of
from noisefloor_sim.scenario.model import Scenario


def training_part(training: Training) -> Part:
    """Return what a user who takes part in everything sends, on the two worst profiles."""
    if isinstance(training, BitTraining):
        mechanism: Mechanism = training.bit
        times = 1 if training.once else training.rounds
    elif isinstance(training, LaplaceTraining):
        mechanism, times = training.noise, training.rounds
    elif isinstance(training, SpectralTraining):
        mechanism, times = training.directions, 1
    else:
        raise TypeError(f"{type(training).__name__} has no part to audit.")
    first, second = _worst_pair(mechanism)
    return Part(mechanism, first, second, times)


def _worst_pair(mechanism: object) -> tuple[object, object]:
    pairs = getattr(mechanism, "worst_pairs")(Neighbours.USER)  # noqa: B009 - not in the protocol
    first, second = pairs[0]
    return first, second


def request_part(delivery: Delivery, times: int) -> Part:
    """Return so many fresh requests, on the two rows of scores that they tell apart best."""
    first, second = delivery.worst_pair()
    return Part(delivery, np.asarray(first), np.asarray(second), times)


def requests_a_day(books: list[DeliveryBook]) -> int:
    """Return how many fresh requests a user who sees ads makes on a day, rounded up."""
    users = sum(book.users for book in books)
    return math.ceil(sum(book.requests for book in books) / max(1, users)) or 1


def click_part(scenario: Scenario) -> tuple[Part, Guarantee, Guarantee] | None:
    """Return the daily report of clicks, what is claimed of it and what is proved."""
    if not isinstance(scenario.pipelines.get("clicks"), ClickBlock) or memoised_of(scenario):
        return None
    report = report_of(scenario)
    first, second = _worst_pair(report)
    return Part(report, first, second), report.claimed, report.guarantee(Neighbours.USER)
