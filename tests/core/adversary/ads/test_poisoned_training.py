"""Poisoned training: three attackers, three gains, one estimator."""

import math

import numpy as np
import pytest

from noisefloor.adversary.ads.poisoning import (
    concentrated_messages,
    crowd_bias,
    input_gradient_bias,
    spread_bias,
    spread_messages,
)
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import SampledBit
from noisefloor.mechanisms.base import Reports
from noisefloor.randomness import SeededSource

HONEST, FAKES = 400_000, 40_000
PART = FAKES / (HONEST + FAKES)
TARGETS = [6, 7, 8]
DEVIATIONS = 6.0
"""A normal variable is farther out with probability 2e-9, below FALSE_ALARM."""


@pytest.fixture
def mechanism() -> SampledBit:
    return SampledBit(12, 1.0)


@pytest.mark.statistical
def test_each_attacker_gains_what_its_formula_says(mechanism: SampledBit, seed: int) -> None:
    # 400,000 honest, 40,000 fakes; 6 standard errors. The twins: the other attackers' gains.
    source = SeededSource(seed, "gradient")
    mean = 0.2
    chosen = mechanism.choose(HONEST, source.child("choose"))
    honest = mechanism.answer(chosen, np.full(HONEST, mean), source.child("bits"))
    lies = np.zeros((FAKES, 12))
    lies[:, TARGETS] = 1.0
    attacks: list[tuple[Reports, float]] = [
        (
            concentrated_messages(mechanism, TARGETS, FAKES),
            crowd_bias(mechanism, fakes=PART, honest=mean, coordinates=3),
        ),
        (
            spread_messages(mechanism, TARGETS, FAKES, source.child("spread")),
            spread_bias(mechanism, fakes=PART, honest=mean),
        ),
        (
            mechanism.randomise(lies, source.child("input")),
            input_gradient_bias(fakes=PART, honest=mean),
        ),
    ]
    gains = [bias for _, bias in attacks]
    assert gains == sorted(gains, reverse=True)
    for reports, bias in attacks:
        tally = mechanism.tally(honest) + mechanism.tally(reports)
        found = mechanism.estimate(tally, HONEST + FAKES)
        gap = np.abs(found.value[TARGETS] - mean - bias) / found.standard_error[TARGETS]
        assert gap.max() < DEVIATIONS
        for other in gains:
            if other != bias:
                off = np.abs(found.value[TARGETS] - mean - other) / found.standard_error[TARGETS]
                assert off.min() > 3.0


def test_gains_follow_epsilon_and_the_number_of_coordinates(mechanism: SampledBit) -> None:
    size = 1 / math.tanh(0.5)
    assert spread_bias(mechanism, fakes=0.1) == pytest.approx(0.1 * size)
    assert crowd_bias(mechanism, fakes=0.1) == pytest.approx(0.1 * 12 * size)
    assert input_gradient_bias(fakes=0.1, honest=0.5) == pytest.approx(0.05)
    weak, strong = SampledBit(12, 0.1), SampledBit(12, 8.0)
    assert spread_bias(weak, fakes=0.1) > 15 * spread_bias(strong, fakes=0.1)


def test_crowds_take_turns_and_name_one_bit(mechanism: SampledBit) -> None:
    reports = concentrated_messages(mechanism, TARGETS, 30)
    assert np.array_equal(np.bincount(reports // 2, minlength=12)[TARGETS], [10, 10, 10])
    assert (reports % 2 == 1).all()
    assert (concentrated_messages(mechanism, TARGETS, 30, is_upwards=False) % 2 == 0).all()
    assert reports.dtype == mechanism.choose(1, SeededSource(1, "type")).dtype
    with pytest.raises(BadParameter, match="coordinates"):
        concentrated_messages(mechanism, [], 3)
    with pytest.raises(OutOfDomain):
        concentrated_messages(mechanism, [12], 3)
