"""Faults of publishers, one small change each, and what the evidence of a release says of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from noisefloor.mechanisms import TwoSidedGeometric
from noisefloor.publication import logistic_regression
from noisefloor.publication.networks import anonymised_learning, learning_first
from noisefloor.publication.private_sgd import (
    SgdPlan,
    bookkeeping,
    contributions,
    module_checks,
    subsampled_gaussian,
    training,
)
from noisefloor.publication.synthesis import GaussianEntries, LaplaceEntries

Patch = pytest.MonkeyPatch
Fault = Callable[[Patch], None]


def sgd_noise(share: float) -> Fault:
    def plant(patch: Patch) -> None:
        real = subsampled_gaussian.add_noise
        patch.setattr(
            subsampled_gaussian,
            "add_noise",
            lambda sums, scale, source: real(sums, share * scale, source) if share else None,
        )

    return plant


def sgd_plan_noise(patch: Patch) -> None:
    """The plan's own scale is halved: what the proof speaks of is its noise multiplier."""
    scale = property(lambda self: 0.5 * self.noise_multiplier * self.sensitivity)
    patch.setattr(SgdPlan, "noise_scale", scale)


def sgd_reused(patch: Patch) -> None:
    drawn: dict[int, Tensor] = {}

    def add(sums: Tensor, scale: float, source: Any) -> None:
        fresh = torch.from_numpy(source.normals(len(sums)))
        sums.add_(drawn.setdefault(len(sums), fresh), alpha=scale)

    patch.setattr(subsampled_gaussian, "add_noise", add)


def sgd_unclipped(patch: Patch) -> None:
    patch.setattr(
        bookkeeping, "clip_factors", lambda clipping, squares: [torch.ones_like(squares[0])]
    )


def sgd_unused_factors(patch: Patch) -> None:
    """Norms and factors are right, and are not used."""

    def add(self: contributions.ClippedBatch) -> None:
        with torch.no_grad():
            for contribution, group in self.contributions:
                contribution.add(torch.ones_like(self.factors[group]))

    patch.setattr(contributions.ClippedBatch, "add", add)
    # The dry run on made-up examples compares sums, and would refuse this module.
    patch.setattr(module_checks.ModuleDryRun, "check", lambda self, kinds, largest: None)


def sgd_everybody(patch: Patch) -> None:
    patch.setattr(training, "poisson_sample", lambda plan, count, source: None)


def logistic_noise(share: float) -> Fault:
    def plant(patch: Patch) -> None:
        real = logistic_regression._Descent._noise
        patch.setattr(
            logistic_regression._Descent,
            "_noise",
            lambda self, rows, sigma: real(self, rows, sigma) * np.float32(share),
        )

    return plant


def logistic_reused(patch: Patch) -> None:
    real = logistic_regression._Descent._noise
    drawn: dict[int, Any] = {}
    patch.setattr(
        logistic_regression._Descent,
        "_noise",
        lambda self, rows, sigma: drawn.setdefault(rows, real(self, rows, 1.0)) * sigma,
    )


def logistic_unclipped(patch: Patch) -> None:
    patch.setattr(
        logistic_regression._Descent,
        "_limits",
        lambda self: np.full((len(self.features), self.tables), 1e9, np.float32),
    )


def logistic_without_a_tenth(patch: Patch) -> None:
    """Records are left out of the gradients: what is noised is not what the plan says."""
    real = logistic_regression._Descent.gradients

    def gradients(self: Any, weights: Any, bias: Any) -> Any:
        self.present[: len(self.present) // 10] = 0
        return real(self, weights, bias)

    patch.setattr(logistic_regression._Descent, "gradients", gradients)


def table_noise(share: float) -> Fault:
    def plant(patch: Patch) -> None:
        for kind in (LaplaceEntries, GaussianEntries):
            real = kind.add

            def add(self: Any, values: Any, source: Any, real: Any = real) -> Any:
                noise = real(self, values, source) - values
                return values + np.rint(share * noise).astype(np.int64)

            patch.setattr(kind, "add", add)

    return plant


def parameter_noise(share: float) -> Fault:
    def plant(patch: Patch) -> None:
        real = TwoSidedGeometric.sampler

        def sampler(self: Any, source: Any) -> Any:
            draw = real(self, source)
            return lambda count: np.rint(share * draw(count)).astype(np.int64)

        patch.setattr(TwoSidedGeometric, "sampler", sampler)

    return plant


def parameters_unclamped(patch: Patch) -> None:
    real = learning_first.LearningFirst._grid
    patch.setattr(
        learning_first.LearningFirst, "_grid", lambda self, values: real(self, values) * 4
    )


def increment_noise(share: float) -> Fault:
    def plant(patch: Patch) -> None:
        real = anonymised_learning._Step._scale
        patch.setattr(
            anonymised_learning._Step,
            "_scale",
            lambda self, network: real(self, network) * np.float32(share),
        )

    return plant


def increments_unclipped(patch: Patch) -> None:
    patch.setattr(anonymised_learning, "clip_norms", lambda both, norm: None)


RELEASE_FAULTS: dict[str, tuple[str, Fault, str]] = {
    "private-sgd, no noise": ("private-sgd", sgd_noise(0.0), "scale"),
    "private-sgd, half": ("private-sgd", sgd_noise(0.5), "scale"),
    "private-sgd, a quarter less": ("private-sgd", sgd_noise(0.75), "scale"),
    "private-sgd, half in the plan": ("private-sgd", sgd_plan_noise, "scale"),
    "private-sgd, twice": ("private-sgd", sgd_noise(2.0), "scale"),
    "private-sgd, reused": ("private-sgd", sgd_reused, "draw"),
    "private-sgd, unclipped": ("private-sgd", sgd_unclipped, "passes the clipping bound 0.5"),
    "private-sgd, factors unused": (
        "private-sgd",
        sgd_unused_factors,
        "passes the clipping bound",
    ),
    "private-sgd, no sampling": ("private-sgd", sgd_everybody, "share of sampled records is 1"),
    "logistic, no noise": ("logistic", logistic_noise(0.0), "scale"),
    "logistic, half": ("logistic", logistic_noise(0.5), "scale"),
    "logistic, a quarter less": ("logistic", logistic_noise(0.75), "scale"),
    "logistic, reused": ("logistic", logistic_reused, "draw"),
    "logistic, unclipped": ("logistic", logistic_unclipped, "passes the clipping bound 0.3"),
    "logistic, records left out": ("logistic", logistic_without_a_tenth, "recomputation"),
    "laplace cells, no noise": ("laplace cells", table_noise(0.0), "noise"),
    "laplace cells, half": ("laplace cells", table_noise(0.5), "noise"),
    "gaussian cells, no noise": ("gaussian cells", table_noise(0.0), "noise"),
    "gaussian cells, a quarter less": ("gaussian cells", table_noise(0.75), "noise"),
    "label histograms, half": ("label histograms", table_noise(0.5), "noise"),
    "marginal tree, half": ("marginal tree", table_noise(0.5), "noise"),
    "learning-first, no noise": ("learning-first", parameter_noise(0.0), "noise"),
    "learning-first, a quarter less": ("learning-first", parameter_noise(0.75), "noise"),
    "learning-first, unclamped": ("learning-first", parameters_unclamped, "clipping bound"),
    "anonymised-learning, half": ("anonymised-learning", increment_noise(0.5), "scale"),
    "anonymised-learning, a quarter less": ("anonymised-learning", increment_noise(0.75), "scale"),
    "anonymised-learning, unclipped": (
        "anonymised-learning",
        increments_unclipped,
        "clipping bound 1",
    ),
    "clamped, half": ("anonymised-learning, clamped", increment_noise(0.5), "scale"),
}
"""By name: the case it is planted in, the change, and a part of the cause that is named."""
