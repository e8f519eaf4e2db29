"""A plan proves what dp-accounting proves, of the parameters that are used."""

import subprocess
import sys

import pytest

from noisefloor.accounting.accountant import SampledGaussian
from noisefloor.errors import BadParameter, IncompatibleGuarantees
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.private_sgd import Automatic, Flat, PerGroup, SgdPlan

ADD, SWAP = Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE
SMALL = {"examples": 10_000, "expected_batch": 100.0, "steps": 500}


def requested(epsilon: float, neighbours: Neighbours = ADD) -> Guarantee:
    return Guarantee(epsilon, neighbours, delta=1e-5, model=TrustModel.CENTRAL)


def library_epsilon(noise: float, rate: float, steps: int, neighbours: Neighbours) -> float:
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    relations = dp_accounting.NeighboringRelation
    relation = relations.ADD_OR_REMOVE_ONE if neighbours is ADD else relations.REPLACE_ONE
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
    return float(PLDAccountant(relation).compose(event, steps).get_epsilon(1e-5))


@pytest.mark.parametrize("neighbours", [ADD, SWAP])
def test_a_plan_proves_what_the_library_proves(neighbours: Neighbours) -> None:
    plan = SgdPlan(
        examples=10_000, expected_batch=100, steps=500, noise_multiplier=1.1, neighbours=neighbours
    )
    proved = plan.guarantee(1e-5)
    assert proved.neighbours is neighbours
    assert proved.epsilon == pytest.approx(library_epsilon(1.1, 0.01, 500, neighbours), rel=0.01)


@pytest.mark.parametrize("neighbours", [ADD, SWAP])
def test_a_budget_is_kept_and_used_up(neighbours: Neighbours) -> None:
    guarantee = requested(1.0, neighbours)
    plan = SgdPlan.for_budget(guarantee, examples=100, expected_batch=20, steps=10)
    assert 0.99 < plan.guarantee(1e-5).epsilon <= 1.0
    assert plan.neighbours is neighbours


def test_an_accountant_records_every_step() -> None:
    plan = SgdPlan(examples=8, expected_batch=2, steps=7, noise_multiplier=1.5)
    assert plan.events == (SampledGaussian(1.5, 0.25, 7),)


def test_substitution_takes_about_twice_the_noise() -> None:
    one, two = (
        SgdPlan.for_budget(requested(1.0, relation), examples=1000, expected_batch=1000, steps=50)
        for relation in (ADD, SWAP)
    )
    assert two.noise_multiplier == pytest.approx(2 * one.noise_multiplier, rel=1e-3)
    assert one.is_full_batch


def test_epochs_are_steps() -> None:
    plan = SgdPlan.for_budget(requested(2.0), examples=1000, expected_batch=1000, epochs=30)
    assert plan.steps == 30


def test_the_rate_is_the_one_that_is_drawn_by() -> None:
    plan = SgdPlan(examples=3, expected_batch=1, steps=1, noise_multiplier=1.0)
    assert plan.sampling_rate == plan.threshold / 2**64 == 1 / 3
    full = SgdPlan(examples=3, expected_batch=3, steps=1, noise_multiplier=1.0)
    assert full.threshold == 1 << 64


def test_sensitivities() -> None:
    assert Flat(2.5).sensitivity == 2.5
    assert Automatic(0.7, 0.1).sensitivity == 0.7
    groups = PerGroup.of({"body": 3.0, "head": 4.0})
    assert groups.sensitivity == pytest.approx(5.0)
    plan = SgdPlan(**SMALL, noise_multiplier=2.0, clipping=groups)  # type: ignore[arg-type]
    assert 10.0 < plan.noise_scale < 10.01  # with room for the rounding of sums


def test_a_group_is_named_once() -> None:
    """Of two bounds for one name only the first would be kept to, and both be paid for."""
    with pytest.raises(BadParameter, match="to name each group once"):
        PerGroup((("body", 1.0), ("", 2.0), ("body", 3.0)))
    with pytest.raises(BadParameter, match="at least one group"):
        PerGroup(())


def test_a_layer_is_in_the_group_of_the_longest_name() -> None:
    groups = PerGroup.of({"": 1.0, "encoder": 2.0, "encoder.0": 3.0})
    assert [
        groups.group_of(name) for name in ("head", "encoders", "encoder.1", "encoder.0.a")
    ] == [*(0, 0, 1, 2)]
    with pytest.raises(BadParameter, match="to have one for 'head'"):
        PerGroup.of({"body": 1.0}).group_of("head")


@pytest.mark.parametrize(
    "clipping", [Flat(0.5), Automatic(1.0, 0.02), PerGroup.of({"": 1.0, "x": 2.0})]
)
def test_a_plan_is_read_as_it_was_written(clipping: Flat | Automatic | PerGroup) -> None:
    import json

    plan = SgdPlan(
        examples=7,
        expected_batch=2,
        steps=3,
        noise_multiplier=1.5,
        clipping=clipping,
        neighbours=SWAP,
        averaging=0.5,
    )
    assert SgdPlan.from_json(json.loads(json.dumps(plan.as_json()))) == plan


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"examples": 0}, "examples"),
        ({"expected_batch": 20_000}, "expected_batch"),
        ({"expected_batch": 0}, "expected_batch"),
        ({"steps": 0}, "steps"),
        ({"noise_multiplier": 0.0}, "noise_multiplier"),
        ({"noise_multiplier": float("nan")}, "noise_multiplier"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"momentum": 1.0}, "momentum"),
        ({"averaging": 2.0}, "averaging"),
        ({"weight_decay": -0.1}, "weight_decay"),
        ({"optimiser": "lion"}, "optimiser"),
        ({"neighbours": Neighbours.USER}, "neighbours"),
    ],
)
def test_bad_plans_are_refused(change: dict[str, object], rule: str) -> None:
    with pytest.raises(BadParameter, match=rule):
        SgdPlan(**{**SMALL, "noise_multiplier": 1.0, **change})  # type: ignore[arg-type]


@pytest.mark.parametrize("bound", [0.0, -1.0, float("inf"), float("nan"), 1e-30])
def test_bad_bounds_are_refused(bound: float) -> None:
    for make in (Flat, Automatic, lambda value: PerGroup((("", value),))):
        with pytest.raises(BadParameter):
            make(bound)


def test_a_budget_in_the_local_model_is_refused() -> None:
    with pytest.raises(IncompatibleGuarantees):
        SgdPlan.for_budget(Guarantee(1.0, ADD, delta=1e-5), examples=9, expected_batch=3, steps=1)
    with pytest.raises(BadParameter, match="epochs"):
        SgdPlan.for_budget(requested(1.0), examples=9, expected_batch=3)


def test_plans_need_no_torch() -> None:
    code = (
        "import sys; from noisefloor.publication.private_sgd import SgdPlan, Flat; "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
