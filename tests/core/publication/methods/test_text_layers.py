"""Layers and adapters on texts: planned in public, released as trained, refused by their plan."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from batches import batched
from noisefloor.adversary.models.canary_audit import audit_plan
from noisefloor.errors import BadBackbone, BadParameter, NoisefloorError
from noisefloor.publication import fine_tuning
from noisefloor.publication.fine_tuning import TextModelFile, load_backbone
from noisefloor.publication.fine_tuning.methods import (
    HeadThenAdaptersPlan,
    fine_tune,
    published_tensors,
)
from noisefloor.publication.fine_tuning.text_model import TextModel
from noisefloor.publication.methods.gradient_canaries import ComposedCanary, FullBatchCanary
from noisefloor.publication.methods.text_layer_settings import TRAINS
from noisefloor.publication.methods.text_layers import TextLayersPlan
from noisefloor.publication.noised_vectors import NoisedVector
from noisefloor.publication.private_sgd import PaddedInputs
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables import Categories, TextRecords, TextSchema
from statistics_of_tests import FALSE_ALARM
from text_layer_cases import COUNT, RECORDS, SCHEMA, TEXTS, a_cost, a_spec, planned, tiny_machine
from tiny_backbones import write_tiny_bert

CLIPPINGS = [("lora", {"clipping": one}) for one in ("equal", "groups", "printed")]
REQUESTS: list[tuple[str, dict[str, Any]]] = [(one, {}) for one in TRAINS] + CLIPPINGS
NO_PROOF = ("plain",)


@pytest.fixture(autouse=True, scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with tiny_machine(tmp_path_factory.mktemp("models")):
        yield
    planned.cache_clear()


def label(request: tuple[str, dict[str, Any]]) -> str:
    return " ".join([request[0], *map(str, request[1].values())])


def released(
    plan: TextLayersPlan, seed: int = 1, records: TextRecords = RECORDS
) -> tuple[TextModelFile, bytes, list[NoisedVector]]:
    seen: list[NoisedVector] = []
    with new_run():
        content = plan.release(records, SeededSource(seed, "release"), seen.append)
    return TextModelFile.read(content), content, seen


@batched("request_", REQUESTS, label)
def test_a_request_is_planned_released_and_described(request_: tuple[str, dict[str, Any]]) -> None:
    trains, more = request_
    plan = planned(trains, **more)
    file, content, seen = released(plan)
    assert len(content) <= plan.release_size
    assert {name for name in file.tensors if name.startswith("head.")} == {
        "head.weight",
        "head.bias",
    }
    assert all(name.startswith(("layers.3.", "adapters.3.", "head.")) for name in file.tensors)
    has_adapters = "lora" in trains or "adapters" in trains
    assert any(name.startswith("adapters.") for name in file.tensors) == has_adapters
    steps = {part: sgd.steps for part, sgd in plan.noisy_parts.items()}
    assert {part: sum(one.part == part for one in seen) for part in steps} == steps
    assert len(seen) == sum(steps.values())
    said = plan.describe(content)
    assert json.loads(json.dumps(said)) == said
    assert said["trained"][0] == "head" and said["parameter_count"] == file.parameters
    assert said["backbone"]["weights_sha256"] == plan.backbone.weights_sha256
    assert said["training"]["method"] == trains
    texts = {"review": TEXTS[:2]}
    assert np.isfinite(TextModel.on(file, plan.backbone).logits(texts)).all()


@batched("request_", REQUESTS, label)
def test_what_is_charged_is_what_private_sgd_proves(request_: tuple[str, dict[str, Any]]) -> None:
    trains, more = request_
    plan = planned(trains, **more)
    claim = plan.claims[0].claim
    if trains == "plain":
        assert not plan.proved.is_finite and plan.canary is None and not plan.noisy_parts
        assert plan.floats.startswith("Everything")
        return
    events = tuple(event for sgd in plan.noisy_parts.values() for event in sgd.events)
    assert plan.loss.events == events
    assert (plan.loss.epsilon, plan.loss.delta) == (0.0, 0.0)
    if more.get("clipping") == "printed":
        assert claim.verdict == "overclaimed" and plan.proved.epsilon > 5
    else:
        assert claim.verdict == "holds" and 1.98 < plan.proved.epsilon <= 2.0
    if len(plan.noisy_parts) == 1:
        (sgd,) = plan.noisy_parts.values()
        assert plan.proved == sgd.guarantee(1e-5)


def test_the_published_tensors_are_those_of_the_training() -> None:
    plan = planned("combined-lora")
    file, _, _ = released(plan, seed=4)
    tokens = fine_tuning.tokenise(plan.backbone, SCHEMA, RECORDS.texts)
    states = fine_tuning.run_frozen(plan.backbone, tokens, plan.pooled, train_layers=1)
    module = plan.module()
    with new_run():
        fine_tune(
            plan.training,  # type: ignore[arg-type]  # not one with a head before it
            module,
            module.inputs(states),
            torch.from_numpy(RECORDS.labels.copy()),
            SeededSource(4, "release").child("training"),
            padding=PaddedInputs(torch.from_numpy(states.lengths.copy()), inputs=(0, 1)),
        )
    expected = published_tensors(plan.training, module)  # type: ignore[arg-type]  # likewise
    assert set(file.tensors) == set(expected)
    assert all(np.array_equal(file.tensors[name], one) for name, one in expected.items())


def residual_p(seen: list[NoisedVector], part: str, scale: float) -> float:
    """Return the two-sided p-value of the sum of squares of a part's noise."""
    pairs = [(one.noised, one.clean) for one in seen if one.part == part]
    noise = np.concatenate([noised - clean for noised, clean in pairs if clean is not None])
    below = float(stats.chi2.cdf(np.sum((noise / scale) ** 2), noise.size))
    assert noise.size > 500
    return 2 * min(below, 1 - below)


@pytest.mark.statistical
def test_residuals_are_the_declared_noise() -> None:
    """588 coordinates at least; false alarm 1e-6 each; noise a third too small is rejected."""
    for trains, more in [*REQUESTS[:3], ("head-then-adapters", {}), *CLIPPINGS]:
        plan = planned(trains, **more)
        _, _, seen = released(plan, seed=2)
        for part, sgd in plan.noisy_parts.items():
            assert residual_p(seen, part, sgd.noise_scale) > FALSE_ALARM, (trains, part)
            assert residual_p(seen, part, sgd.noise_scale * 1.5) < FALSE_ALARM, (trains, part)
            assert max(one.longest or 0.0 for one in seen if one.part == part) <= (
                sgd.sensitivity * (1 + 1e-6)
            )


def test_three_classes_whose_names_are_words_are_predicted() -> None:
    classes = Categories(("very bad", "so-so", "ausgezeichnet"))
    schema = TextSchema("one review", {"review": 6}, "verdict", classes)
    texts = ["the dull film", "a story", "great music and clever"] * 30
    records = TextRecords.of({"review": texts, "verdict": list(classes.values) * 30}, schema, "r")
    spec = a_spec("lora", schema, a_cost(40.0), size=90, steps=40, learning_rate=0.02)
    plan = TextLayersPlan.of(spec)
    file, _, _ = released(plan, records=records)
    assert TextModel.on(file, plan.backbone).predict(texts[:3]) == list(classes.values)


def test_another_backbone_is_refused(tmp_path: Any) -> None:
    file, _, _ = released(planned("ffa-lora"))
    with pytest.raises(BadBackbone, match="is not what this model was trained on"):
        TextModel.on(file, load_backbone(write_tiny_bert(tmp_path / "other", seed=7)))


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("", {}, "trains='<text>' one of full, sparse"),
    ("head", {}, "trains"),
    ("lora", {"rank": 17}, "rank=17 <= 16, the smaller side of layers.0"),
    ("full", {"rank": 4}, "full has no factors"),
    ("lora", {"sparsity": 0.5}, "lora has none"),
    ("combined-lora", {"sparsity": 0.0}, "for 0 take the method without masks"),
    ("combined-lora", {"sparsity": 1.0}, "sparsity=1.0 in (0, 1)"),
    ("combined-rgp", {"sparsity": 0.999}, "nothing is left of layers.0"),
    ("lora", {"train_layers": 4}, "train_layers=4 a whole number in [1, 3]"),
    ("lora", {"train_layers": 0}, "train_layers=0"),
    ("lora", {"pooled_layers": "3,4"}, "pooled_layers"),
    ("lora", {"clipping": "none"}, "joint, equal, groups, printed"),
    ("lora", {"group_clips": "head=1"}, "group_clips"),
    ("lora", {"clipping": "groups", "group_clips": "heads=1"}, "names of trained parameters"),
    ("lora", {"clipping": "groups", "group_clips": "head=0"}, "head"),
    ("lora", {"rates": "head"}, "NAME=NUMBER"),
    ("lora", {"rates": "head=1,head=2"}, "each name once"),
    ("lora", {"rates": "head=nan"}, "rate"),
    ("lora", {"scales": "layers.1=2"}, "names of trained parameters"),
    ("lora", {"steps": 0}, "steps"),
    ("lora", {"steps": 201}, "each record is seen 200 times at most"),
    ("lora", {"batch": COUNT + 1}, "batch"),
    ("lora", {"head_share": 0.5}, "it is for head-then-adapters alone"),
    ("head-then-adapters", {"head_share": 1.0}, "head_share"),
    ("head-then-adapters", {"adapters": "plain"}, "adapters"),
    ("head-then-adapters", {"clipping": "printed"}, "joint, equal or groups"),
    ("plain", {"clip": 1.0}, "nothing is clipped"),
    ("lora", {"backbone": "/etc"}, "parameters"),
    ("lora", {"size": 0}, "size"),
    ("lora", {"size": 20_000_000}, "hidden states take at most 8 GiB"),
]


@batched("case", REFUSED, lambda case: f"{case[0]} {case[1]}")
def test_a_request_that_breaks_a_rule_is_refused_in_one_line(
    case: tuple[str, dict[str, Any], str],
) -> None:
    trains, more, said = case
    with pytest.raises(NoisefloorError) as refused:
        TextLayersPlan.of(a_spec(trains, **more))
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_a_cost_without_delta_and_texts_without_size_are_refused() -> None:
    with pytest.raises(BadParameter, match="delta"):
        TextLayersPlan.of(a_spec("lora", cost=a_cost(delta=0.0)))
    spec = a_spec("lora")
    with pytest.raises(BadParameter, match="size"):
        TextLayersPlan.of(replace(spec, size=None))
    bare = replace(spec, parameters={})
    with pytest.raises(BadParameter, match="trains='<none>' named: one of full"):
        TextLayersPlan.of(bare)


def test_a_release_above_64_mib_is_refused_by_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fine_tuning.published_text_model, "MOST_RELEASE_BYTES", 70_000)
    with pytest.raises(BadParameter, match="train fewer layers, or adapters"):
        TextLayersPlan.of(a_spec("full"))


def test_texts_of_another_schema_are_refused() -> None:
    longer = replace(SCHEMA, texts={"review": 7})
    other = TextRecords.of({"review": TEXTS, "mood": ["bad", "good"] * (COUNT // 2)}, longer, "r")
    with pytest.raises(BadParameter, match="of the schema that was planned for"):
        planned("lora").release(other, SeededSource(1, "other"))


@pytest.mark.statistical
def test_canaries_stay_within_what_is_proved_and_find_too_little_noise() -> None:
    """Each bound is wrong with probability 1e-6; the planted fault is noise a quarter too small.

    Clipping as printed is audited above its claim: every group has its part of the canary.
    """
    for trains, more in [("lora", {}), *CLIPPINGS, ("head-then-adapters", {})]:
        plan = planned(trains, **more)
        assert plan.canary is not None
        found = audit_plan(plan.canary, 1e-5, f"{trains} {more}", games=6000)
        assert found.audited.epsilon <= plan.proved.epsilon < found.planted.epsilon
        assert found.null.epsilon == 0
        if more.get("clipping") == "printed":
            assert found.audited.epsilon > 2 and "in each of 13 groups" in plan.canary.text


def test_trainings_with_samples_are_audited_by_the_sum_of_their_scores() -> None:
    plan = planned("head-then-adapters")
    assert isinstance(plan.canary, FullBatchCanary)
    both = plan.training
    assert isinstance(both, HeadThenAdaptersPlan)
    half = replace(both.adapters, sgd=replace(both.adapters.private, expected_batch=COUNT / 2))
    canary = replace(plan, training=replace(both, adapters=half)).canary
    assert isinstance(canary, ComposedCanary)
    inside, outside = canary.scores(300, SeededSource(3, "composed"))
    assert inside.mean() > 0 > outside.mean()
    assert canary.work == 2 * (60 + 6)
