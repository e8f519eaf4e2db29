"""One example's share: it never says more than the bound."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from noisefloor.publication.private_sgd import (
    Automatic,
    Flat,
    PerGroup,
    contributions,
    cross_entropy,
)
from noisefloor.publication.private_sgd.contributions import (
    NonFiniteExamples,
    OuterProduct,
    SummedOuterProducts,
    clip_factors,
)
from noisefloor.randomness import new_run
from private_sgd_cases import CASES, Case, engine_sum, made
from properties import examples


@examples(60)
@given(
    name=st.sampled_from(
        [
            *("mlp", "cnn", "attention", "linear on few positions", "used twice"),
            *("two groups", "tied", "gru", "heads and positions"),
        ]
    ),
    scale=st.sampled_from([0.0, 1e-20, 1e-3, 1.0, 1e3, 1e6, 1e12]),
    clipping=st.sampled_from(
        [Flat(1.0), Flat(1e-3), Automatic(1.0), PerGroup.of({"": 0.3, "head": 0.4, "0": 0.5})]
    ),
    path=st.integers(0, 5),
)
def test_no_example_says_more_than_the_bound(
    name: str, scale: float, clipping: Flat | Automatic | PerGroup, path: int
) -> None:
    with new_run():
        module, inputs, targets = made(CASES[name], name, path, scale=scale)
    try:
        found = engine_sum(
            module, inputs[:1], targets[:1], loss=CASES[name].loss, clipping=clipping
        )
    except NonFiniteExamples:
        assert scale > 1e3  # only what floats cannot hold counts as zero
        return
    share = float(torch.cat(list(found.values())).norm())
    assert share <= clipping.sensitivity


def cancelling_share(path: int, size: float, rest: float) -> float:
    """Return what one example says whose positions cancel but for a small rest."""
    case = Case(lambda: nn.Sequential(nn.Linear(30, 40), nn.Flatten(), nn.Linear(160, 3)), (4, 30))
    with new_run():
        module, inputs, targets = made(case, "cancel", path)
    inputs[:, 1], inputs[:, 3] = inputs[:, 0], inputs[:, 2]
    with torch.no_grad():
        head = module[2].weight  # type: ignore[index]
        head[:, 40:80] = -head[:, :40] * (1 + rest)
        head[:, 120:] = -head[:, 80:120] * (1 + rest)
        head *= size
    for parameter in module[2].parameters():  # type: ignore[index]
        parameter.requires_grad_(False)
    found = engine_sum(
        module, inputs[:1], targets[:1], loss=lambda out, _: out[:, 0], clipping=Flat(1.0)
    )
    return float(torch.cat(list(found.values())).norm())


@examples(60)
@given(
    st.integers(0, 1000),
    st.sampled_from([1.0, 1e2, 1e4, 1e6]),
    st.sampled_from([0.1, 1e-2, 1e-3, 1e-4, 1e-5]),
)
def test_cancelling_positions_do_not_hide_a_gradient(path: int, size: float, rest: float) -> None:
    """Gram matrices lose the digits that are left over; the share stays bounded all the same."""
    assert cancelling_share(path, size, rest) <= 1.0


def test_without_a_margin_for_cancellation_a_gradient_passes_unclipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twin: norms from bare float32 Gram matrices let one example say 100 times the bound."""
    monkeypatch.setattr(contributions, "_CANCELLED", 0)
    assert max(cancelling_share(path, 1e6, 1e-4) for path in range(20)) > 100


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("faint", [1e-22, 3e-23, 2e-23, 1e-25, 0.0])
def test_squares_that_underflow_do_not_hide_a_gradient(faint: float, is_turned: bool) -> None:
    """A faint side times a huge one; alone (one row) and by Gram matrices (two)."""
    huge, bound = 5e17, 1e-6
    first, second = (huge, faint) if is_turned else (faint, huge)
    for rows in (1, 2):
        gradients, inputs = torch.full((1, rows, 30), first), torch.full((1, rows, 40), second)
        sums = torch.zeros(30, 40)
        share = (
            OuterProduct(inputs[:, 0], gradients[:, 0], weight=sums, bias=None)
            if rows == 1
            else SummedOuterProducts([(inputs, sums)], gradients, [])
        )
        share.add(clip_factors(Flat(bound), [share.squares()])[0])
        assert float(sums.double().norm()) <= bound


@pytest.mark.parametrize("clipping", [Flat(1.0), Automatic(1.0)])
def test_gradients_that_vanish_stay_zero(clipping: Flat | Automatic) -> None:
    module, inputs, targets = made(CASES["attention"], "vanish")
    found = engine_sum(
        module, inputs, targets, loss=lambda out, _: 0.0 * out.sum(1), clipping=clipping
    )
    assert all(not one.any() for one in found.values())


def test_automatic_clipping_scales_small_gradients_up() -> None:
    module, inputs, targets = made(CASES["mlp"], "small", scale=1.0)

    def faint(outputs: Tensor, labels: Tensor) -> Tensor:
        return 1e-3 * cross_entropy(outputs, labels)

    found = engine_sum(module, inputs[:1], targets[:1], loss=faint, clipping=Automatic(1.0, 1e-6))
    assert float(torch.cat(list(found.values())).norm()) == pytest.approx(1.0, abs=0.01)
