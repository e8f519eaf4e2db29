"""Which way of training a scenario runs: its method, or means where the noise would exceed it."""

import numpy as np

from noisefloor.ads.training import (
    AdModel,
    AdTraining,
    BitTraining,
    GradientBound,
    LaplaceTraining,
    SpectralTraining,
    noise_over_signal,
    with_fallback,
)
from noisefloor.errors import BadParameter
from noisefloor_sim.pipelines.ads.block import TrainingBlock, block_of, scenario_key_errors
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.scenario import Scenario

SECTION = "pipelines.ads.training"

CENTRE, PRINTED_CENTRE = 0.5, 0.0
"""What ratings are taken from: the middle of their scale, and nothing in the paper."""

PRINTED_CLIP = 1.0
"""The bound of a gradient's coordinate in the paper."""

FEWEST_ADS, MOST_ADS = 3, 256
"""Of which a spectral training can tell the axes."""


def expected_users(scenario: Scenario) -> int:
    """Return how many users are expected to take part: a public figure."""
    there = 1 - block_of(scenario).training.drop_out
    return max(1, round(scenario.population.users * there))


def training_of(scenario: Scenario) -> AdTraining | None:
    """Return the training at this point: the method, or protected means where noise exceeds it."""
    method = method_of(scenario)
    if method is None or scenario.variant == "paper" or not block_of(scenario).training.fallback:
        return method
    return with_fallback(method, expected_users(scenario))


def method_of(scenario: Scenario) -> AdTraining | None:
    """Return the way of training as configured; nothing where ratings go in the open or nowhere.

    The paper's variant has the paper's two versions only: whatever else is asked for becomes
    bits as printed.

    Raises:
        BadParameter: The settings do not go together with the number of ads; names the key.
    """
    settings, ads = block_of(scenario), scenario.ad_behaviour.ads
    block, epsilon = settings.training, settings.training_epsilon
    if block.method in ("means", "untrained", "open"):
        return None
    is_paper = scenario.variant == "paper"
    with scenario_key_errors(SECTION, {"epsilon_bits": "epsilon", "epsilon_values": "epsilon"}):
        if block.method == "laplace":
            return _laplace(block, ads, epsilon, is_paper=is_paper)
        if block.method == "bits" or is_paper:
            return _bits(block, ads, epsilon, is_paper=is_paper)
    return _spectral(block, ads, epsilon)


def _spectral(block: TrainingBlock, ads: int, epsilon: float) -> SpectralTraining:
    if not FEWEST_ADS <= ads <= MOST_ADS:
        rule = f"only for {FEWEST_ADS} to {MOST_ADS} ads, and behaviour.ads is {ads}; try bits"
        raise BadParameter(f"{SECTION}.method", block.method, rule)
    if block.dimension >= ads:
        rule = f"below behaviour.ads, {ads}, for the method {block.method}"
        raise BadParameter(f"{SECTION}.dimension", block.dimension, rule)
    form = "lite" if block.method == "spectral-lite" else "full"
    with scenario_key_errors(SECTION, {}):
        return SpectralTraining(ads, block.dimension, epsilon, form=form, ridge=block.ridge)


def _bits(block: TrainingBlock, ads: int, epsilon: float, *, is_paper: bool) -> BitTraining:
    return BitTraining(
        ads,
        block.dimension,
        epsilon,
        block.rounds,
        clip=PRINTED_CLIP if is_paper else block.clip,
        rate=block.rate or None,
        local=block.local,
        taste_rate=block.taste_rate,
        once=block.once and not is_paper,
        offsets=not is_paper,
        centre=PRINTED_CENTRE if is_paper else CENTRE,
        ridge=block.ridge,
    )


def _laplace(block: TrainingBlock, ads: int, epsilon: float, *, is_paper: bool) -> LaplaceTraining:
    form = (
        GradientBound.PRINTED
        if is_paper
        else GradientBound.BLOCK
        if block.block_clip
        else GradientBound.COORDINATE
    )
    return LaplaceTraining(
        ads,
        block.dimension,
        block.rounds,
        epsilon_bits=epsilon / 2,
        epsilon_values=epsilon / 2,
        form=form,
        clip=block.clip,
        bounded=block.bounded,
        rate=block.rate or None,
        local=block.local,
        taste_rate=block.taste_rate,
        centre=PRINTED_CENTRE if is_paper else CENTRE,
        ridge=block.ridge,
    )


def plan_metrics(scenario: Scenario, training: AdTraining | None, model: AdModel) -> list[Metric]:
    """Tell the predicted noise over the signal, whether means were learned, factors in use."""
    method, users = method_of(scenario), expected_users(scenario)
    if method is None or training is None:
        return []
    used = int(np.count_nonzero(model.factors.any(axis=0)))
    return [
        Metric("training.noise_over_signal", noise_over_signal(method, users), n=users),
        Metric("training.fallback", float(training != method), n=users),
        Metric("training.factors_used", float(used), n=model.dimension),
    ]
