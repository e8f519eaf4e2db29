"""Plans of methods: sizes, groups, guarantees and refusals, from public settings alone."""

import math
from dataclasses import replace
from typing import Any

import pytest

from batches import batched
from noisefloor.accounting import SampledGaussian, epsilon_at
from noisefloor.adversary.models import audit_canary
from noisefloor.errors import BadParameter, IncompatibleGuarantees
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.fine_tuning.methods import (
    METHODS,
    EncoderShapes,
    FineTuningPlan,
    HeadThenAdaptersPlan,
    MethodSettings,
)
from noisefloor.publication.methods import GradientCanary
from noisefloor.publication.private_sgd import Flat, PerGroup

COST = Guarantee(2.0, Neighbours.RECORD_ADD_REMOVE, delta=1e-5, model=TrustModel.CENTRAL)
MINILM = EncoderShapes.bert(6, 384, 1536)
SMALL = EncoderShapes.bert(2, 8, 12)
STEPS = MethodSettings(steps=60, batch=512)


def planned(
    name: str, shapes: EncoderShapes = MINILM, noise: float = 2.0, **changes: Any
) -> FineTuningPlan:
    settings = replace(STEPS, **changes)
    return FineTuningPlan.of(name, shapes, COST, 6_824, settings, noise_multiplier=noise)


def test_sizes_are_those_of_the_paper() -> None:
    """k (m + n)(1 - p) of a matrix, and the head."""
    sides = sum(rows + columns for _, (rows, columns) in MINILM.matrices)
    entries = sum(rows * columns for _, (rows, columns) in MINILM.matrices)
    head = 2 * 384 + 2
    assert planned("lora").updated == planned("rgp").updated == 8 * sides + head
    assert planned("rgp").parameters == entries + head
    assert planned("full").parameters == 6 * 1_774_464 + head  # MiniLM's layers have as many
    half = planned("combined-rgp", sparsity=0.5)
    assert half.updated == planned("combined-lora", sparsity=0.5).updated == 4 * sides + head
    assert planned("ffa-lora").updated == 8 * sum(rows for _, (rows, _) in MINILM.matrices) + head
    sparse = planned("sparse", sparsity=0.5)
    assert sparse.parameters - sparse.updated == entries // 2
    assert planned("head").parameters == head
    assert planned("lora").release_size < 2 << 20 < planned("full").release_size


def test_factors_are_clipped_apart_and_the_head_with_them() -> None:
    assert len(planned("lora").clip_groups) == 72 + 1
    assert len(planned("rgp").clip_groups) == 72 + 1
    assert len(planned("full").clip_groups) == 6 + 1
    assert planned("lora").private.clipping == Flat(1.0)
    plan = planned("lora", clipping="groups", clip=0.5, group_clips=(("head", 2.0),))
    assert isinstance(plan.private.clipping, PerGroup)
    assert plan.private.sensitivity == pytest.approx(math.sqrt(72 * 0.25 + 4))
    equal = planned("lora", clipping="equal", clip=3.0)
    assert equal.private.sensitivity == 3.0
    assert equal.private.clipping.bounds == (3.0 / math.sqrt(73),) * 73


def test_matrices_that_get_factors_can_be_named() -> None:
    ends = SMALL.only("intermediate.dense", "attention.output.dense")
    assert [name for name, _ in ends.matrices] == [
        f"layers.{place}.{end}.weight"
        for place in range(2)
        for end in ("attention.output.dense", "intermediate.dense")
    ]
    assert planned("ffa-lora", ends).updated == 8 * 2 * (8 + 12) + 2 * 8 + 2
    assert planned("ffa-lora", ends).clip_groups[-1] == "head"
    with pytest.raises(BadParameter, match="each that of the name of a linear layer"):
        SMALL.only("output.dense", "pooler.dense")


def test_clipping_as_printed_proves_what_a_smaller_multiplier_proves() -> None:
    printed, joint = planned("lora", clipping="printed"), planned("lora")
    assert printed.private.proved_multiplier == pytest.approx(2 / math.sqrt(73))
    assert printed.loss.events == (
        SampledGaussian(2 / math.sqrt(73), printed.private.sampling_rate, 60),
    )
    assert printed.claimed == joint.proved == joint.claimed
    assert printed.proved.epsilon > 10 * printed.claimed.epsilon
    assert printed.is_experiment
    assert not joint.is_experiment


def test_a_search_for_noise_keeps_to_the_cost() -> None:
    found = FineTuningPlan.of("lora", SMALL, COST, 50, MethodSettings(steps=4))
    assert 1.999 < found.proved.epsilon <= 2.0
    as_printed = MethodSettings(steps=4, clipping="printed")
    printed = FineTuningPlan.of("lora", SMALL, COST, 50, as_printed)
    assert 1.999 < printed.claimed.epsilon <= 2.0
    assert printed.private.noise_multiplier == found.private.noise_multiplier


@pytest.mark.parametrize("method", ["plain", "lora"])
def test_without_privacy_nothing_is_proved_and_nothing_can_be_charged(method: str) -> None:
    plan = planned(method) if method == "plain" else planned(method).without_privacy()
    assert not plan.proved.is_finite
    assert not plan.claimed.is_finite
    assert plan.is_experiment
    with pytest.raises(IncompatibleGuarantees, match="no noise and no account"):
        _ = plan.loss
    assert plan.as_json()["training"]["steps"] == 60


@pytest.mark.parametrize(
    ("printed_sigma", "epsilon"), [(3.27, 1.0), (1.87, 2.0), (1.18, 4.0), (0.845, 8.0)]
)
def test_the_table_of_noise_is_that_of_renyi_accounting(
    printed_sigma: float, epsilon: float
) -> None:
    """SST-2: 67,349 records, batches of 2,000, 20 epochs; PLD proves more of the same noise."""
    event = [SampledGaussian(printed_sigma, 0.0297, 673)]
    assert epsilon_at(event, 1e-5, "rdp").epsilon == pytest.approx(epsilon, rel=0.02)
    assert 0.85 * epsilon < epsilon_at(event, 1e-5, "pld").epsilon < 0.97 * epsilon


@pytest.mark.parametrize(("claimed", "noise"), [(1.0, 2.4658), (2.0, 1.5149)])
def test_an_audit_of_clipping_as_printed_is_above_its_claim(claimed: float, noise: float) -> None:
    """A canary with norm C in each of 73 groups, 60 steps, 2 x 1,500 games, alpha 1e-6."""

    def audited(name: str, **changes: Any) -> float:
        plan = planned(name, noise=noise, **changes)
        assert plan.claimed.epsilon == pytest.approx(claimed, rel=1e-3)
        seed = f"{name} {claimed} {changes}"
        canary = GradientCanary(plan.private)
        return audit_canary(canary, 1e-5, seed, games=1_500).epsilon

    assert audited("lora", clipping="printed") > claimed
    assert audited("lora") < claimed
    assert audited("head", clipping="printed") < claimed  # one group: as printed is correct


def test_a_head_and_what_continues_from_it_keep_to_one_cost() -> None:
    steps = MethodSettings(steps=5)
    plan = HeadThenAdaptersPlan.of(SMALL, COST, 50, head=steps, adapters=steps, head_share=0.5)
    assert 1.99 < plan.proved.epsilon <= 2.0
    assert plan.head.proved.epsilon == pytest.approx(1.0, rel=1e-3)
    assert 1.0 < plan.adapters.proved.epsilon < 2.0
    assert plan.loss.events == (*plan.head.private.events, *plan.adapters.private.events)
    assert epsilon_at(plan.loss.events, 1e-5).epsilon == plan.proved.epsilon
    with pytest.raises(BadParameter, match="joint, equal or groups"):
        HeadThenAdaptersPlan.of(
            SMALL, COST, 50, head=steps, adapters=replace(steps, clipping="printed")
        )


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("lora", {"rank": 9}, r"rank=9 <= 8, the smaller side of layers.0.attention.self.query"),
    ("rgp", {"rank": 0}, "rank"),
    ("full", {"rank": 4}, "left out: full has no factors"),
    ("combined-lora", {"sparsity": 0.0}, r"sparsity=0.0 in \(0, 1\)"),
    ("combined-rgp", {"sparsity": 1.0}, r"sparsity=1.0 in \(0, 1\)"),
    ("combined-lora", {"sparsity": 0.999}, "nothing is left of layers.0.attention"),
    ("sparse", {"sparsity": 0.999}, "nothing is left of layers.0.attention"),
    ("sparse", {"sparsity": math.nan}, "sparsity"),
    ("lora", {"sparsity": 0.5}, "left out: lora has none"),
    ("lora", {"clipping": "each"}, "clipping.*one of joint, equal, groups, printed"),
    ("lora", {"group_clips": (("head", 1.0),)}, "only with clipping 'groups'"),
    ("lora", {"epochs": 2.0}, "or epochs, one of the two"),
    ("plain", {"clipping": "equal"}, "nothing is clipped"),
    ("qlora", {}, "one of full, sparse"),
]


@batched("refused", REFUSED, label=lambda one: f"{one[0]} {one[1]}")
def test_a_setting_that_breaks_its_rule_is_named(
    refused: tuple[str, dict[str, Any], str],
) -> None:
    name, changes, said = refused
    with pytest.raises(BadParameter, match=said):
        planned(name, SMALL, **changes)


def test_a_release_that_is_too_large_is_refused_before_anything_is_charged() -> None:
    with pytest.raises(BadParameter, match=r"at most 64 MiB.*train fewer layers, or adapters"):
        planned("full", EncoderShapes.bert(12, 384, 1536))
    assert planned("lora", EncoderShapes.bert(12, 384, 1536)).release_size < 4 << 20


def test_every_plan_has_a_hash_of_all_that_decides_it() -> None:
    plans = [planned(name, SMALL) for name in METHODS]
    plans += [planned("combined-lora", SMALL, sparsity=one) for one in (0.1, 0.5)]
    plans += [planned("lora", EncoderShapes.bert(2, 8, 13)), planned("lora", SMALL, noise=3.0)]
    assert len({plan.sha256 for plan in plans}) == len(plans)
