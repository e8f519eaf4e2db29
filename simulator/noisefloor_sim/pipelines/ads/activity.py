"""What no epsilon speaks of: how busy people are, from when and how often devices ask."""

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.ads.side_channel import attack_activity
from noisefloor.adversary.observations import success_of
from noisefloor.adversary.outcome import Outcome, score
from noisefloor.checks import Floats
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.base import Stage
from noisefloor_sim.scenario.model import Scenario


def play_activity(
    scenario: Scenario, stage: Stage, source: SeededSource, *, is_daily: bool
) -> Outcome:
    """Tell a busy person from a quiet one: the quartiles of activity, a fair coin each.

    Devices that ask for every impression show how many pages were looked at in each hour. Those
    that ask once a day show the hour of the first page, or that there was none.
    """
    rates = _rates(stage)
    draw = source.generator()
    truth = draw.integers(0, 2, block_of(scenario).canaries)
    views = draw.poisson(rates[truth])
    return guess_first(views, truth, rates) if is_daily else attack_activity(views, truth, rates)


def _rates(stage: Stage) -> Floats:
    """Return the expected pages in each hour of a quiet and of a busy person."""
    quiet, busy = np.quantile(stage.cohort(0).engagement, [0.25, 0.75])
    clock = np.bincount(stage.world.clock, minlength=24) / len(stage.world.clock)
    return np.asarray(np.maximum(np.outer([quiet, busy], clock), 1e-6))


def first_law(rates: Floats) -> Floats:
    """Return the chance of each hour to have the first page of the day, and last of no page."""
    before = np.cumsum(rates, axis=1) - rates
    first = np.exp(-before) * -np.expm1(-rates)
    return np.concatenate([first, np.exp(-rates.sum(axis=1, keepdims=True))], axis=1)


def guess_first(views: NDArray[np.int64], truth: NDArray[np.int64], rates: Floats) -> Outcome:
    """Name the class of each device by the hour in which it asked first.

    Sees:      the hour of the one request of each device's day, or that there was none.
    Knows:     the mean number of pages per hour of each class; both are as likely.
    Guesses:   the class. Outside the guarantee: epsilon says nothing of it.
    Reference: Bayes, with independent Poisson counts.
    """
    law = first_law(rates)
    seen = np.where(views.any(axis=1), (views > 0).argmax(axis=1), views.shape[1])
    guessed = law.argmax(axis=0)[seen]
    return score(
        guessed,
        truth,
        baseline=1 / len(rates),
        bound=1.0,
        closed_form=success_of(law),
        is_covered=False,
    )
