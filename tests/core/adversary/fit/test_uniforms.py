"""Transformed reports: uniform if they fit, and found if noise is too small or used twice."""

import numpy as np
import pytest

from noisefloor.adversary.fit import (
    LEVEL,
    SeenUniforms,
    UniformFit,
    laplace_fault,
    raised_fault,
    raised_uniforms,
)
from noisefloor.checks import Floats
from noisefloor.randomness import SeededSource

EPSILONS = (0.25, 1.0, 8.0)
N = 700_000
"""Draws of a test: enough to find epsilon 10 % off at 0.25."""


def uniforms_of_bits(declared: float, epsilon: float, count: int = N) -> Floats:
    """Transform truthful answers, declared with one epsilon and drawn with another."""
    draw = SeededSource(1, "bits", str(epsilon)).generator()
    chance, own = (1 / (1 + np.exp(-one)) for one in (declared, epsilon))
    return raised_uniforms(draw.random(count) < own, chance, draw.random(count))


def uniforms_of_laplace(declared: float, epsilon: float, count: int = N) -> Floats:
    """Transform Laplace noise, declared with one epsilon and drawn with another."""
    noise = SeededSource(2, "noise", str(epsilon)).generator().laplace(0, 1 / epsilon, count)
    tail = 0.5 * np.exp(-np.abs(noise) * declared)
    return np.where(noise < 0, tail, 1 - tail)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("transform", [uniforms_of_bits, uniforms_of_laplace])
def test_reports_that_fit_are_accepted_and_others_are_not(transform, epsilon) -> None:  # type: ignore[no-untyped-def] # one of two functions
    """False alarm LEVEL; noise of half the scale and 10 % less are rejected."""
    for times, is_rejected in ((1.0, False), (2.0, True), (1.1, True)):
        fit = UniformFit()
        fit.see("a report", transform(epsilon, times * epsilon))
        assert fit.table.result(LEVEL).rejects is is_rejected, times


@pytest.mark.statistical
def test_noise_of_a_quarter_too_little_would_be_found_where_there_are_draws_enough() -> None:
    chances = [1 / (1 + np.exp(-one)) for one in (1.0, 4 / 3)]
    for count, is_found in ((100, False), (20_000, True)):
        for values, fault in (
            (uniforms_of_bits(1.0, 1.0, count), raised_fault(*chances)),
            (uniforms_of_laplace(1.0, 1.0, count), laplace_fault(4 / 3)),
        ):
            fit = UniformFit()
            fit.see("a report", values, fault)
            assert fit.table.result().finds_planted is is_found


def test_faults_are_distributions_that_the_drawn_ones_follow() -> None:
    places = np.linspace(0, 1, 17)
    for values, fault in (
        (uniforms_of_laplace(1.0, 4 / 3), laplace_fault(4 / 3)),
        (
            uniforms_of_bits(1.0, 4 / 3),
            raised_fault(1 / (1 + np.exp(-1.0)), 1 / (1 + np.exp(-4 / 3))),
        ),
    ):
        found = np.searchsorted(np.sort(values), places) / len(values)
        # Five standard deviations at seventeen places: false alarm below 1e-5.
        assert np.abs(found - fault(places)).max() < 5 * 0.5 / np.sqrt(len(values))


def frames(values: Floats, *, size: int = 1000, reused: str = "") -> UniformFit:
    """Let two cohorts report in two epochs, with draws of their own or some of them shared."""
    fit = UniformFit()
    drawn = values[: 8 * size].reshape(2, 2, size, 2).copy()
    if reused == "epochs":
        drawn[:, 1] = drawn[:, 0]
    if reused == "cohorts":
        drawn[1] = drawn[0]
    if reused == "rows":
        drawn[:, :, size // 2 :] = drawn[:, :, : size // 2]
    if reused == "columns":
        drawn[..., 1] = drawn[..., 0]
    every = np.arange(size)
    for cohort, by_epoch in enumerate(drawn):
        for epoch, rows in enumerate(by_epoch):
            for part in (every[::2], every[1::2]):  # in two frames
                fit.see_frame(SeenUniforms(cohort, epoch, size, size, part, part, rows[part]))
    return fit


@pytest.mark.statistical
def test_noise_that_is_used_twice_is_found() -> None:
    """False alarm LEVEL for fresh noise."""
    values = SeededSource(3, "pairs").generator().random(8_000)
    assert not frames(values).table.result().rejects
    assert frames(values).table.result().tests > 30
    for reused, name in (
        ("epochs", "two reports of a user"),
        ("cohorts", "reports of two frames"),
        ("rows", "two reports of a frame"),
        ("columns", "two parts of a report"),
    ):
        found = frames(values, reused=reused).table
        assert found.result().rejects, reused
        cells = found.cells[f"noise of {name}"]
        assert cells.hits[-1] == cells.trials[-1], reused  # all are next to each other


@pytest.mark.statistical
def test_the_order_in_which_frames_come_does_not_matter() -> None:
    values = SeededSource(4, "order").generator().random((2, 3, 50, 1))
    every = np.arange(50)
    counts = []
    for order in ([0, 1, 2, 3, 4, 5], [5, 2, 0, 3, 1, 4]):
        fit = UniformFit()
        for place in order:
            cohort, epoch = divmod(place, 3)
            seen = SeenUniforms(cohort, epoch, 50, 50, every, every, values[cohort, epoch])
            fit.see_frame(seen)
        counts.append({name: one.hits.tolist() for name, one in fit.table.cells.items()})
    assert counts[0] == counts[1]
