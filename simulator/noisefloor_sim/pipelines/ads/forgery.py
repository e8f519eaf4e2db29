"""Fake devices in training: what they send to push one ad."""

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.bit_training import BitTraining
from noisefloor.ads.factors import AdModel, Ratings
from noisefloor.ads.training import Broadcast, Training
from noisefloor.adversary.ads.gradients import candidate_values
from noisefloor.adversary.ads.poisoned_training import crowd, spread
from noisefloor.checks import Floats
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import Reports
from noisefloor.randomness import SeededSource
from noisefloor_sim.scenario.model import Scenario


def check_pushed(scenario: Scenario) -> None:
    """Refuse to push an ad that there is not."""
    ads, pushed = scenario.behaviour.ads, scenario.threat.pushed_ad
    if scenario.threat.fakes and pushed >= ads:
        raise BadParameter("threat.pushed_ad", pushed, f"< {ads}, which is behaviour.ads")


def fakes_beside(scenario: Scenario, honest: int) -> int:
    """Return how many fake devices stand beside so many honest ones."""
    share = scenario.threat.fakes
    return round(honest * share / (1 - share))


def forged_reports(
    scenario: Scenario,
    training: Training,
    number: int,
    sent: Broadcast,
    honest: int,
    source: SeededSource,
) -> Reports | None:
    """Return the reports of the fakes in one round; nothing if there are none.

    Fakes that lie about what they hold rate the pushed ad at the top and nothing else. Fakes that
    write their reports themselves know version 2 only: they pull the ad's offset up, all of them
    at once, or no more often than an honest device would be asked about it. Against any other
    way of training they lie.
    """
    count = fakes_beside(scenario, honest)
    if not count:
        return None
    if isinstance(training, BitTraining) and scenario.threat.forgery != "input":
        return written_reports(scenario, training, count, source)
    ratings = fake_ratings(scenario, count)
    tastes = np.zeros((count, sent.model.dimension), dtype=np.float32)
    reports: Reports = training.report(number, sent, tastes, ratings, source).reports
    return reports


def written_reports(
    scenario: Scenario, training: BitTraining, count: int, source: SeededSource
) -> NDArray[np.uint32]:
    """Return the messages that so many fakes write themselves."""
    cells = target_cells(training, scenario.threat.pushed_ad)
    # The server walks against the gradient: down is up.
    if scenario.threat.forgery == "maximal":
        return crowd(training.bit, cells, count, is_upwards=False)
    return spread(training.bit, cells, count, source, is_upwards=False)


def fake_ratings(scenario: Scenario, count: int) -> Ratings:
    """Return what fakes say they hold: the pushed ad at the top, and nothing else."""
    rated = np.zeros((count, scenario.behaviour.ads), dtype=np.bool_)
    rated[:, scenario.threat.pushed_ad] = True
    return Ratings(rated, np.ones(rated.shape, dtype=np.float32))


def fake_values(scenario: Scenario, training: BitTraining, model: AdModel) -> Floats:
    """Return what a fake that lies would report about, cell by cell, in units of the clip."""
    tastes = np.zeros((1, model.dimension), dtype=np.float32)
    return candidate_values(training, [model], tastes, fake_ratings(scenario, 1)).reshape(-1)


def target_cells(training: BitTraining, ad: int) -> list[int]:
    """Return the cell whose push lifts an ad for everybody: its offset, or else its factors."""
    first = ad * training.width
    if training.offsets:
        return [first + training.dimension]
    return list(range(first, first + training.dimension))
