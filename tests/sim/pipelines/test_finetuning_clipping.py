"""A canary that fills every group finds clipping that is not what a plan says."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from finetuning_worlds import layers_plan
from noisefloor.publication.fine_tuning.methods import method_training
from noisefloor.publication.private_sgd import bookkeeping, contributions
from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.pipelines.finetuning.clipping_check import ClippingCheck, check_clipping

Patch = pytest.MonkeyPatch
real_factors = contributions.clip_factors


def checked(trains: str, **parameters: object) -> ClippingCheck:
    with new_run():
        return check_clipping(layers_plan(trains, **parameters), SeededSource(5, "clipping"))


METHODS = (
    *("full", "sparse", "rgp", "lora", "ffa-lora", "bias-only", "combined-rgp", "combined-lora"),
    "head-then-adapters",
)


@pytest.mark.parametrize("clipping", ["joint", "equal", "groups"])
def test_honest_trainings_fill_every_group_and_pass_none(clipping: str) -> None:
    for trains in METHODS:
        found = checked(trains, clipping=clipping)
        assert found.causes == (), trains
        for one in found.canaries:
            assert one.filled == len(one.bounds), trains
            assert one.would_be_found, trains


def unclipped(place: int) -> Callable[..., list[Tensor]]:
    """Clip all groups but one."""

    def factors(clipping: object, squares: list[Tensor]) -> list[Tensor]:
        found = real_factors(clipping, squares)  # type: ignore[arg-type]  # of the plan
        found[place] = torch.ones_like(found[place])
        return found

    return factors


@pytest.mark.parametrize("place", [0, 5, -1])
def test_a_group_that_is_not_clipped_is_named(place: int, monkeypatch: Patch) -> None:
    monkeypatch.setattr(bookkeeping, "clip_factors", unclipped(place))
    (one, *more) = checked("lora", clipping="equal").causes
    groups = 13
    assert f"in group {place % groups + 1} of {groups}, where 0.2774 is the bound" in one
    assert more, "and all of them together are longer than declared"


def test_a_sum_with_other_coordinates_is_named(monkeypatch: Patch) -> None:
    monkeypatch.setattr(method_training, "mask_rule", lambda plan, module: None)
    causes = checked("combined-lora", clipping="joint").causes
    assert "coordinates" in causes[0]


def test_a_part_that_is_clipped_too_much_is_named(monkeypatch: Patch) -> None:
    def halves(clipping: object, squares: list[Tensor]) -> list[Tensor]:
        return [one / 2 for one in real_factors(clipping, squares)]  # type: ignore[arg-type]

    monkeypatch.setattr(bookkeeping, "clip_factors", halves)
    assert "where it fills the bound of 1" in checked("lora").causes[0]
