"""Sums of clipped gradients are those of a loop over examples, and of Opacus."""

import warnings
from collections.abc import Sequence

import pytest
import torch
from torch import nn

from noisefloor.errors import UnsupportedModule
from noisefloor.publication.private_sgd import Automatic, Flat, PerGroup, cross_entropy
from noisefloor.publication.private_sgd.bookkeeping import BookKeeping, find_untapped_layers
from noisefloor.publication.private_sgd.contributions import (
    NonFiniteExamples,
    OuterProduct,
    SummedOuterProducts,
)
from noisefloor.publication.private_sgd.layer_taps import ConvolutionTap, GroupNormTap, Tap
from noisefloor.publication.private_sgd.lookup_gradients import EmbeddingLookups
from noisefloor.publication.private_sgd.matrix_gradients import Parted
from noisefloor.publication.private_sgd.parameters import FlatParameters
from noisefloor.publication.private_sgd.per_example import PerExample
from noisefloor.publication.private_sgd.recurrent_taps import RecurrentTap, RecurrentTrace
from noisefloor.publication.private_sgd.tied_weights import TiedTable
from private_sgd_cases import (
    CASES,
    EXAMPLES,
    SLOW_CASES,
    Case,
    clipped_sum,
    engine_sum,
    gap,
    gradients_one_by_one,
    made,
)

CLOSE = 1e-5
CLIPPINGS = (
    *(Flat(0.05), Flat(1.0), Flat(100.0), Automatic(1.0, 0.01)),
    *(PerGroup((("", 0.3), ("head", 0.1), ("0", 0.2))),),
)


def distance(name: str, clipping: Flat | Automatic | PerGroup) -> float:
    """Return how far the engine is from the loop, on the larger of one and the bound."""
    case = CASES[name]
    module, inputs, targets = made(case, name)
    expected = clipped_sum(gradients_one_by_one(module, inputs, targets, case.loss), clipping)
    found = engine_sum(module, inputs, targets, loss=case.loss, clipping=clipping)
    size = max(float(one.abs().max()) for one in expected.values())
    return gap(found, expected) / max(size, 1.0)


@pytest.mark.parametrize("clipping", CLIPPINGS, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_the_sum_is_that_of_a_loop_over_examples(
    name: str, clipping: Flat | Automatic | PerGroup
) -> None:
    assert distance(name, clipping) < CLOSE


NEW_KINDS = [
    "gru of two layers",
    "group norm of rows",
    "two groups",
    "depthwise",
    "heads and positions",
    "tied",
    "encoder-decoder",
    "encoder-decoder of two layers",
    "encoder-decoder, tied",
    "gru encoder-decoder",
]


@pytest.mark.parametrize("name", NEW_KINDS)
def test_in_double_floats_sums_and_norms_are_those_of_the_loop_to_1e_minus_12(name: str) -> None:
    case = CASES[name]
    module, inputs, targets = made(case, name)
    module.double()
    inputs = inputs.double() if inputs.is_floating_point() else inputs
    rows = gradients_one_by_one(module, inputs, targets, case.loss)
    clipping = Flat(1e6)
    found = engine_sum(module, inputs, targets, loss=case.loss, clipping=clipping)
    assert gap(found, clipped_sum(rows, clipping)) < 1e-12
    flat = FlatParameters(module)
    with BookKeeping(
        module, flat, torch.zeros_like(flat.vector), loss=case.loss, clipping=clipping
    ) as adding:
        squares = adding.clip((inputs,), targets).squares[0]
    expected = torch.cat(list(rows.values()), 1).square().sum(1)
    assert torch.allclose(squares, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["mlp", "lstm", "cnn", "attention", "generator", *NEW_KINDS])
def test_parts_of_a_batch_add_up(name: str) -> None:
    case = CASES[name]
    module, inputs, targets = made(case, name)
    whole = engine_sum(module, inputs, targets, loss=case.loss, clipping=Flat(0.1))
    parts = (slice(0, 2), slice(2, 3), slice(3, EXAMPLES))
    cut = engine_sum(module, inputs, targets, loss=case.loss, clipping=Flat(0.1), parts=parts)
    assert gap(whole, cut) < 1e-6


@pytest.mark.parametrize("name", ["mlp", "cnn", "attention", "embedding", "used twice"])
def test_the_slow_road_leads_to_the_same_place(name: str) -> None:
    case = CASES[name]
    module, inputs, targets = made(case, name)
    expected = clipped_sum(gradients_one_by_one(module, inputs, targets, case.loss), Flat(0.1))
    found = engine_sum(
        module, inputs, targets, loss=case.loss, clipping=Flat(0.1), road=PerExample
    )
    assert gap(found, expected) < CLOSE


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("clipping", [Flat(0.1), PerGroup.of({"": 0.3, "head": 0.1})], ids=str)
@pytest.mark.parametrize("name", SLOW_CASES)
def test_layers_without_a_tap_sum_up_to_the_loop(name: str, clipping: Flat | PerGroup) -> None:
    module, inputs, targets = made(SLOW_CASES[name], name)
    expected = clipped_sum(gradients_one_by_one(module, inputs, targets, cross_entropy), clipping)
    found = engine_sum(
        module, inputs, targets, loss=cross_entropy, clipping=clipping, road=PerExample
    )
    assert gap(found, expected) < CLOSE


@pytest.mark.parametrize("road", [BookKeeping, PerExample])
def test_the_norm_of_each_group_is_that_of_the_loop(
    road: type[BookKeeping] | type[PerExample],
) -> None:
    """Each group's own, and no norm of one group in the place of another's."""
    clipping = PerGroup.of({"": 0.3, "2": 0.1, "4": 0.2})
    module, inputs, targets = made(CASES["mlp"], "groups")
    rows = gradients_one_by_one(module, inputs, targets, cross_entropy)
    flat = FlatParameters(module)
    with road(
        module, flat, torch.zeros_like(flat.vector), loss=cross_entropy, clipping=clipping
    ) as adding:
        clipped = adding.clip((inputs,), targets)
    for group, layer in enumerate("024"):
        own = torch.cat([one for name, one in rows.items() if name.startswith(layer)], 1)
        assert torch.allclose(clipped.squares[group].double(), own.square().sum(1), rtol=1e-5)
    assert len(clipped.squares) == len(clipped.factors) == 3


def test_where_vmap_has_no_rule_examples_go_one_by_one() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(8, 4, batch_first=True, bidirectional=True)
            self.head = nn.Linear(8, 3)

        def forward(self, values: torch.Tensor) -> torch.Tensor:
            if float(values.detach().sum()) == 0:  # data-dependent: vmap refuses
                return torch.zeros(len(values), 3)
            logits: torch.Tensor = self.head(self.lstm(values)[0].mean(1))
            return logits

    module, inputs, targets = made(Case(Both, (5, 8)), "both")
    expected = clipped_sum(gradients_one_by_one(module, inputs, targets, cross_entropy), Flat(0.1))
    found = engine_sum(
        module, inputs, targets, loss=cross_entropy, clipping=Flat(0.1), road=PerExample
    )
    assert gap(found, expected) < CLOSE


@pytest.mark.parametrize(
    "name",
    ["mlp", "cnn", "attention", "embedding", "layer norm", "convolution 1d", "linear on a grid"],
)
def test_the_sum_is_that_of_opacus(name: str) -> None:
    case = CASES[name]
    module, inputs, targets = made(case, name)
    found = engine_sum(module, inputs, targets, loss=case.loss, clipping=Flat(0.1))
    assert (
        gap(found, clipped_sum(opacus_gradients(module, inputs, targets, case), Flat(0.1))) < CLOSE
    )


def test_the_sum_of_an_lstm_is_that_of_opacus() -> None:
    from opacus.layers import DPLSTM

    case = CASES["lstm"]
    module, inputs, targets = made(case, "lstm")
    inputs.clamp_(min=1)  # Opacus 1.6.0 trains the padding token, which torch does not
    found = engine_sum(module, inputs, targets, loss=case.loss, clipping=Flat(0.1))
    theirs = DPLSTM(6, 5, batch_first=True)
    theirs.load_state_dict(module.lstm.state_dict())  # type: ignore[union-attr]
    module.lstm = theirs
    expected = clipped_sum(opacus_gradients(module, inputs, targets, case), Flat(0.1))
    assert gap(found, expected) < CLOSE


def opacus_gradients(
    module: nn.Module, inputs: torch.Tensor, targets: torch.Tensor, case: Case
) -> dict[str, torch.Tensor]:
    from opacus.grad_sample import GradSampleModule

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrapped = GradSampleModule(module, loss_reduction="sum")
        case.loss(wrapped(inputs), targets).sum().backward()  # type: ignore[no-untyped-call] # torch's own
    found = {
        name.removeprefix("_module."): one.grad_sample.reshape(len(targets), -1).double()
        for name, one in wrapped.named_parameters()
        if one.requires_grad
    }
    wrapped.remove_hooks()
    return found


# What the tests above are worth: each of these faults has to be seen by the same distance.


def test_forgetting_the_bias_in_the_norm_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_bias(self: OuterProduct) -> torch.Tensor:
        return self._gradients.square().sum(1) * self._inputs.square().sum(1)

    monkeypatch.setattr(OuterProduct, "squares", without_bias)
    assert distance("mlp", Flat(0.05)) > 10 * CLOSE


def test_forgetting_that_time_steps_add_up_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def step_by_step(self: SummedOuterProducts) -> torch.Tensor:
        inputs = self._pairs[0][0].square().sum(2) + len(self._biases)
        return (inputs * self._gradients.square().sum(2)).sum(1)

    monkeypatch.setattr(SummedOuterProducts, "squares", step_by_step)
    assert distance("lstm", Flat(0.05)) > 10 * CLOSE


def test_forgetting_that_tokens_repeat_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = EmbeddingLookups.squares

    def apart(self: EmbeddingLookups) -> torch.Tensor:
        return 0.5 * plain(self)

    monkeypatch.setattr(EmbeddingLookups, "squares", apart)
    assert distance("embedding", Flat(0.05)) > 10 * CLOSE


def test_forgetting_that_a_gru_resets_its_state_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = RecurrentTap._rows

    def unreset(self: RecurrentTap, number: int, used: Sequence[RecurrentTrace]) -> Parted:
        for trace in used:
            trace.back_gradients = trace.gradients
        return plain(self, number, used)

    monkeypatch.setattr(RecurrentTap, "_rows", unreset)
    assert distance("gru", Flat(0.05)) > 10 * CLOSE


def test_normalising_all_channels_together_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = GroupNormTap._parts

    def together(self: GroupNormTap, used: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Parted:
        self.layer.num_groups, kept = 1, self.layer.num_groups
        try:
            return plain(self, used)
        finally:
            self.layer.num_groups = kept

    monkeypatch.setattr(GroupNormTap, "_parts", together)
    assert distance("two groups", Flat(0.05)) > 10 * CLOSE


def test_channels_in_other_groups_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = ConvolutionTap._grouped

    def turned(
        self: ConvolutionTap, windows: torch.Tensor, gradients: torch.Tensor
    ) -> torch.Tensor:
        return plain(self, windows.flip(2), gradients)

    monkeypatch.setattr(ConvolutionTap, "_grouped", turned)
    assert distance("two groups", Flat(0.05)) > 10 * CLOSE


def test_norms_of_tied_uses_apart_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lookups and logits of one table point in other directions: their norms do not add up."""

    def apart(self: TiedTable) -> torch.Tensor:
        linear = SummedOuterProducts([(self._inputs, self._table)], self._gradients, [])
        looked_up = EmbeddingLookups(self._places, self._lookups, size=len(self._table))
        return linear.squares() + looked_up.squares()

    monkeypatch.setattr(TiedTable, "squares", apart)
    assert distance("tied", Flat(0.05)) > 10 * CLOSE


def test_forgetting_that_positions_of_heads_add_up_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def one_by_one(self: SummedOuterProducts) -> torch.Tensor:
        inputs = sum(one.square().sum(2) for one, _ in self._pairs) + len(self._biases)
        return (inputs * self._gradients.square().sum(2)).sum(1)

    monkeypatch.setattr(SummedOuterProducts, "squares", one_by_one)
    assert distance("heads and positions", Flat(0.05)) > 10 * CLOSE


def test_a_table_of_positions_that_is_not_repeated_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        Tap, "examples", property(lambda _: None, lambda _, value: None), raising=False
    )
    with pytest.raises(UnsupportedModule, match="first axis is not that of the examples"):
        distance("heads and positions", Flat(0.05))


def test_clipping_the_mean_is_seen() -> None:
    case = CASES["mlp"]
    module, inputs, targets = made(case, "mlp")
    gradients = gradients_one_by_one(module, inputs, targets, case.loss)
    mean = {name: rows.mean(0, keepdim=True) for name, rows in gradients.items()}
    faulty = {name: EXAMPLES * one for name, one in clipped_sum(mean, Flat(0.05)).items()}
    found = engine_sum(module, inputs, targets, loss=case.loss, clipping=Flat(0.05))
    assert gap(found, faulty) > 10 * CLOSE


# What is left of a module, and what is refused.


def test_outside_the_context_the_module_is_as_it_was() -> None:
    module, inputs, targets = made(CASES["half frozen"], "left")
    before = module(inputs)
    flags = [one.requires_grad for one in module.parameters()]
    engine_sum(module, inputs, targets, loss=cross_entropy, clipping=Flat(1.0))
    assert torch.equal(module(inputs), before)
    assert [one.requires_grad for one in module.parameters()] == flags
    assert not any("forward" in vars(layer) for layer in module.modules())
    storages = {one.untyped_storage().data_ptr() for one in module.parameters()}
    assert len(storages) == len(list(module.parameters()))


def test_an_example_without_a_number_is_named_to_the_training() -> None:
    module, inputs, targets = made(CASES["mlp"], "nan")
    inputs[3, 2] = float("nan")
    with pytest.raises(NonFiniteExamples) as found:
        engine_sum(module, inputs, targets, loss=cross_entropy, clipping=Flat(1.0))
    assert found.value.broken.nonzero().tolist() == [[3]]


def test_an_input_that_is_changed_after_its_use_is_refused() -> None:
    class Late(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(8, 8), nn.Linear(8, 3)

        def forward(self, values: torch.Tensor) -> torch.Tensor:
            hidden = torch.sigmoid(self.one(values))
            logits: torch.Tensor = self.two(hidden)
            hidden.mul_(2.0)
            return logits

    module, inputs, targets = made(Case(Late, (8,)), "late")
    with pytest.raises(UnsupportedModule, match="into a Linear is changed in place afterwards"):
        engine_sum(module, inputs, targets, loss=cross_entropy, clipping=Flat(1.0))


def test_a_loss_that_is_already_a_mean_is_refused() -> None:
    module, inputs, targets = made(CASES["mlp"], "mean")
    with pytest.raises(UnsupportedModule, match="one number for each example"):
        engine_sum(module, inputs, targets, loss=nn.functional.cross_entropy, clipping=Flat(1.0))


def test_tied_parameters_without_a_rule_take_the_slow_road_by_name() -> None:
    """Norm and linear layer share a bias: the gradient is right, and written out."""

    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 8)
            self.head.bias = self.norm.bias

        def forward(self, values: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.head(self.norm(values))
            return logits

    module, inputs, targets = made(Case(Odd, (8,)), "odd")
    assert find_untapped_layers(module, FlatParameters(module)) == [
        "norm (LayerNorm)",
        "head (Linear)",
    ]
    expected = clipped_sum(gradients_one_by_one(module, inputs, targets, cross_entropy), Flat(0.1))
    found = engine_sum(
        module, inputs, targets, loss=cross_entropy, clipping=Flat(0.1), road=PerExample
    )
    assert gap(found, expected) < CLOSE


def test_parameters_that_share_memory_are_refused() -> None:
    one, two = nn.Linear(4, 4), nn.Linear(4, 4)
    two.weight = nn.Parameter(one.weight.detach().t())
    with pytest.raises(UnsupportedModule, match="shares memory"):
        FlatParameters(nn.Sequential(one, two))


def test_an_unused_layer_says_nothing() -> None:
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used = nn.Linear(8, 3)
            self.idle = nn.Linear(8, 3)

        def forward(self, values: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.used(values)
            return logits

    module, inputs, targets = made(Case(Half, (8,)), "idle")
    found = engine_sum(module, inputs, targets, loss=cross_entropy, clipping=Flat(1.0))
    assert not found["idle.weight"].any()
    assert found["used.weight"].any()


@pytest.mark.parametrize("shape", [(1, 5), (1, 1, 5)], ids=str)
def test_first_states_have_an_example_in_each_row(shape: tuple[int, ...]) -> None:
    """States of another shape would be broadcast, and their gradients summed over examples."""

    class Started(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(8, 5, batch_first=True), nn.Linear(5, 3)

        def forward(self, values: torch.Tensor) -> torch.Tensor:
            start = torch.zeros(shape)
            logits: torch.Tensor = self.head(self.lstm(values, (start, start))[0].mean(1))
            return logits

    module, inputs, targets = made(Case(Started, (4, 8)), "started")
    with pytest.raises(UnsupportedModule, match=r"first states as \[layers, examples, values\]"):
        engine_sum(module, inputs, targets, loss=cross_entropy, clipping=Flat(1.0))


def test_gradients_are_not_left_in_the_module() -> None:
    module, inputs, targets = made(CASES["lstm"], "left")
    flat = FlatParameters(module)
    sums = torch.zeros_like(flat.vector)
    with BookKeeping(module, flat, sums, loss=cross_entropy, clipping=Flat(1.0)) as adding:
        adding.clip((inputs,), targets).add()
    assert all(one.grad is None for one in module.parameters())
