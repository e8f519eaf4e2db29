"""Diagnostics: clip factors, overlaps of masks, importances and maps, for experiments alone."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from fine_tuning_cases import RECORDS, STEPS, TinyCase, tiny_case
from noisefloor.errors import BadParameter
from noisefloor.publication.fine_tuning.methods import (
    FineTuningRun,
    MaskLog,
    compare_clip_factors,
    gradient_maps,
    mask_rule,
    prepare_module,
    unit_importances,
    weight_maps,
)
from noisefloor.publication.noised_vectors import NoisedVector
from noisefloor.publication.private_sgd import Kept, KeptEntries, KeptUnits, example_gradients
from noisefloor.randomness import SeededSource


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> TinyCase:
    return tiny_case(tmp_path_factory.mktemp("models"))


def test_nothing_is_shown_unless_it_is_an_experiment(case: TinyCase) -> None:
    plan, module = case.plan("full"), case.module()
    examples = case.inputs, case.labels
    for show in (
        lambda: compare_clip_factors(plan, module, *examples, SeededSource(1, "no")),
        lambda: weight_maps(plan, module),
        lambda: unit_importances(plan, module),
        lambda: gradient_maps(module, *examples),
        lambda: MaskLog(lambda _: {}).overlaps(),
    ):
        with pytest.raises(BadParameter, match="diagnostics show private examples"):
            show()


@pytest.mark.parametrize("name", ["combined-lora", "combined-rgp", "sparse"])
def test_masks_leave_longer_parts_of_gradients_unclipped(name: str, case: TinyCase) -> None:
    settings = replace(STEPS, sparsity=0.5, clip=0.2, rank=None if name == "sparse" else 4)
    plan, module = case.plan(name, settings), case.module()
    prepare_module(plan, module, SeededSource(1, "adapters"))
    found = compare_clip_factors(
        plan, module, case.inputs, case.labels, SeededSource(1, name), is_experiment=True
    )
    assert found.unmasked.shape == found.masked.shape == (RECORDS, 1)
    assert (found.unmasked < 1).any()
    assert found.clipped[1] <= found.clipped[0]
    if name != "combined-rgp":  # carriers are other random ones
        assert (found.masked >= found.unmasked).all()


def test_clip_factors_are_those_of_norms_and_of_the_training(case: TinyCase) -> None:
    plan, module = case.plan("lora", replace(STEPS, clip=0.2)), case.module()
    prepare_module(plan, module, SeededSource(1, "adapters"))
    gradients = example_gradients(module, case.inputs, case.labels)
    rows = torch.cat([one.flatten(1) for one in gradients.values()], 1)
    factors = 0.2 / torch.linalg.vector_norm(rows, dim=1).clamp(min=0.2)
    shown = compare_clip_factors(
        plan, module, case.inputs, case.labels, SeededSource(1, "shown"), is_experiment=True
    )
    assert np.allclose(shown.unmasked[:, 0], factors, atol=1e-5)
    assert np.array_equal(shown.masked, shown.unmasked)
    seen: list[NoisedVector] = []
    source = SeededSource(1, "run")
    with FineTuningRun(
        plan, module, case.inputs, case.labels, source, residuals=seen.append
    ) as run:
        run.run(1)
    assert seen[0].clean is not None
    assert np.allclose(seen[0].clean, (factors[:, None] * rows).sum(0), atol=1e-4)


def test_overlaps_of_masks_are_those_of_what_is_left_out() -> None:
    flags = [torch.tensor(one, dtype=torch.bool) for one in ([1, 0, 0, 1], [1, 1, 0, 0])]
    answers: Iterator[dict[str, Kept]] = iter(
        {"units": KeptUnits(rows=one), "entries": KeptEntries(one), "all": KeptUnits()}
        for one in flags
    )
    log = MaskLog(lambda _: next(answers))
    log({})
    log({})
    expected = {"units": 1 / 3, "entries": 1 / 3, "all": 1.0}
    assert log.overlaps(is_experiment=True) == [pytest.approx(expected)]


def test_a_run_keeps_the_masks_of_every_step(case: TinyCase) -> None:
    plan, module = case.plan("combined-lora"), case.module()
    prepare_module(plan, module, SeededSource(1, "adapters"))
    rule = mask_rule(plan, module)
    assert rule is not None
    log = MaskLog(rule)
    source = SeededSource(1, "run")
    with FineTuningRun(plan, module, case.inputs, case.labels, source, masks=log) as run:
        run.run()
    overlaps = log.overlaps(is_experiment=True)
    assert len(log.kept) == 1 + 3  # the dry run's, and one for each step
    assert set(overlaps[0].values()) == {1.0}  # of the dry run and the first step
    assert all(0 <= one <= 1 for step in overlaps for one in step.values())


def test_importances_are_sums_of_sizes_of_the_whole_matrix(case: TinyCase) -> None:
    plan, module = case.plan("lora"), case.module()
    public = weight_maps(case.plan("full"), module, is_experiment=True)
    prepare_module(plan, module, SeededSource(1, "adapters"))
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.endswith(".left.weight"):
                parameter.fill_(1.0)
    maps = weight_maps(plan, module, is_experiment=True)
    assert maps.keys() == public.keys() == dict(plan.shapes.matrices).keys()
    name = plan.shapes.matrices[0][0]
    right = module.get_parameter(name.replace(".weight", ".right.weight")).detach().double()
    assert np.allclose(maps[name], public[name] + right.sum(0).numpy(), atol=1e-5)
    found = unit_importances(plan, module, is_experiment=True)[name]
    assert np.allclose(found.rows, np.abs(maps[name]).sum(1))
    assert np.allclose(found.columns, np.abs(maps[name]).sum(0))
    gradients = gradient_maps(module, case.inputs, case.labels, is_experiment=True)
    assert {key: one.shape for key, one in gradients.items()} == plan.trained
