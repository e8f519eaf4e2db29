"""Carriers: gradients of factors, the move of a matrix, and factors from released weights."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pytest
import torch
from torch import Tensor, nn

from noisefloor.errors import BadParameter, UnsupportedModule
from noisefloor.publication.noised_vectors import NoisedVector
from noisefloor.publication.private_sgd import (
    EachAtFullBound,
    Flat,
    KeptUnits,
    ParameterGroup,
    PrivateTraining,
    train,
    without_smallest_units,
)
from noisefloor.publication.private_sgd.bookkeeping import BookKeeping
from noisefloor.publication.private_sgd.carriers import Carriers, power_iteration
from noisefloor.publication.private_sgd.coordinates import GradientLayout
from noisefloor.publication.private_sgd.masks import Kept
from noisefloor.publication.private_sgd.module_checks import quasi_random
from noisefloor.publication.private_sgd.parameters import FlatParameters
from noisefloor.publication.private_sgd.per_example import PerExample
from noisefloor.randomness import SeededSource, new_run
from private_sgd_cases import CASES, PLAN, gradients_one_by_one, made, weights

CLOSE = 1e-5


def drawn(count: int) -> Tensor:
    return quasi_random(count, 3).sub_(0.5)


def random_carriers(rows: int, columns: int, rank: int = 2) -> Carriers:
    return power_iteration(torch.zeros(rows, columns).double(), rank, drawn, name="it")


def projection(carriers: Carriers, matrix: Tensor) -> Tensor:
    """Return P_L M + M P_R - P_L M P_R."""
    left = carriers.left @ carriers.left.t()
    right = carriers.right.t() @ carriers.right
    return left @ matrix + matrix @ right - left @ matrix @ right


@pytest.mark.parametrize("rank", [1, 2, 5])
def test_the_move_of_a_matrix_is_the_projection_of_its_gradient(rank: int) -> None:
    carriers = random_carriers(7, 5, rank)
    eye = torch.eye(rank).double()
    assert torch.allclose(carriers.left.t() @ carriers.left, eye, atol=1e-12)
    assert torch.allclose(carriers.right @ carriers.right.t(), eye, atol=1e-12)
    gradient = drawn(35).view(7, 5)
    left, right = gradient @ carriers.right.t(), carriers.left.t() @ gradient
    expected = projection(carriers, gradient)
    assert float((carriers.move_of(left, right) - expected).abs().max()) < 1e-12
    as_printed = (
        left @ carriers.right
        + carriers.left @ right
        - carriers.left @ carriers.left.t() @ left @ carriers.right
    )
    assert float((as_printed - expected).abs().max()) < 1e-12
    # Without the last term what both spaces share would count twice.
    twice = left @ carriers.right + carriers.left @ right
    assert float((twice - expected).abs().max()) > 1e-3


def test_power_iteration_finds_what_moved() -> None:
    history = drawn(14).view(7, 2) @ drawn(10).view(2, 5)
    carriers = power_iteration(history, 2, drawn, name="it")
    rest = history - carriers.left @ (carriers.left.t() @ history)
    assert float(rest.abs().max()) < 1e-12
    rest = history - (history @ carriers.right.t()) @ carriers.right
    assert float(rest.abs().max()) < 1e-12


def carried(name: str, rank: int = 2) -> tuple[nn.Module, Tensor, Tensor, dict[str, Carriers]]:
    """Return a network in double floats, examples, and carriers of its matrices but tables."""
    with new_run():
        module, inputs, targets = made(CASES[name], name)
    module.double()
    if inputs.is_floating_point():
        inputs = inputs.double()
    carriers = {
        key: random_carriers(len(one), one[0].numel(), min(rank, *one.flatten(1).shape))
        for key, one in module.named_parameters()
        if one.dim() > 1 and not key.startswith(("embedding", "tokens", "positions"))
    }
    return module, inputs, targets, carriers


NAMES = ("mlp", "linear on few positions", "cnn", "two groups", "gru", "heads and positions")


@pytest.mark.parametrize("is_masked", [False, True])
@pytest.mark.parametrize(
    ("name", "road"), [*((name, BookKeeping) for name in NAMES), ("cnn", PerExample)]
)
def test_an_update_is_the_projection_of_the_clipped_sum(
    name: str, is_masked: bool, road: type[BookKeeping] | type[PerExample]
) -> None:
    """Factors' gradients are dW R^T and L^T dW, clipped by their joint norm, masks left out."""
    case = CASES[name]
    module, inputs, targets, carriers = carried(name)
    rows = gradients_one_by_one(module, inputs, targets, case.loss)
    shapes = {key: one.shape for key, one in module.named_parameters()}
    lines = {key: torch.ones(shapes[key][0], dtype=torch.bool) for key in carriers}
    if is_masked:
        lines = {key: torch.arange(len(one)) % 3 > 0 for key, one in lines.items()}
    parts: dict[str, list[Tensor]] = {}
    for key, one in rows.items():
        if key in carriers:
            each = one.view(len(one), shapes[key][0], -1)
            lefts = (each @ carriers[key].right.t()) * lines[key].view(-1, 1)
            parts[key] = [lefts, carriers[key].left.t() @ each]
        else:
            parts[key] = [one]
    every = torch.cat([part.flatten(1) for some in parts.values() for part in some], 1)
    bound = float(every.norm(dim=1).median())
    factors = (bound / every.norm(dim=1)).clamp(max=1)
    expected = []
    for key, some in parts.items():
        sums = [torch.tensordot(factors, part, 1) for part in some]
        expected.append(carriers[key].move_of(*sums) if key in carriers else sums[0])
    kept: dict[str, Kept] = {key: KeptUnits(rows=one) for key, one in lines.items()}
    flat = FlatParameters(module)
    layout = GradientLayout(flat.named, Flat(bound), kept=kept, carriers=carriers)
    sums_vector = torch.zeros(layout.size, dtype=torch.float64)
    with road(
        module, flat, sums_vector, loss=case.loss, clipping=Flat(bound), layout=layout
    ) as adding:
        adding.clip((inputs,), targets).add()
    found = layout.gradient(sums_vector)
    assert layout.moving is None
    moves = torch.cat([one.reshape(-1) for one in expected])
    gap = float((found - moves).abs().max())
    assert gap < CLOSE * max(1.0, float(moves.abs().max()))  # bounds have 4e-6 of room


def test_without_clipping_the_update_is_that_of_the_summed_gradient_to_1e_minus_12() -> None:
    module, inputs, targets, carriers = carried("linear on few positions")
    rows = gradients_one_by_one(module, inputs, targets, CASES["mlp"].loss)
    flat = FlatParameters(module)
    layout = GradientLayout(flat.named, Flat(1e6), carriers=carriers)
    sums = torch.zeros(layout.size, dtype=torch.float64)
    with BookKeeping(
        module, flat, sums, loss=CASES["mlp"].loss, clipping=Flat(1e6), layout=layout
    ) as adding:
        adding.clip((inputs,), targets).add()
    for key, found in zip(flat.names, flat.views(layout.gradient(sums)), strict=True):
        total = rows[key].sum(0).view(found.shape)
        expected = projection(carriers[key], total) if key in carriers else total
        assert float((found - expected).abs().max()) < 1e-12


# Whole trainings.


def test_each_step_moves_a_matrix_by_its_noisy_factors() -> None:
    """What is released is the move of the noisy sums by carriers of the released history."""
    plan = replace(
        PLAN,
        expected_batch=7,
        optimiser="sgd",
        momentum=0.0,
        averaging=0.0,
        learning_rate=0.5,
        carriers=(("2", 3),),
        groups=(ParameterGroup("2.weight", scale=2.0),),
    )
    seen: list[NoisedVector] = []
    module, inputs, targets = made(CASES["mlp"], "steps")
    layer = cast(nn.Linear, cast(nn.Sequential, module)[2])
    start = layer.weight.detach().clone()
    made_from: list[tuple[Tensor, Carriers]] = []
    training = PrivateTraining(
        module, inputs, targets, plan, SeededSource(1, "steps"), residuals=seen.append
    )
    with training:
        for step in range(1, 5):
            before = layer.weight.detach().clone()
            training.run(step)
            carriers = training._layout.carriers["2.weight"]
            noised = torch.from_numpy(seen[-1].noised)[81:135] * 2.0 / 7
            move = Carriers(*(one.double() for one in carriers)).move_of(
                noised[:27].view(9, 3), noised[27:].view(3, 9)
            )
            found = (before - layer.weight.detach()).double() / 0.5
            assert float((found - move).abs().max()) < 1e-6
            made_from.append((before - start, carriers))
        assert training.finish().coordinates == 81 + 54 + 9 + 30
    for step, (history, used) in enumerate(made_from):
        expected = carriers_of(history, step)
        assert torch.allclose(used.left, expected.left, atol=1e-4)
        assert torch.allclose(used.right, expected.right, atol=1e-4)


def carriers_of(history: Tensor, step: int) -> Carriers:
    """Return carriers as a function of released weights and draws, and of no example."""
    with new_run():
        draws = SeededSource(1, "steps").child("step", step).stage("carriers")
        return power_iteration(
            history, 3, lambda count: torch.from_numpy(draws.normals(count)), name="it"
        )


def test_a_carried_and_masked_training_taken_up_again_is_the_one_never_interrupted() -> None:
    plan = replace(PLAN, carriers=(("0", 2), ("2", 2)))

    def rule(released: Mapping[str, Tensor]) -> dict[str, Kept]:
        return {"2.weight": without_smallest_units(released["2.weight"], 0.3)}

    found = []
    for stop in (None, 5):
        with new_run():
            module, inputs, targets = made(CASES["mlp"], "again")
            source = SeededSource(1, "again")
            arguments = (module, inputs, targets, plan, source)
            with PrivateTraining(*arguments, masks=rule, renews_masks=True) as training:
                training.run(stop)
                content = training.snapshot()
                training.finish()
        if stop is not None:
            with new_run():
                arguments = (*arguments[:4], SeededSource(1, "again"))
                with PrivateTraining(*arguments, masks=rule, renews_masks=True) as training:
                    training.restore(content)
                    training.run()
                    training.finish()
        found.append(weights(module))
    assert torch.equal(found[0], found[1])


def test_factors_may_be_clipped_apart_by_their_names() -> None:
    names = ("0.weight.left", "0.weight.right", "0.bias", "2", "4")
    plan = replace(PLAN, carriers=(("0", 2),), clipping=EachAtFullBound(0.3, names))
    module, inputs, targets = made(CASES["mlp"], "apart")
    assert train(module, inputs, targets, plan, SeededSource(1, "apart")).moved > 0


def test_a_rank_above_the_smaller_side_and_a_carried_table_are_refused() -> None:
    module, inputs, targets = made(CASES["mlp"], "rank")
    with pytest.raises(BadParameter, match=r"<= 3, the smaller side of 4\.weight"):
        plan = replace(PLAN, carriers=(("", 4),))
        train(module, inputs, targets, plan, SeededSource(1, "rank"))
    module, inputs, targets = made(CASES["embedding"], "table")
    plan = replace(PLAN, carriers=(("", 2),))
    with pytest.raises(UnsupportedModule, match="of a Embedding cannot be carried"):
        train(module, inputs, targets, plan, SeededSource(1, "table"))
