"""Fake devices in training: they gain what the formula says, and crowds are found."""

import pytest

from ads_worlds import AdsRun, ads_world, run_ads_world
from noisefloor.ads.training.bit_training import BitTraining
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.ads.fraud import TrainingFraud, fake_device_count, target_cells

ROUNDS = 5
SHARE = 0.3


def attacked(forgery: str, *, variant: str = "corrected", method: str = "bits") -> AdsRun:
    """Let a world be attacked."""
    return run_ads_world(
        ads_world(
            {"epsilon": 4.0, "training": {"method": method, "rounds": ROUNDS}},
            threat={"fakes": SHARE, "pushed_ad": 2, "forgery": forgery},
            variant=variant,
            days=1,
        )
    )


def test_a_crowd_gains_exactly_what_the_formula_says() -> None:
    for variant in ("paper", "corrected"):
        simulated = attacked("maximal", variant=variant)
        assert simulated.value("fraud.bias") == pytest.approx(
            simulated.value("fraud.bias_formula")
        )
        assert simulated.value("fraud.bias") > 1


@pytest.mark.statistical
@pytest.mark.parametrize("forgery", ["evasive", "input"])
def test_other_forgers_gain_what_the_formula_says_up_to_sampling_error(forgery: str) -> None:
    # Some 600 fakes in each of five rounds; 5.2 standard errors are below FALSE_ALARM. The twin:
    # nothing gained (evasive), or as much as an evasive forger gains (input).
    simulated = attacked(forgery)
    bias, formula = simulated.metric("fraud.bias"), simulated.value("fraud.bias_formula")
    error = (bias.high - bias.low) / 2 / 1.96
    assert abs(bias.value - formula) < 5.2 * error
    twin = 0.0 if forgery == "evasive" else 2 * attacked("evasive").value("fraud.bias_formula")
    assert abs(bias.value - twin) > 5.2 * error


def test_lying_gains_less_than_evading_and_that_less_than_crowding() -> None:
    gains = [attacked(it).value("fraud.bias_formula") for it in ("input", "evasive", "maximal")]
    assert gains == sorted(gains)


def test_crowds_are_found_and_honest_rounds_are_not() -> None:
    for forgery in ("maximal", "evasive", "input"):
        simulated = attacked(forgery)
        assert simulated.value("fraud.false_alarms") < 0.03
        is_found = simulated.value("fraud.found") > 0.9
        assert is_found is (forgery == "maximal")


def test_a_pushed_ad_is_shown_more_often() -> None:
    honest = run_ads_world(
        ads_world({"epsilon": 4.0, "training": {"method": "bits", "rounds": 5}}, days=1)
    )
    crowd = attacked("maximal")
    assert crowd.value("training.fakes") == pytest.approx(
        SHARE / (1 - SHARE) * crowd.value("training.reports"), rel=0.01
    )
    ads = crowd.ads.training.model.offsets
    assert ads.argmax() == 2
    assert honest.ads.training.model.offsets[2] < ads[2]


@pytest.mark.parametrize("method", ["spectral", "spectral-lite", "laplace"])
def test_against_other_ways_fakes_lie(method: str) -> None:
    simulated = attacked("maximal", method=method)
    assert simulated.value("training.fakes") > 0
    assert not simulated.has("fraud.bias")


def test_a_round_without_fakes_or_without_anybody_is_left_out() -> None:
    scenario = attacked("maximal").scenario
    training = BitTraining(6, 3, 4.0, 2, clip=0.03)
    fraud = TrainingFraud(scenario, training)
    model = training.start().model
    fraud.open(model)
    fraud.count(training.bit.choose(0, SeededSource(1, "none")), None)
    fraud.open(model)
    assert fraud.metrics(SeededSource(1, "fraud")) == []
    assert fake_device_count(scenario, 0) == 0
    assert target_cells(training, 2) == [11]
    assert target_cells(BitTraining(6, 3, 4.0, 2, offsets=False), 2) == [6, 7, 8]
