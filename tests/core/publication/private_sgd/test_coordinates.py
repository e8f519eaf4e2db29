"""Coordinates that are left out are in no norm, no sum, no noise, no state and no weight."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from noisefloor.errors import BadParameter, UnsupportedModule
from noisefloor.publication.private_sgd import (
    Flat,
    KeptEntries,
    KeptUnits,
    ParameterGroup,
    PrivateTraining,
    SgdPlan,
    cross_entropy,
    initialise,
    train,
    without_smallest_entries,
    without_smallest_units,
)
from noisefloor.publication.private_sgd.bookkeeping import BookKeeping
from noisefloor.publication.private_sgd.coordinates import GradientLayout
from noisefloor.publication.private_sgd.masks import Kept
from noisefloor.publication.private_sgd.parameters import FlatParameters
from noisefloor.publication.private_sgd.per_example import PerExample
from noisefloor.randomness import SeededSource, new_run
from private_sgd_cases import CASES, PLAN, Case, gradients_one_by_one, made, weights
from properties import examples

CLOSE = 1e-5


def flags(count: int, *left_out: int) -> Tensor:
    kept = torch.ones(count, dtype=torch.bool)
    kept[list(left_out)] = False
    return kept


def some_of(shape: torch.Size, salt: int = 0) -> Tensor:
    """Return flags of about two thirds, without visible order."""
    places = torch.arange(shape.numel())
    return ((places * 7 + salt) % 11 % 3 > 0).view(shape)


def all_kinds(module: nn.Module, kind: str) -> dict[str, Kept]:
    """Return masks of one kind for every parameter of a module."""
    kept: dict[str, Kept] = {}
    for name, one in module.named_parameters():
        if kind == "entries":
            kept[name] = KeptEntries(some_of(one.shape))
        else:
            rows = some_of(one.shape[:1])
            has_columns = one.dim() > 1 and kind == "both"
            columns = some_of(one.shape[1:2], 1) if has_columns else None
            kept[name] = KeptUnits(rows, columns)
    return kept


def flat_flags(kept: Kept, shape: torch.Size) -> Tensor:
    """Return a flag for each coordinate, by the definition."""
    found = torch.ones(shape, dtype=torch.bool)
    if isinstance(kept, KeptEntries):
        return kept.entries.reshape(-1)
    if kept.rows is not None:
        found[~kept.rows] = False
    if kept.columns is not None:
        found[:, ~kept.columns] = False
    return found.reshape(-1)


def distance(
    name: str, kind: str, road: type[BookKeeping] | type[PerExample], bound: float = 0.05
) -> float:
    """Return how far sums of masked gradients are from those of a loop over examples."""
    case = CASES[name]
    with new_run():
        module, inputs, targets = made(case, name)
    kept = all_kinds(module, kind)
    rows = gradients_one_by_one(module, inputs, targets, case.loss)
    shapes = {name: one.shape for name, one in module.named_parameters()}
    left = torch.cat([rows[one][:, flat_flags(kept[one], shapes[one])] for one in rows], 1)
    expected = (bound / left.norm(dim=1).clamp(min=1e-300)).clamp(max=1) @ left
    flat = FlatParameters(module)
    layout = GradientLayout(flat.named, Flat(bound), kept=kept)
    sums = torch.zeros(layout.size)
    with road(module, flat, sums, loss=case.loss, clipping=Flat(bound), layout=layout) as adding:
        adding.clip((inputs,), targets).add()
    assert layout.size == sum(int(flat_flags(kept[one], shapes[one]).sum()) for one in rows)
    return float((sums.double() - expected).abs().max())


@pytest.mark.parametrize("kind", ["rows", "both", "entries"])
@pytest.mark.parametrize(
    "name",
    [
        *("mlp", "linear on few positions", "linear on many positions", "embedding", "layer norm"),
        *("cnn", "lstm", "gru", "two groups", "heads and positions"),
    ],
)
def test_sums_and_norms_are_those_of_the_kept_coordinates(name: str, kind: str) -> None:
    assert distance(name, kind, BookKeeping) < CLOSE


@pytest.mark.parametrize("kind", ["rows", "both", "entries"])
@pytest.mark.parametrize("name", ["cnn", "tied"])
def test_on_the_slow_road_as_well(name: str, kind: str) -> None:
    assert distance(name, kind, PerExample) < CLOSE


@examples(40)
@given(
    name=st.sampled_from(["mlp", "linear on few positions", "cnn"]),
    kind=st.sampled_from(["rows", "both", "entries"]),
    scale=st.sampled_from([1e-20, 1e-3, 1.0, 1e3, 1e6]),
    divisor=st.sampled_from([1e-4, 1.0, 1e4]),
)
def test_no_example_says_more_than_the_bound_of_what_is_kept(
    name: str, kind: str, scale: float, divisor: float
) -> None:
    with new_run():
        module, inputs, targets = made(CASES[name], name, scale=scale)
    kept = all_kinds(module, kind)
    flat = FlatParameters(module)
    layout = GradientLayout(flat.named, Flat(0.1), kept=kept, scale_of=lambda _: divisor)
    sums = torch.zeros(layout.size)
    with BookKeeping(
        module, flat, sums, loss=cross_entropy, clipping=Flat(0.1), layout=layout
    ) as adding:
        adding.clip((inputs[:1],), targets[:1]).add()
    assert float(sums.double().norm()) <= 0.1


def test_a_mask_that_is_left_out_of_the_norm_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from noisefloor.publication.private_sgd.matrix_gradients import EntryOuterProduct

    def of_all(self: EntryOuterProduct) -> Tensor:
        return self._gradients.square().sum(1) * self._inputs.square().sum(1)

    monkeypatch.setattr(EntryOuterProduct, "squares", of_all)
    assert distance("mlp", "entries", BookKeeping) > 10 * CLOSE


def test_a_tied_table_is_trained_whole_or_refused() -> None:
    with pytest.raises(UnsupportedModule, match=r"embedding\.weight is tied to an embedding"):
        distance("tied", "rows", BookKeeping)


# A masked training is that of a module without the coordinates.


class OnlyUnits(nn.Module):
    """A linear layer of which some rows and columns are parameters, the rest constants."""

    def __init__(self, layer: nn.Linear, kept: KeptUnits) -> None:
        super().__init__()
        rows, columns = (cast(Tensor, one).nonzero().view(-1) for one in (kept.rows, kept.columns))
        self.trained = nn.Linear(len(columns), len(rows), bias=False, dtype=torch.float64)
        with torch.no_grad():
            self.trained.weight.copy_(layer.weight[rows][:, columns])
            rest = layer.weight.detach().clone()
            rest[rows.unsqueeze(1), columns] = 0
        self.bias = nn.Parameter(layer.bias.detach().clone(), requires_grad=False)
        self.rest, self.columns = rest, columns
        self.spread = torch.eye(len(rest), dtype=torch.float64)[rows]

    def forward(self, values: Tensor) -> Tensor:
        own: Tensor = self.trained(values[:, self.columns]) @ self.spread
        return nn.functional.linear(values, self.rest, self.bias) + own


class OnlyEntries(nn.Module):
    """A linear layer of which some entries are parameters, the rest constants."""

    def __init__(self, layer: nn.Linear, kept: KeptEntries) -> None:
        super().__init__()
        self.trained = nn.Parameter(layer.weight.detach()[kept.entries].clone())
        self.bias = nn.Parameter(layer.bias.detach().clone(), requires_grad=False)
        self.rest, self.entries = layer.weight.detach() * ~kept.entries, kept.entries

    def forward(self, values: Tensor) -> Tensor:
        own = torch.zeros_like(self.rest).masked_scatter(self.entries, self.trained)
        return nn.functional.linear(values, self.rest + own, self.bias)


UNITS = KeptUnits(flags(9, 1, 4, 5), flags(8, 0, 3))
ENTRIES = KeptEntries(some_of(torch.Size([9, 8])))


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
@pytest.mark.parametrize("kept", [UNITS, ENTRIES], ids=["units", "entries"])
def test_masked_training_is_training_without_those_coordinates(
    kept: KeptUnits | KeptEntries, optimiser: str
) -> None:
    """Same samples, same noise on what is kept, in double floats; with decay and averages."""
    plan = replace(PLAN, optimiser=optimiser, weight_decay=0.1, clipping=Flat(0.3))  # type: ignore[arg-type]
    found = []
    for is_masked in (True, False):
        with new_run():
            module, inputs, targets = made(CASES["mlp"], "without")
            module.double()
            first = cast(nn.Linear, cast(nn.Sequential, module)[0])
            first.bias.requires_grad_(False)
            rule = None
            if is_masked:
                rule = lambda _: {"0.weight": kept}  # noqa: E731
            else:
                kind = OnlyUnits if isinstance(kept, KeptUnits) else OnlyEntries
                module[0] = kind(first, kept)  # type: ignore[operator,arg-type]
            source = SeededSource(1, "without")
            report = train(module, inputs.double(), targets, plan, source, masks=rule)
        found.append(module)
        assert report.coordinates == (36 if isinstance(kept, KeptUnits) else 45) + 90 + 30
    masked, other = (cast(nn.Sequential, one) for one in found)
    own = cast(nn.Linear, masked[0]).weight.detach().reshape(-1)
    own = own[flat_flags(kept, torch.Size([9, 8]))]
    trained = cast("OnlyEntries | OnlyUnits", other[0]).trained
    theirs = trained if isinstance(trained, nn.Parameter) else trained.weight
    assert float((own - theirs.detach().reshape(-1)).abs().max()) < 1e-9
    for place in (2, 4):
        assert float((weights(masked[place]) - weights(other[place])).abs().max()) < 1e-9


def released(
    value: float, masks: Mapping[str, Kept] | None, optimiser: str, road: bool
) -> tuple[bytes, bytes]:
    """Return the weights and the checkpoint of a run with one odd example."""
    plan = SgdPlan(
        examples=7,
        expected_batch=5,
        steps=6,
        noise_multiplier=0.5,
        optimiser=optimiser,  # type: ignore[arg-type]
        averaging=0.5,
        groups=(ParameterGroup("", 0.5),),
    )
    with new_run():
        module, inputs, targets = made(Case(lambda: nn.Linear(8, 3, bias=False), (8,)), "bytes")
        inputs[0] = 0.0
        inputs[0, :3] = value
        source = SeededSource(1, "bytes")
        rule = None if masks is None else (lambda _: masks)
        with PrivateTraining(
            *(module, inputs, targets, plan, source),
            loss=lambda outputs, _: outputs.sum(1),  # steep everywhere
            masks=rule,
            per_example=road,
        ) as training:
            training.run()
            content = training.snapshot()
            training.finish()
    return weights(module).numpy().tobytes(), content


@pytest.mark.parametrize("road", [False, True])
@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
@pytest.mark.parametrize("value", [1.0, -1e6])
def test_a_gradient_in_masked_coordinates_alone_changes_no_released_byte(
    value: float, optimiser: str, road: bool
) -> None:
    entries = torch.ones(3, 8, dtype=torch.bool)
    entries[:, :3] = False
    for kept in (KeptUnits(columns=flags(8, 0, 1, 2)), KeptEntries(entries)):
        masks = {"weight": kept}
        assert released(value, masks, optimiser, road) == released(0.0, masks, optimiser, road)
    # The twin: without a mask it does.
    assert released(value, None, optimiser, road)[0] != released(0.0, None, optimiser, road)[0]


# Masks that follow the weights.


def test_a_rule_sees_copies_of_released_weights_and_nothing_else() -> None:
    seen: list[dict[str, Tensor]] = []

    def rule(released: Mapping[str, Tensor]) -> dict[str, Kept]:
        seen.append({name: one.clone() for name, one in released.items()})
        kept = without_smallest_units(released["2.weight"], 0.3)
        for one in released.values():
            one.zero_()
        return {"2.weight": kept}

    module, inputs, targets = made(CASES["mlp"], "rule")
    first = {name: one.detach().clone() for name, one in module.named_parameters()}
    with PrivateTraining(
        module,
        inputs,
        targets,
        PLAN,
        SeededSource(1, "rule"),
        masks=rule,
        renews_masks=True,
    ) as training:
        training.run(3)
        after = {name: one.detach().clone() for name, one in module.named_parameters()}
        training.run(4)
    assert all(torch.equal(seen[0][name], one) for name, one in first.items())
    assert all(torch.equal(seen[-1][name], one) for name, one in after.items())
    assert len(seen) == 5  # for the dry run, and before each step


@pytest.mark.parametrize("is_reused", [False, True])
def test_what_is_left_out_in_a_step_stands_still_in_it_with_its_momentum(is_reused: bool) -> None:
    """Rows are left out in turns: they move when they are in, and only then."""
    turn, reused = [0], flags(9)

    def rule(_: Mapping[str, Tensor]) -> dict[str, Kept]:
        turn[0] += 1
        now = flags(9, *range(turn[0] % 2, 9, 2))
        return {"0.weight": KeptUnits(rows=reused.copy_(now) if is_reused else now)}

    module, inputs, targets = made(CASES["mlp"], "turns")
    layer = cast(nn.Linear, cast(nn.Sequential, module)[0])
    with PrivateTraining(
        module,
        inputs,
        targets,
        replace(PLAN, averaging=0.0, weight_decay=0.1),
        SeededSource(1, "turns"),
        masks=rule,
        renews_masks=True,
    ) as training:
        for step in range(1, 6):
            before = layer.weight.detach().clone()
            state = training._optimiser.state["first"].clone()
            training.run(step)
            moved = (layer.weight.detach() != before).any(1)
            assert moved.tolist() == [row % 2 != turn[0] % 2 for row in range(9)]
            rows = (training._optimiser.state["first"] != state)[:72].view(9, 8).any(1)
            assert torch.equal(rows, moved)


@pytest.mark.parametrize("renews", [False, True])
def test_a_masked_training_taken_up_again_is_the_one_never_interrupted(renews: bool) -> None:
    def rule(released: Mapping[str, Tensor]) -> dict[str, Kept]:
        return {"0.weight": without_smallest_entries(released["0.weight"], 0.5)}

    found = []
    for is_cut in (False, True):
        with new_run():
            module, inputs, targets = made(CASES["mlp"], "cut")
            if is_cut:
                other = SeededSource(9, "elsewhere")
            source = SeededSource(1, "cut")
            training = PrivateTraining(
                module, inputs, targets, PLAN, source, masks=rule, renews_masks=renews
            )
            with training:
                training.run(5 if is_cut else None)
                content = training.snapshot()
                training.finish()
        if is_cut:
            with new_run():
                initialise(module, other)
                source = SeededSource(1, "cut")
                with PrivateTraining(
                    module, inputs, targets, PLAN, source, masks=rule, renews_masks=renews
                ) as training:
                    training.run(2)  # of other weights, with other masks
                    training.restore(content)
                    training.run()
                    training.finish()
        found.append(weights(module))
    assert torch.equal(found[0], found[1])


# Which are left out, and what is refused.


def test_the_smallest_units_and_entries_are_left_out() -> None:
    matrix = torch.tensor([[1.0, -9.0, 0.1], [0.2, 0.3, 0.1], [5.0, 5.0, 0.0], [0.0, -7.0, 2.0]])
    units = without_smallest_units(matrix, 0.5)
    assert cast(Tensor, units.rows).tolist() == [True, False, True, False]
    assert cast(Tensor, units.columns).tolist() == [True, True, False]
    entries = without_smallest_entries(matrix, 0.75).entries
    assert entries.nonzero().tolist() == [[0, 1], [2, 0], [3, 1]] or int(entries.sum()) == 3
    assert int(without_smallest_entries(torch.zeros(10, 10), 0.3).entries.sum()) == 70
    assert bool(cast(Tensor, without_smallest_units(matrix, 0.0).rows).all())
    for share in (1.0, -0.1, float("nan")):
        with pytest.raises(BadParameter, match="share"):
            without_smallest_units(matrix, share)


@pytest.mark.parametrize(
    ("masks", "rule"),
    [
        ({"9.weight": KeptUnits(flags(9))}, "to name trained parameters"),
        ({"0.weight": KeptUnits(flags(8))}, "a flag for each of 0.weight's rows"),
        ({"0.bias": KeptUnits(columns=flags(9))}, "a flag for each of 0.bias's columns"),
        ({"0.weight": KeptUnits(torch.ones(9))}, "a flag for each"),
        ({"0.weight": KeptEntries(flags(9))}, "flags for 0.weight"),
    ],
)
def test_masks_that_do_not_fit_are_refused(masks: dict[str, Kept], rule: str) -> None:
    module, inputs, targets = made(CASES["mlp"], "fit")
    with pytest.raises(BadParameter, match=rule):
        train(module, inputs, targets, PLAN, SeededSource(1, rule), masks=lambda _: masks)


def test_masks_that_leave_nothing_are_refused() -> None:
    module, inputs, targets = made(CASES["linear without bias"], "nothing")
    nothing = {"weight": KeptUnits(torch.zeros(3, dtype=torch.bool))}
    with pytest.raises(BadParameter, match="leave something to train"):
        train(module, inputs, targets, PLAN, SeededSource(1, "no"), masks=lambda _: nothing)


def test_a_unit_mask_and_its_entries_are_the_same() -> None:
    module, inputs, targets = made(CASES["mlp"], "same")
    flat = FlatParameters(module)
    shape = torch.Size([9, 8])
    both: list[Kept] = [UNITS, KeptEntries(flat_flags(UNITS, shape).view(shape))]
    found = []
    for kept in both:
        layout = GradientLayout(flat.named, Flat(0.1), kept={"0.weight": kept})
        sums = torch.zeros(layout.size)
        with BookKeeping(
            module, flat, sums, loss=cross_entropy, clipping=Flat(0.1), layout=layout
        ) as adding:
            adding.clip((inputs,), targets).add()
        found.append(sums)
    assert torch.allclose(found[0], found[1], atol=1e-6)
