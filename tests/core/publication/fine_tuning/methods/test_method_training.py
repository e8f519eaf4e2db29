"""Methods on a tiny encoder: what moves, what is published, what is left out, what is resumed."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fine_tuning_cases import CLASSES, COST, POOLED, RECORDS, STEPS, TinyCase, tiny_case
from noisefloor.errors import BadParameter, BadSnapshot, IncompatibleGuarantees
from noisefloor.publication.fine_tuning import TextModelFile
from noisefloor.publication.fine_tuning.methods import (
    METHODS,
    FineTuningPlan,
    FineTuningRun,
    HeadThenAdaptersPlan,
    MethodSettings,
    fine_tune,
    head_features,
    mask_rule,
    prepare_module,
    published_tensors,
    train_plain,
)
from noisefloor.publication.fine_tuning.methods.adapters import adapters_of
from noisefloor.publication.fine_tuning.methods.method_plan import factor_names
from noisefloor.publication.fine_tuning.methods.method_training import HeadAlone
from noisefloor.publication.fine_tuning.text_model import TextModel
from noisefloor.publication.fine_tuning.top_layers import TopLayers
from noisefloor.publication.noised_vectors import NoisedVector
from noisefloor.publication.private_sgd import Kept, KeptEntries, KeptUnits, PaddedInputs, train
from noisefloor.publication.private_sgd.carriers import Carriers
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables import Categories, TextSchema

PRIVATE = [name for name, one in METHODS.items() if one.is_private]
Tensors = dict[str, NDArray[np.float32]]
SCHEMA = TextSchema("a review", {"text": 12}, "mood", Categories(("bad", "good")))


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> TinyCase:
    return tiny_case(tmp_path_factory.mktemp("models"))


def state(module: nn.Module) -> dict[str, Tensor]:
    return {name: one.detach().clone() for name, one in module.named_parameters()}


@pytest.mark.parametrize("name", PRIVATE)
def test_a_method_moves_what_it_names_and_publishes_no_more(name: str, case: TinyCase) -> None:
    plan, module = case.plan(name), case.module()
    prepare_module(plan, module, SeededSource(1, name, "adapters"))
    before = state(module)
    report = fine_tune(plan, module, case.inputs, case.labels, SeededSource(1, name))
    after = state(module)
    moved = {one for one in after if not torch.equal(before[one], after[one])}
    assert moved == set(plan.trained)
    assert report.coordinates == plan.updated
    assert report.parameters == plan.parameters
    assert report.road == "book-keeping"
    tensors = published_tensors(plan, module)
    assert {key: one.shape for key, one in tensors.items()} == plan.published_shapes
    _check_published(case, module, tensors)


def _check_published(case: TinyCase, module: TopLayers, tensors: Tensors) -> None:
    """The published file on the backbone gives the module's own figures."""
    from noisefloor.publication.fine_tuning import run_frozen, tokenise

    hashes = case.backbone.weights_sha256, case.backbone.tokeniser_sha256
    file = TextModelFile(SCHEMA, POOLED, *hashes, tensors=tensors)
    assert len(file.written()) <= 1 << 20
    texts = {"text": ["good film", "the plot is dull and the actor is weak"]}
    tokens = tokenise(case.backbone, SCHEMA, texts)
    states = run_frozen(case.backbone, tokens, POOLED, train_layers=case.train_layers)
    expected = module(*module.inputs(states)).detach().numpy()
    found = TextModel.on(file, case.backbone).logits(texts)
    assert abs(found - expected).max() < 1e-3 * abs(expected).max()


def test_adapters_start_at_the_pretrained_function(case: TinyCase) -> None:
    module = case.module()
    before = module(*case.inputs)
    prepare_module(case.plan("lora"), module, SeededSource(1, "start"))
    assert torch.equal(module(*case.inputs), before)
    assert len(adapters_of(module)) == 6


def test_the_right_factor_is_frozen_and_published_by_ffa_lora(case: TinyCase) -> None:
    plan, module = case.plan("ffa-lora"), case.module()
    prepare_module(plan, module, SeededSource(1, "ffa", "adapters"))
    rights = {name: one for name, one in state(module).items() if ".right." in name}
    fine_tune(plan, module, case.inputs, case.labels, SeededSource(1, "ffa"))
    assert len(rights) == 6
    assert all(torch.equal(state(module)[name], one) for name, one in rights.items())
    assert all(one.left.weight.any() for one in adapters_of(module).values())
    assert sum(name.endswith(".right") for name in published_tensors(plan, module)) == 6


def projected(carriers: Carriers, matrix: Tensor) -> Tensor:
    left, right = carriers.left @ carriers.left.t(), carriers.right.t() @ carriers.right
    return left @ matrix + matrix @ right - left @ matrix @ right


def summed_gradients(plan: FineTuningPlan, module: nn.Module, case: TinyCase) -> dict[str, Tensor]:
    """Take gradients on a copy: a training has those of the module switched off."""
    copied, inputs = case.module().double(), (one.double() for one in case.inputs)
    copied.load_state_dict(module.state_dict())
    loss = nn.functional.cross_entropy(copied(*inputs), case.labels, reduction="sum")
    trained = {name: one for name, one in copied.named_parameters() if name in plan.trained}
    return dict(zip(trained, torch.autograd.grad(loss, list(trained.values())), strict=True))


def test_the_move_of_a_matrix_by_rgp_is_the_projection_of_its_gradient(case: TinyCase) -> None:
    """dL R + L dR - L L^T dL R of the module's own gradients, to 1e-6 of the largest entry."""
    rate, descent = 0.1, {"optimiser": "sgd", "momentum": 0.0, "learning_rate": 0.1}
    settings = MethodSettings(steps=2, rank=3, clip=1e4, **descent)  # type: ignore[arg-type]
    plan, module = case.plan("rgp", settings, noise=1e-3), case.module().double()
    prepare_module(plan, module, SeededSource(1, "rgp"))
    inputs, seen = tuple(one.double() for one in case.inputs), list[NoisedVector]()
    with FineTuningRun(
        plan, module, inputs, case.labels, SeededSource(1, "run"), residuals=seen.append
    ) as run:
        for step in range(2):
            gradients, before = summed_gradients(plan, module, case), state(module)
            run.run(step + 1)
            layout, sizes = run._training._layout, [one.numel() for one in gradients.values()]
            assert len(layout.carriers) == 6
            assert seen[-1].clean is not None
            clean, noised = (
                dict(zip(gradients, torch.split(layout.gradient(vector), sizes), strict=True))
                for vector in map(torch.from_numpy, (seen[-1].clean, seen[-1].noised))
            )
            for name, carriers in layout.carriers.items():
                expected = projected(carriers, gradients[name])
                gap = (clean[name].view_as(expected) - expected).abs().max()
                assert float(gap) < 1e-6 * float(expected.abs().max())
                moved = (before[name] - state(module)[name]) * (RECORDS / rate)
                gap = (noised[name].view_as(moved) - moved).abs().max()
                assert float(gap) < 1e-6 * float(moved.abs().max())


class OnlyKept(nn.Module):
    """Top layers whose trained parameters are the kept entries alone, in their order."""

    def __init__(self, plan: FineTuningPlan, module: TopLayers) -> None:
        super().__init__()
        rule = mask_rule(plan, module)
        assert rule is not None
        kept = rule({name: one.detach() for name, one in module.named_parameters()})
        self.inner = module.requires_grad_(False)
        self.names = [name for name, _ in module.named_parameters() if name in plan.trained]
        self.flags = []
        for name in self.names:
            one = kept.get(name)
            shape = module.get_parameter(name).shape
            flags = one.entries if isinstance(one, KeptEntries) else torch.ones(shape).bool()
            self.flags.append(flags)
        values = [
            module.get_parameter(name).detach()[flags]
            for name, flags in zip(self.names, self.flags, strict=True)
        ]
        self.kept = nn.ParameterList(nn.Parameter(one.clone()) for one in values)

    def whole(self) -> dict[str, Tensor]:
        """Return all parameters, with the kept entries in their places."""
        found = {}
        for name, flags, values in zip(self.names, self.flags, self.kept, strict=True):
            found[name] = self.inner.get_parameter(name).masked_scatter(flags, values)
        return found

    def forward(self, *inputs: Tensor) -> Tensor:
        found: Tensor = torch.func.functional_call(self.inner, self.whole(), inputs)
        return found


def test_masked_training_is_training_without_these_coordinates(case: TinyCase) -> None:
    """Also in the optimiser: Adam's state of what is left out is not there."""
    plan, module = case.plan("sparse", replace(STEPS, sparsity=0.5)), case.module()
    alone = OnlyKept(plan, case.module())
    fine_tune(plan, module, case.inputs, case.labels, SeededSource(1, "masked"))
    with new_run():
        source = SeededSource(1, "masked").child("training")
        train(alone, case.inputs, case.labels, plan.private, source, per_example=True)
    for name, expected in alone.whole().items():
        assert torch.allclose(module.get_parameter(name), expected, atol=2e-4), name


def test_a_gradient_in_masked_coordinates_alone_changes_no_released_byte(case: TinyCase) -> None:
    """Features of the last record are in columns of the head that are left out, or are none."""
    plan, module = case.plan("head"), case.module()
    prepare_module(plan, module, SeededSource(1, "bytes"))
    features = head_features(module, case.inputs)
    columns = torch.arange(features.shape[1]) % 3 > 0
    nothing = KeptUnits(rows=torch.zeros(CLASSES, dtype=torch.bool))

    def released(last: Tensor, columns: Tensor) -> list[bytes]:
        head = HeadAlone(case.module())
        nn.init.zeros_(head.head.weight)
        given = torch.cat([features[:-1], last[None]])
        masks = {"head.weight": KeptUnits(columns=columns), "head.bias": nothing}
        source, found = SeededSource(1, "run"), []
        with (
            new_run(),
            FineTuningRun(plan, head, (given,), case.labels, source, masks=lambda _: masks) as run,
        ):
            for step in range(3):
                run.run(step + 1)
                found.append(run.snapshot())
            return found

    masked = torch.where(columns, 0.0, 1e6)
    assert released(masked, columns) == released(torch.zeros_like(masked), columns)
    everything = torch.ones_like(columns)
    assert released(masked, everything) != released(torch.zeros_like(masked), everything)


def units(kept: Kept) -> tuple[Tensor | None, Tensor | None]:
    assert isinstance(kept, KeptUnits)
    return kept.rows, kept.columns


def above_median(sizes: Tensor) -> list[bool]:
    flags: list[bool] = (sizes > sizes.median()).tolist()
    return flags


@pytest.mark.parametrize("name", ["combined-lora", "combined-rgp"])
def test_masks_follow_the_released_weights(name: str, case: TinyCase) -> None:
    plan, module = case.plan(name, replace(STEPS, sparsity=0.5)), case.module()
    prepare_module(plan, module, SeededSource(1, name))
    rule, weights = mask_rule(plan, module), state(module)
    assert rule is not None
    matrix, _ = plan.shapes.matrices[0]
    kept = rule(weights)
    if name == "combined-lora":
        left, right = factor_names(matrix, is_carried=False)
        public = adapters_of(module)[matrix.removesuffix(".weight")].base.weight.detach().abs()
        assert units(kept[left])[1] is units(kept[right])[0] is None
        rows, columns = units(kept[left])[0], units(kept[right])[1]
        weights[left].fill_(50.0)
        weights[right][:, :8] = 50.0
    else:
        right, public = matrix, weights[matrix].abs()
        rows, columns = units(kept[matrix])
        weights[matrix] = weights[matrix].clone()
        weights[matrix][:, :8] = 50.0
    assert rows is not None
    assert columns is not None
    assert rows.tolist() == above_median(public.sum(1))
    assert columns.tolist() == above_median(public.sum(0))
    renewed = units(rule(weights)[right])[1]
    assert renewed is not None
    assert renewed.tolist() == [True] * 8 + [False] * 8


def test_a_training_is_taken_up_from_its_own_plan_alone(case: TinyCase) -> None:
    settings = MethodSettings(steps=3, rank=2, sparsity=0.3)
    plan, other = (
        case.plan("combined-lora", replace(settings, sparsity=one)) for one in (0.3, 0.6)
    )

    def started(plan: FineTuningPlan) -> FineTuningRun:
        module = case.module()
        prepare_module(plan, module, SeededSource(1, "adapters"))
        return FineTuningRun(plan, module, case.inputs, case.labels, SeededSource(1, "resume"))

    with new_run(), started(plan) as run:
        run.run(1)
        halfway = run.snapshot()
        run.run()
        whole = run.snapshot()
    with new_run(), started(plan) as run:
        run.restore(halfway)
        done: list[int] = []
        run.run(progress=done.append)
        assert run.snapshot() == whole
        assert done == [2, 3]
    with new_run(), started(other) as run, pytest.raises(BadSnapshot, match="of another plan"):
        run.restore(halfway)
    with new_run(), started(plan) as run, pytest.raises(BadSnapshot):
        run.restore(b"no checkpoint")


def test_adapters_continue_from_a_private_head(case: TinyCase) -> None:
    steps = MethodSettings(steps=2, learning_rate=0.1)
    head, second = case.plan("head", steps), case.plan("ffa-lora", steps)
    plan, module = HeadThenAdaptersPlan(head, second, COST), case.module()
    plan.train(module, case.inputs, case.labels, SeededSource(1, "both"))
    alone = case.module()
    with new_run():
        fine_tune(head, alone, case.inputs, case.labels, SeededSource(1, "both").child("head"))
    first = state(alone)["head.weight"]
    start = case.module().head.weight.detach()
    assert 0.05 < float((first - start).abs().max()) < 0.5
    assert 0 < float((state(module)["head.weight"] - first).abs().max()) < 0.5
    assert set(published_tensors(second, module)) == set(second.published_shapes)


def test_plain_training_fits_and_refuses_a_private_plan(case: TinyCase) -> None:
    steps = MethodSettings(steps=60, learning_rate=0.01, batch=4)
    plan, module = case.plan("plain", steps), case.module()
    train_plain(plan, module, case.inputs, case.labels, SeededSource(1, "plain"))
    assert torch.equal(module(*case.inputs).argmax(1), case.labels)
    lora, adapted = case.plan("lora", steps).without_privacy(), case.module()
    train_plain(lora, adapted, case.inputs, case.labels, SeededSource(1, "plain lora"))
    assert set(published_tensors(lora, adapted)) == set(lora.published_shapes)
    with pytest.raises(IncompatibleGuarantees, match="not trained without its noise"):
        train_plain(case.plan("full"), module, case.inputs, case.labels, SeededSource(1, "no"))
    with pytest.raises(BadParameter, match="without carriers and masks"):
        case.plan("combined-rgp").without_privacy()


def test_factors_of_one_matrix_are_added_to_it_alone(case: TinyCase) -> None:
    shapes = case.shapes.only("intermediate.dense")
    plan = FineTuningPlan.of("lora", shapes, COST, RECORDS, STEPS, noise_multiplier=1.0)
    module = case.module()
    fine_tune(plan, module, case.inputs, case.labels, SeededSource(1, "one matrix"))
    assert set(adapters_of(module)) == {"layers.0.intermediate.dense"}
    tensors = published_tensors(plan, module)
    assert {key: one.shape for key, one in tensors.items()} == plan.published_shapes


def test_plain_training_on_cut_texts_is_that_on_padded_ones(case: TinyCase) -> None:
    plan = case.plan("plain", MethodSettings(steps=3, batch=6))
    found = []
    for padding in (None, PaddedInputs(case.inputs[1].sum(1).long(), inputs=(0, 1), step=1)):
        module = case.module()
        with new_run():
            source = SeededSource(1, "cut")
            train_plain(plan, module, case.inputs, case.labels, source, padding=padding)
        found.append(state(module))
    for name, one in found[0].items():
        assert torch.allclose(one, found[1][name], atol=1e-3), name
    assert not torch.equal(found[0]["head.weight"], case.module().head.weight)


def test_a_module_that_was_not_planned_for_is_refused(case: TinyCase) -> None:
    plan = case.plan("lora")
    with pytest.raises(BadParameter, match="the one that the plan was made for"):
        prepare_module(plan, case._replace(train_layers=2).module(), SeededSource(1, "two"))
