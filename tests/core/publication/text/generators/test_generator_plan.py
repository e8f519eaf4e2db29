"""What plans prove: of one model, of one for each label, and of what the paper prints."""

import math
from dataclasses import replace

import pytest

from generator_cases import SHAPES, a_plan
from noisefloor.accounting import SampledGaussian, epsilon_at
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.text.generators import PRIVATE_PARTS, GeneratorPlan, GeneratorShape

ADD, SWAP = Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE
SHAPE, BOTH = SHAPES["encoder-decoder"], SHAPES["language model for both labels"]


def test_under_add_remove_the_worst_label_counts_and_under_substitution_both() -> None:
    plan = a_plan(SHAPE, examples=(12, 40))
    each = [one.guarantee(1e-5).epsilon for one in plan.trainings]
    assert each[0] > each[1]
    assert plan.guarantee.epsilon == each[0]
    swapped = a_plan(SHAPE, examples=(12, 40), neighbours=SWAP)
    alone = [one.guarantee(1e-5).epsilon for one in swapped.trainings]
    assert max(alone) < swapped.guarantee.epsilon < sum(alone)
    events = [event for one in swapped.trainings for event in one.events]
    assert swapped.guarantee.epsilon == epsilon_at(events, 1e-5, neighbours=SWAP).epsilon


@pytest.mark.parametrize("neighbours", [ADD, SWAP])
def test_the_loss_for_a_ledger_is_no_less_than_the_guarantee(neighbours: Neighbours) -> None:
    plan = a_plan(SHAPE, examples=(12, 40), neighbours=neighbours)
    spent = epsilon_at(plan.loss.events, 1e-5, neighbours=neighbours)
    assert plan.guarantee.epsilon <= spent.epsilon
    assert len(plan.loss.events) == (2 if neighbours is SWAP else 1)
    one = a_plan(BOTH, neighbours=neighbours)
    assert one.loss.events == one.trainings[0].events


@pytest.mark.parametrize(("shape", "neighbours"), [(SHAPE, SWAP), (BOTH, ADD)])
def test_a_plan_for_a_budget_keeps_to_it(shape: GeneratorShape, neighbours: Neighbours) -> None:
    cost = Guarantee(4.0, neighbours, delta=1e-5, model=TrustModel.CENTRAL)
    plan = GeneratorPlan.for_budget(cost, shape, [60, 60], expected_batch=20, epochs=1)
    assert 2.0 < plan.guarantee.epsilon <= 4.0
    assert plan.guarantee.neighbours is neighbours
    assert plan.claimed == plan.guarantee
    assert [one.examples for one in plan.trainings] == ([120] if shape.classes else [60, 60])


def printed(noise_multiplier: float = 1.1, batch: float = 20) -> GeneratorPlan:
    return GeneratorPlan.as_printed(
        SHAPE,
        [60, 60],
        noise_multiplier=noise_multiplier,
        expected_batch=batch,
        epochs=2,
        delta=1e-5,
    )


def test_noise_outside_of_the_mean_is_l_times_as_much() -> None:
    plan = printed()
    for one in plan.trainings:
        # The sum that is divided by L has noise of sigma L C.
        assert one.noise_multiplier == pytest.approx(1.1 * 20)
        assert one.noise_scale == pytest.approx(1.1 * 20, rel=1e-4)
        assert one.optimiser == "adam-printed"
    outside = epsilon_at([SampledGaussian(22.0, 20 / 60, 6)], 1e-5)
    inside = epsilon_at([SampledGaussian(1.1, 20 / 60, 6)], 1e-5)
    assert plan.parts["weights"].epsilon == pytest.approx(outside.epsilon, rel=1e-6)
    assert plan.claimed.epsilon == pytest.approx(inside.epsilon, rel=1e-6)
    assert plan.parts["weights"].epsilon < plan.claimed.epsilon / 10


def test_the_figures_of_the_audit() -> None:
    """256 of 12,500 for 500 epochs at sigma 1.1: 22.92 inside by Renyi divergences, 0.036 out."""
    inside = SampledGaussian(1.1, 256 / 12500, 500 * 49)
    outside = SampledGaussian(1.1 * 256, 256 / 12500, 500 * 49)
    assert epsilon_at([inside], 1e-5, "rdp").epsilon == pytest.approx(22.92, abs=0.2)
    assert epsilon_at([outside], 1e-5, "rdp").epsilon == pytest.approx(0.036, abs=0.004)


def test_of_the_printed_release_nothing_is_proved_and_the_reasons_are_said() -> None:
    plan = printed()
    assert math.isinf(plan.guarantee.epsilon)
    assert set(plan.parts) == {"weights", *PRIVATE_PARTS}
    for reason in PRIVATE_PARTS.values():
        assert reason in plan.guarantee.reason
    assert a_plan(SHAPE).parts.keys() == {"weights"}
    assert plan.as_json()["variant"] == "paper"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"delta": 1.5}, "delta"),
        ({"variant": "better"}, "variant"),
        ({"dropout": 1.0}, "dropout"),
        ({"trainings": ()}, "trainings"),
        ({"shape": BOTH}, "trainings"),
    ],
)
def test_plans_that_make_no_sense_are_refused(change: dict[str, object], match: str) -> None:
    with pytest.raises(BadParameter, match=match):
        replace(a_plan(SHAPE), **change)  # type: ignore[arg-type] # wrong on purpose


def test_models_that_are_too_large_to_publish_are_refused() -> None:
    large = replace(SHAPE, vocabulary=200_000, embedding=512, hidden=512)
    with pytest.raises(BadParameter, match="64 MiB"):
        a_plan(large)


def test_trainings_are_under_one_relation() -> None:
    first, second = a_plan(SHAPE).trainings
    with pytest.raises(BadParameter, match="one relation"):
        replace(a_plan(SHAPE), trainings=(first, replace(second, neighbours=SWAP)))
