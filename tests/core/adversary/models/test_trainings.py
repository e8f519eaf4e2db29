"""The auditor on whole trainings: what would escape the noise is refused, every time.

Three modules leak one record past the noise of private SGD. With the engine's guards taken away
the auditor finds each of them above the epsilon that is proved; with the guards there is nothing
to audit, whatever the seed.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from noisefloor.accounting.bounds import gaussian_delta
from noisefloor.adversary.audit.held_out import held_out_bound
from noisefloor.errors import UnsupportedModule
from noisefloor.privacy import LowerBound
from noisefloor.publication.private_sgd import SgdPlan, train, training
from noisefloor.publication.private_sgd.module_state import ModuleState
from noisefloor.randomness import SeededSource, new_run

RECORDS, WIDTH = 60, 8
DELTA, ALPHA, GAMES = 1e-5, 1e-6, 120
MULTIPLIER = 8.0


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon of mu-Gaussian privacy at delta, by bisection between 0 and 8."""
    low, high = 0.0, 8.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        is_below = float(gaussian_delta(middle, mu)) > delta
        low, high = (middle, high) if is_below else (low, middle)
    return low


PROVED = gaussian_epsilon(1 / MULTIPLIER, DELTA)
"""Of one step on all records: about a half."""


class RunningMean(nn.Module):
    """Keeps the mean of what it was given in a buffer."""

    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(WIDTH, 3)
        self.register_buffer("mean", torch.zeros(WIDTH))

    def forward(self, values: Tensor) -> Tensor:
        with torch.no_grad():
            self.mean.lerp_(values.mean(0), 0.1)
        logits: Tensor = self.head(values)
        return logits


class Centred(nn.Module):
    """Takes away the mean of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, values: Tensor) -> Tensor:
        logits: Tensor = self.head(values - values.mean(0))
        return logits


def renormed() -> nn.Module:
    """Return a table whose rows are cut to length one whenever they are looked up."""
    module = nn.Sequential(nn.Embedding(RECORDS, WIDTH, max_norm=1.0), nn.Linear(WIDTH, 3))
    nn.init.ones_(module[0].weight)  # type: ignore[arg-type]
    return module


def row_of_zeros_but_one() -> Tensor:
    """Return records that are zero, and the canary, which is far away."""
    values = torch.zeros(RECORDS, WIDTH)
    values[-1, 0] = 100.0
    return values


class Leak(NamedTuple):
    """A module, records of which the last is the canary, and what gives it away."""

    make: Callable[[], nn.Module]
    inputs: Tensor
    score: Callable[[nn.Module], Tensor]
    refusal: str


LEAKS = {
    "max_norm": Leak(
        renormed,
        torch.arange(RECORDS - 6, RECORDS),  # few: the slow road takes them
        lambda module: -module[0].weight[-1].norm(),  # type: ignore[index]
        r"0 \(Embedding\) has a max_norm",
    ),
    "buffer": Leak(
        RunningMean,
        row_of_zeros_but_one(),
        lambda module: module.mean[0],  # type: ignore[index]
        "mean changes in a forward pass",
    ),
    "batch centring": Leak(
        Centred,
        row_of_zeros_but_one(),
        lambda module: -module.head.weight[0, 0],  # type: ignore[index,union-attr]
        "depends on the others in its batch",
    ),
}


def play(leak: Leak, plan: SgdPlan, *path: str | int, is_in: bool) -> float:
    """Train once, with the canary or without it, and return the score of what is released."""
    count = len(leak.inputs) - (not is_in)
    module = leak.make()
    if hasattr(module, "head"):
        nn.init.zeros_(module.head.weight)  # type: ignore[arg-type,union-attr]
    labels = torch.zeros(count, dtype=torch.int64)
    with new_run():
        train(module, leak.inputs[:count], labels, plan, SeededSource(9, *path, int(is_in)))
    with torch.no_grad():
        return float(leak.score(module))


def audit(name: str) -> LowerBound:
    """Return the epsilon that trainings of one step on all records prove; wrong once in 1e6."""
    plan = SgdPlan(
        examples=RECORDS,
        expected_batch=RECORDS,
        steps=1,
        noise_multiplier=MULTIPLIER,
        optimiser="sgd",
        learning_rate=0.01,
    )
    inside, outside = (
        np.array([play(LEAKS[name], plan, name, game, is_in=is_in) for game in range(GAMES)])
        for is_in in (True, False)
    )
    return held_out_bound(inside, outside, alpha=ALPHA, delta=DELTA)


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_refused_with_every_seed(name: str) -> None:
    """Two records a step: with some seeds the first samples have one record, or none."""
    plan = SgdPlan(examples=RECORDS, expected_batch=2, steps=3, noise_multiplier=1.0)
    refused = 0
    for seed in range(40):
        try:
            play(LEAKS[name], plan, "refused", seed, is_in=True)
        except UnsupportedModule as error:
            refused += LEAKS[name].refusal.replace("\\", "") in str(error)
    assert refused == 40


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let every module be trained, as if it had passed all checks."""
    monkeypatch.setattr(training, "check_module", lambda _: None)
    monkeypatch.setattr(training.PrivateTraining, "_dry_run", lambda _: None)
    return monkeypatch


@pytest.mark.statistical
@pytest.mark.parametrize("name", LEAKS)
def test_without_the_guards_the_auditor_finds_the_leak(
    name: str, unchecked: pytest.MonkeyPatch
) -> None:
    """The twin: what was refused above does leak, and the auditor sees more than is proved."""
    unchecked.setattr(ModuleState, "put_back", lambda _: None)
    assert audit(name).epsilon > 2 * PROVED


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["max_norm", "buffer"])
def test_what_is_put_back_leaks_nothing(name: str, unchecked: pytest.MonkeyPatch) -> None:
    """Should a check have missed it: what a pass changed is gone before it is released."""
    assert audit(name).epsilon <= PROVED
