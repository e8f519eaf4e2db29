"""Factors of convolutions: adapters, carriers and masks on a network trained from scratch."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from batches import batched
from fine_tuning_cases import COST, STEPS
from noisefloor.errors import BadParameter, UnsupportedModule
from noisefloor.publication.fine_tuning import LayeredModule
from noisefloor.publication.fine_tuning.methods import (
    METHODS,
    EncoderShapes,
    FineTuningPlan,
    FineTuningRun,
    MethodSettings,
    fine_tune,
    mask_rule,
    prepare_module,
    published_tensors,
    train_plain,
    unit_importances,
)
from noisefloor.publication.fine_tuning.methods.adapters import AdaptedLayer, adapters_of
from noisefloor.publication.noised_vectors import NoisedVector
from noisefloor.publication.private_sgd import Flat, KeptUnits, cross_entropy, initialise
from noisefloor.randomness import SeededSource, new_run
from private_sgd_cases import clipped_sum, engine_sum, gap, gradients_one_by_one

RECORDS, CLASSES = 9, 3
PRIVATE = [name for name, one in METHODS.items() if one.is_private]


class Block(nn.Module):
    """A convolution, its normalisation, and what cuts negative values off."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.normalisation = nn.GroupNorm(2, outputs)

    def forward(self, values: Tensor) -> Tensor:
        return torch.relu(self.normalisation(self.convolution(values)))


class Images(LayeredModule):
    """Two blocks and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Block(4, 4, 1), Block(4, 6, 2)])
        self.head = nn.Linear(6, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        for layer in self.layers:
            images = layer(images)
        logits: Tensor = self.head(images.mean((2, 3)))
        return logits


def network() -> Images:
    made = Images()
    with new_run():
        initialise(made, SeededSource(1, "images"))
    return made


IMAGES = torch.linspace(0, 80, RECORDS * 4 * 36).sin().view(RECORDS, 4, 6, 6)
LABELS = torch.arange(RECORDS) % CLASSES


def planned(name: str, settings: MethodSettings = STEPS, noise: float = 1.0) -> FineTuningPlan:
    shapes = EncoderShapes.of_module(network())
    settings = replace(settings, rank=3) if METHODS[name].has_rank else settings
    return FineTuningPlan.of(name, shapes, COST, RECORDS, settings, noise_multiplier=noise)


def prepared(plan: FineTuningPlan) -> Images:
    module = network()
    with new_run():
        prepare_module(plan, module, SeededSource(1, "adapters"))
    return module


@batched("name", PRIVATE, label=str)
def test_a_convolutional_network_is_trained_from_scratch_by_every_method(name: str) -> None:
    plan = planned(name)
    module = prepared(plan)
    before = {key: one.detach().clone() for key, one in module.named_parameters()}
    with new_run():
        report = fine_tune(plan, module, (IMAGES,), LABELS, SeededSource(1, "run"))
    after = dict(module.named_parameters())
    assert {key for key in after if not torch.equal(before[key], after[key])} == set(plan.trained)
    assert (report.coordinates, report.parameters) == (plan.updated, plan.parameters)
    assert report.road == "book-keeping"
    tensors = published_tensors(plan, module)
    assert {key: one.shape for key, one in tensors.items()} == plan.published_shapes


def test_the_network_learns_without_privacy() -> None:
    settings = MethodSettings(steps=60, learning_rate=0.02)
    plan, module = planned("plain", settings), network()
    train_plain(plan, module, (IMAGES,), LABELS, SeededSource(1, "plain"))
    assert torch.equal(module(IMAGES).argmax(1), LABELS)


def test_an_adapter_of_a_convolution_is_one_of_its_weight_as_a_matrix() -> None:
    base = nn.Conv2d(4, 6, (3, 2), stride=2, padding=1, padding_mode="reflect")
    whole = nn.Conv2d(4, 6, (3, 2), stride=2, padding=1, padding_mode="reflect")
    adapter = AdaptedLayer(base, 2, SeededSource(1, "one"))
    assert torch.equal(adapter(IMAGES), base(IMAGES))
    with torch.no_grad():
        adapter.left.weight.copy_(torch.linspace(0, 9, 12).view(6, 2, 1, 1))
        whole.load_state_dict(base.state_dict() | {"weight": adapter.matrix})
    assert torch.allclose(adapter(IMAGES), whole(IMAGES), atol=1e-5)
    with pytest.raises(UnsupportedModule, match="in groups has no low-rank factors"):
        AdaptedLayer(nn.Conv2d(4, 6, 3, groups=2), 2, SeededSource(1, "groups"))


def test_clipped_sums_of_factors_are_those_of_a_loop_over_examples() -> None:
    module = prepared(planned("lora")).double()
    with torch.no_grad():
        for one in adapters_of(module).values():  # from zero, no gradient reaches right factors
            one.left.weight.copy_(torch.linspace(0, 9, one.left.weight.numel()).view(-1, 3, 1, 1))
    rows = gradients_one_by_one(module, IMAGES.double(), LABELS, cross_entropy)
    norms = torch.cat([*rows.values()], 1).norm(dim=1)
    clipping = Flat(float(norms.median()))
    assert bool((norms > clipping.bound).any())
    found = engine_sum(module, IMAGES.double(), LABELS, loss=cross_entropy, clipping=clipping)
    expected = clipped_sum(rows, clipping)
    assert {"layers.0.convolution.left.weight", "layers.1.convolution.right.weight"} < set(found)
    assert gap(found, expected) < 1e-5 * max(float(one.abs().max()) for one in expected.values())


def test_the_move_of_a_convolution_by_rgp_is_the_projection_of_its_gradient() -> None:
    """P_L dW + dW P_R - P_L dW P_R of dW as a matrix, to 1e-6 of the largest entry."""
    settings = MethodSettings(steps=2, clip=1e4, optimiser="sgd", momentum=0.0, learning_rate=0.1)
    plan = planned("rgp", settings, noise=1e-3)
    module, seen = prepared(plan).double(), list[NoisedVector]()
    source = SeededSource(1, "run")
    with FineTuningRun(
        plan, module, (IMAGES.double(),), LABELS, source, residuals=seen.append
    ) as run:
        for step in range(2):
            gradients = summed_gradients(plan, module)
            run.run(step + 1)
            layout = run._training._layout
            assert set(layout.carriers) == {name for name, _ in plan.shapes.matrices}
            assert seen[-1].clean is not None
            sizes = [one.numel() for one in gradients.values()]
            moved = torch.split(layout.gradient(torch.from_numpy(seen[-1].clean)), sizes)
            for (name, whole), found in zip(gradients.items(), moved, strict=True):
                expected = whole.flatten(1) if whole.dim() > 1 else whole
                if name in layout.carriers:
                    carriers = layout.carriers[name]
                    left = carriers.left @ carriers.left.t()
                    right = carriers.right.t() @ carriers.right
                    both = left @ expected @ right
                    expected = left @ expected + expected @ right - both
                difference = (found.view_as(expected) - expected).abs().max()
                assert float(difference) < 1e-6 * float(expected.abs().max())


def summed_gradients(plan: FineTuningPlan, module: Images) -> dict[str, Tensor]:
    """Take gradients on a copy: a training has those of the module switched off."""
    copied = network().double()
    copied.load_state_dict(module.state_dict())
    loss = cross_entropy(copied(IMAGES.double()), LABELS).sum()
    trained = {name: one for name, one in copied.named_parameters() if name in plan.trained}
    return dict(zip(trained, torch.autograd.grad(loss, list(trained.values())), strict=True))


@pytest.mark.parametrize("name", ["combined-lora", "combined-rgp"])
def test_units_of_a_convolution_are_whole_channels(name: str) -> None:
    plan = planned(name, replace(STEPS, sparsity=0.5))
    module = prepared(plan)
    rule = mask_rule(plan, module)
    assert rule is not None
    kept = rule({key: one.detach() for key, one in module.named_parameters()})
    matrix = "layers.1.convolution"
    lora = name == "combined-lora"
    lines = kept[f"{matrix}.left.weight" if lora else f"{matrix}.weight"]
    across = kept[f"{matrix}.right.weight" if lora else f"{matrix}.weight"]
    assert isinstance(lines, KeptUnits)
    assert isinstance(across, KeptUnits)
    assert lines.rows is not None
    assert across.columns is not None
    public = network().layers[1].get_submodule("convolution").get_parameter("weight").abs()
    outputs, inputs = public.detach().sum((1, 2, 3)), public.detach().sum((0, 2, 3))
    for flags, sizes in ((lines.rows, outputs), (across.columns, inputs)):
        assert flags.tolist() == (sizes > sizes.median()).tolist()
    found = unit_importances(plan, module, is_experiment=True)[f"{matrix}.weight"]
    assert np.allclose(found.rows, outputs.numpy(), rtol=1e-4)
    assert np.allclose(found.columns, inputs.numpy(), rtol=1e-4)
    left_out = 0.5 * 3 * (4 + 4 * 9 + 6 + 4 * 9)
    assert plan.updated == planned("rgp").updated - left_out


def test_a_rank_and_a_share_are_bounded_by_the_weight_as_a_matrix() -> None:
    shapes = EncoderShapes.of_module(network())
    assert dict(shapes.matrices)["layers.1.convolution.weight"] == (6, 4, 3, 3)
    with pytest.raises(BadParameter, match=r"rank=5 <= 4, the smaller side of layers\.0"):
        FineTuningPlan.of(
            "lora", shapes, COST, RECORDS, replace(STEPS, rank=5), noise_multiplier=1
        )
    with pytest.raises(BadParameter, match=r"nothing is left of layers\.0\.convolution"):
        planned("combined-rgp", replace(STEPS, sparsity=0.8))
    grey = replace(shapes, matrices=(("layers.0.convolution.weight", (16, 1, 3, 3)),))
    masked = FineTuningPlan.of(
        "combined-rgp", grey, COST, RECORDS, replace(STEPS, rank=3), noise_multiplier=1
    )
    head = 6 * CLASSES + CLASSES
    assert masked.updated == 3 * (16 - 4) + 3 * 9 + head  # the one channel is never left out
    full = planned("full")
    assert full.parameters == sum(math.prod(one.shape) for one in network().parameters())
