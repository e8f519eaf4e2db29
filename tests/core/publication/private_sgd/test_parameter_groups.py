"""Groups: scales and rates, rules of clipping, and what is proved of each."""

import json
import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.noised_vectors import NoisedVector
from noisefloor.publication.private_sgd import (
    Clipping,
    EachAtFullBound,
    Flat,
    ParameterGroup,
    PerGroup,
    SgdPlan,
    SplitBound,
    cross_entropy,
    train,
)
from noisefloor.publication.private_sgd import plan as plans
from noisefloor.publication.private_sgd.bookkeeping import BookKeeping
from noisefloor.publication.private_sgd.coordinates import GradientLayout
from noisefloor.publication.private_sgd.parameter_groups import find_group
from noisefloor.publication.private_sgd.parameters import FlatParameters
from noisefloor.publication.private_sgd.per_example import PerExample
from noisefloor.randomness import SeededSource, new_run
from private_sgd_cases import CASES, PLAN, gradients_one_by_one, made, weights

FACTORS = ("0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias")
SCALES = (ParameterGroup("", 0.5), ParameterGroup("*.bias", 0.02), ParameterGroup("4", 3.0))
PLAIN = replace(PLAN, optimiser="sgd", momentum=0.0, learning_rate=1.0, averaging=0.0, steps=1)
CLOSE = 1e-5


def scaled_rows(rows: dict[str, Tensor], plan: SgdPlan) -> dict[str, Tensor]:
    return {name: one / plan.group_of(name).scale for name, one in rows.items()}


def by_definition(rows: dict[str, Tensor], clipping: Clipping) -> Tensor:
    """Clip each group's joint norm and add up, from the rows of each parameter."""
    sums = []
    for name, own in rows.items():
        group = clipping.group_of(name)
        together = [one for other, one in rows.items() if clipping.group_of(other) == group]
        norms = torch.cat(together, 1).norm(dim=1)
        sums.append((clipping.bounds[group] / norms).clamp(max=1.0) @ own)
    return torch.cat(sums)


@pytest.mark.parametrize("road", [BookKeeping, PerExample])
@pytest.mark.parametrize(
    "clipping",
    [
        Flat(0.3),
        SplitBound(0.3, FACTORS),
        EachAtFullBound(0.1, FACTORS),
        PerGroup.of({"": 0.1, "*.bias": 0.2, "4.weight": 0.3}),
    ],
    ids=lambda one: type(one).__name__,
)
def test_scaled_gradients_are_clipped_by_the_definition(
    clipping: Clipping, road: type[BookKeeping] | type[PerExample]
) -> None:
    """Weights and biases of one layer may be in other groups, of other scales."""
    plan = replace(PLAN, clipping=clipping, groups=SCALES)
    module, inputs, targets = made(CASES["mlp"], "scales")
    rows = scaled_rows(gradients_one_by_one(module, inputs, targets, cross_entropy), plan)
    flat = FlatParameters(module)
    layout = GradientLayout(flat.named, clipping, scale_of=lambda name: plan.group_of(name).scale)
    sums = torch.zeros(layout.size)
    with road(module, flat, sums, loss=cross_entropy, clipping=clipping, layout=layout) as adding:
        adding.clip((inputs,), targets).add()
    assert torch.allclose(sums.double(), by_definition(rows, clipping), atol=CLOSE)
    # The same without scales is another sum: the test sees them, where a group has several.
    plain = gradients_one_by_one(module, inputs, targets, cross_entropy)
    far = (sums.double() - by_definition(plain, clipping)).abs().max() > 100 * CLOSE
    assert bool(far) or isinstance(clipping, SplitBound | EachAtFullBound)


def moves(plan: SgdPlan) -> dict[str, Tensor]:
    """Return what one training moved, with the same draws every time."""
    with new_run():
        module, inputs, targets = made(CASES["mlp"], "moves")
        before = {name: one.detach().clone() for name, one in module.named_parameters()}
        train(module, inputs, targets, plan, SeededSource(1, "moves"))
    return {name: one.detach() - before[name] for name, one in module.named_parameters()}


def test_a_scale_multiplies_the_noise_of_its_group_alone() -> None:
    """Without gradients (a batch of next to nobody) what moves is noise, times the scale."""
    quiet = replace(PLAIN, expected_batch=1e-9)
    plain = moves(quiet)
    scaled = moves(replace(quiet, groups=SCALES))
    for name, one in scaled.items():
        expected = plain[name] * replace(quiet, groups=SCALES).group_of(name).scale
        assert torch.allclose(one, expected, rtol=1e-3)


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_a_rate_multiplies_the_moves_of_its_group_alone(optimiser: str) -> None:
    plain = replace(PLAN, steps=1, averaging=0.0, optimiser=optimiser)  # type: ignore[arg-type]
    groups = (ParameterGroup("2", rate=10.0), ParameterGroup("*.bias", rate=0.5))
    once, rated = moves(plain), moves(replace(plain, groups=groups))
    for name, factor in {"0.weight": 1.0, "2.weight": 10.0, "2.bias": 0.5}.items():
        assert torch.allclose(rated[name], factor * once[name], rtol=1e-3, atol=1e-6)


def test_an_observer_sees_scaled_sums_whose_parts_keep_to_the_bound() -> None:
    seen: list[NoisedVector] = []
    plan = replace(PLAN, groups=SCALES, clipping=Flat(0.2), expected_batch=7)
    module, inputs, targets = made(CASES["mlp"], "observed")
    train(module, inputs, targets, plan, SeededSource(1, "observed"), residuals=seen.append)
    assert len(seen) == plan.steps
    assert all(0.19 < (one.longest or 0.0) <= 0.2 for one in seen)


# What is proved of each rule.


def one_example_reaches(clipping: Clipping) -> float:
    """Return the norm of the clipped sum of one example with a large gradient everywhere."""
    with new_run():
        module, inputs, targets = made(CASES["mlp"], "reach")
    flat = FlatParameters(module)
    sums = torch.zeros_like(flat.vector)

    def steep(outputs: Tensor, labels: Tensor) -> Tensor:
        return 1e6 * cross_entropy(outputs, labels)

    with BookKeeping(module, flat, sums, loss=steep, clipping=clipping) as adding:
        adding.clip((inputs[:1],), targets[:1]).add()
    return float(sums.double().norm())


def test_one_example_reaches_the_sensitivity_of_each_rule_and_no_more() -> None:
    expected: dict[Clipping, float] = {
        Flat(0.5): 0.5,
        SplitBound(0.5, FACTORS): 0.5,
        EachAtFullBound(0.5, FACTORS): 0.5 * math.sqrt(6),
        PerGroup.of({"": 0.3, "*.bias": 0.4}): 0.5,
    }
    for clipping, sensitivity in expected.items():
        assert clipping.sensitivity == pytest.approx(sensitivity)
        reached = one_example_reaches(clipping)
        assert reached <= clipping.sensitivity
        assert reached == pytest.approx(sensitivity, rel=1e-4)


def test_clipping_as_printed_is_claimed_as_one_bound_and_proved_by_the_root_of_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plans, "noise_multiplier_for", lambda *_, **__: 4.0)  # saves a search
    claim = Guarantee(1.0, Neighbours.RECORD_ADD_REMOVE, delta=1e-5, model=TrustModel.CENTRAL)
    sizes = {"examples": 100, "expected_batch": 20, "steps": 10}
    clipping = EachAtFullBound(10.0, ("a", "b", "c", "d"))
    printed = SgdPlan.for_claim(claim, **sizes, clipping=clipping)
    joint = replace(printed, clipping=Flat(10.0))
    assert printed.noise_scale == joint.noise_scale  # noise for one bound alone
    assert printed.claimed(1e-5) == joint.guarantee(1e-5) == joint.claimed(1e-5)
    assert printed.sensitivity == 20.0
    assert printed.guarantee(1e-5) == joint.with_noise(2.0).guarantee(1e-5)
    assert printed.guarantee(1e-5).epsilon > 1.5 * printed.claimed(1e-5).epsilon
    for rule in (clipping, Flat(10.0), SplitBound(10.0, ("a", "b"))):
        kept = SgdPlan.for_budget(claim, **sizes, clipping=rule)
        assert kept.proved_multiplier == 4.0


@pytest.mark.parametrize(("epsilon", "sigma"), [(1, 3.27), (2, 1.87), (4, 1.18), (8, 0.845)])
def test_noise_by_renyi_accounting_is_that_of_the_literature_and_pld_proves_more(
    epsilon: float, sigma: float
) -> None:
    """SST-2: batches of 2,000 out of 67,349, 20 epochs, delta 1e-5."""
    from noisefloor.accounting import noise_multiplier_for

    rate = 2_000 / 67_349
    found = noise_multiplier_for(epsilon, 1e-5, rate, 673, method="rdp")
    assert found == pytest.approx(sigma, rel=0.01)
    plan = SgdPlan(examples=67_349, expected_batch=2_000, steps=673, noise_multiplier=found)
    assert 0.8 * epsilon < plan.guarantee(1e-5).epsilon < epsilon


def test_two_groups_of_one_layer_are_proved_as_printed_beside_them() -> None:
    """One layer's two factors: 1.5, 3.3, 8.2 and 19 for claims of 1, 2, 4 and 8, by Renyi."""
    from noisefloor.accounting import SampledGaussian, epsilon_at

    clipping = EachAtFullBound(10.0, ("left", "right"))
    for sigma, expected in {3.27: 1.5, 1.87: 3.3, 1.18: 8.2, 0.845: 19.0}.items():
        plan = SgdPlan(
            examples=67_349,
            expected_batch=2_000,
            steps=673,
            noise_multiplier=sigma,
            clipping=clipping,
        )
        (event,) = plan.events
        assert isinstance(event, SampledGaussian)
        assert epsilon_at((event,), 1e-5, "rdp").epsilon == pytest.approx(expected, rel=0.04)


# Names, and what is refused.


def test_groups_are_found_by_the_start_or_the_end_of_names() -> None:
    names = ["", "encoder", "*.bias", "encoder.0.left"]
    found = {
        one: find_group(one, names)
        for one in ("head.weight", "encoder.1.weight", "encoder.1.bias", "bias", "encoders.x")
    }
    assert found == {
        "head.weight": 0,
        "encoder.1.weight": 1,
        "encoder.1.bias": 1,
        "bias": 2,
        "encoders.x": 0,
    }
    assert find_group("head.bias", ["head.bias", "*.bias"]) == 0
    assert find_group("encoder.0.left", names) == 3
    assert find_group("head", ["encoder"]) is None


def test_a_plan_with_groups_and_carriers_is_read_as_it_was_written() -> None:
    plan = replace(
        PLAN,
        clipping=EachAtFullBound(2.0, FACTORS),
        groups=SCALES,
        carriers=(("0", 2), ("4.weight", 1)),
    )
    assert SgdPlan.from_json(json.loads(json.dumps(plan.as_json()))) == plan
    split = replace(plan, clipping=SplitBound(2.0, FACTORS))
    assert SgdPlan.from_json(json.loads(json.dumps(split.as_json()))) == split


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-9, 1e9, float("nan")])
def test_bad_scales_and_rates_are_refused(value: float) -> None:
    with pytest.raises(BadParameter, match="scale"):
        ParameterGroup("", scale=value)
    with pytest.raises(BadParameter, match="rate"):
        ParameterGroup("", rate=value)


def test_bad_groups_are_refused() -> None:
    with pytest.raises(BadParameter, match="name each group once"):
        replace(PLAN, groups=(ParameterGroup("a"), ParameterGroup("a", 2.0)))
    with pytest.raises(BadParameter, match="carriers"):
        replace(PLAN, carriers=(("a", 0),))
    for kind in (SplitBound, EachAtFullBound):
        with pytest.raises(BadParameter, match="at least one group"):
            kind(1.0, ())
        with pytest.raises(BadParameter, match="name each group once"):
            kind(1.0, ("a", "a"))
        with pytest.raises(BadParameter, match="bound"):
            kind(0.0, ("a",))
    module, inputs, targets = made(CASES["mlp"], "unnamed")
    with pytest.raises(BadParameter, match=r"to have one for '2\.weight'"):
        train(
            module,
            inputs,
            targets,
            replace(PLAN, clipping=SplitBound(1.0, ("0", "4"))),
            SeededSource(1, "unnamed"),
        )
    assert isinstance(module, nn.Module) and weights(module).isfinite().all()
