"""Tests of residuals: their false alarms, and the draws that each fault needs."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from noisefloor.adversary.releases.residuals import (
    LEVEL,
    DeclaredNoise,
    NoiseShape,
    ResidualGroup,
    finds_quarter_less,
    fit_residuals,
    group_tests,
    rate_test,
)
from noisefloor.errors import BadParameter
from noisefloor.privacy import Neighbours
from noisefloor.publication.cell_noise import GaussianCells, LaplaceCells
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p

GAUSSIAN, LAPLACE = NoiseShape.GAUSSIAN, NoiseShape.LAPLACE
Floats = NDArray[np.float64]
Draw = Callable[[float, int, SeededSource], Floats]


def gaussian(scale: float, count: int, source: SeededSource) -> Floats:
    return np.asarray(source.generator().normal(0.0, scale, count))


def laplace(scale: float, count: int, source: SeededSource) -> Floats:
    return np.asarray(source.generator().laplace(0.0, scale, count))


def integer_gaussian(scale: float, count: int, source: SeededSource) -> Floats:
    places = np.arange(-400, 401)
    weights = np.exp(-((places / scale) ** 2) / 2)
    drawn = source.generator().choice(places, count, p=weights / weights.sum())
    return np.asarray(drawn, dtype=np.float64)


def integer_laplace(scale: float, count: int, source: SeededSource) -> Floats:
    both = source.generator().geometric(-math.expm1(-1 / scale), (2, count))
    return np.asarray(both[0] - both[1], dtype=np.float64)


KINDS: dict[str, tuple[DeclaredNoise, Draw]] = {
    "gaussian": (DeclaredNoise(GAUSSIAN, 3.0), gaussian),
    "laplace": (DeclaredNoise(LAPLACE, 3.0), laplace),
    "integer gaussian": (DeclaredNoise(GAUSSIAN, 4.0, is_integer=True), integer_gaussian),
    "narrow integer gaussian": (DeclaredNoise(GAUSSIAN, 0.7, is_integer=True), integer_gaussian),
    "integer laplace": (DeclaredNoise(LAPLACE, 4.0, is_integer=True), integer_laplace),
    "narrow integer laplace": (DeclaredNoise(LAPLACE, 0.5, is_integer=True), integer_laplace),
}


def group(kind: str, share: float, rows: int, count: int, *name: str | int) -> ResidualGroup:
    """Return residuals of a share of the declared noise."""
    declared, draw = KINDS[kind]
    source = SeededSource(7, "residuals", kind, str(share), rows, count, *name)
    noise = [draw(declared.scale * share, count, source.child("row", at)) for at in range(rows)]
    return ResidualGroup.of("x", declared, noise, source)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
def test_every_test_has_the_level_that_it_states(kind: str) -> None:
    """300 fits of 4 rows of 60: a p-value below 0.1 comes with probability 0.1 at most.

    The number of such p-values of each test is compared with a binomial, one-sided; false alarm
    1e-6 for each of the tests.
    """
    found = [
        [test.p_value for test in group_tests(group(kind, 1.0, 4, 60, "level", trial))]
        for trial in range(300)
    ]
    for hits in (np.array(found) < 0.1).sum(axis=0):
        assert hits <= 30 or binomial_p(int(hits), 300, 0.1) > FALSE_ALARM
    # The twin: a scale of four fifths is below that level far too often.
    wrong = [
        group_tests(group(kind, 0.8, 4, 60, "wrong", at))[0].p_value < 0.1 for at in range(300)
    ]
    assert binomial_p(sum(wrong), 300, 0.1) < FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("kind", "share", "draws"),
    [
        ("gaussian", 0.5, 100),
        ("gaussian", 0.75, 504),
        ("gaussian", 0.9, 3_537),
        ("laplace", 0.5, 177),
        ("laplace", 0.75, 961),
        ("laplace", 0.9, 6_957),
    ],
)
def test_less_noise_is_found_with_the_stated_number_of_draws(
    kind: str, share: float, draws: int
) -> None:
    """So many draws find it with probability 0.99, by the quantiles of chi-square and Gamma.

    Of 20 fits 14 are found but for a probability of 2e-8; honest noise is rejected with 2e-8.
    """
    assert sum(fit_residuals([group(kind, share, 1, draws, at)]).rejects for at in range(20)) >= 14
    assert not any(fit_residuals([group(kind, 1.0, 1, draws, at)]).rejects for at in range(20))
    fifth = draws // 5
    assert not any(
        fit_residuals([group(kind, share, 1, fifth, "few", at)]).rejects for at in range(20)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_planted_fault_is_found_with_many_draws_and_missed_with_few(kind: str) -> None:
    assert finds_quarter_less([group(kind, 1.0, 2, 2_000)])
    assert not finds_quarter_less([group(kind, 1.0, 2, 20, "few")])


@pytest.mark.parametrize("kind", KINDS)
def test_no_noise_half_noise_and_too_much_noise_are_found(kind: str) -> None:
    declared, _ = KINDS[kind]
    nothing = ResidualGroup.of("x", declared, [np.zeros(800)], SeededSource(7, "none", kind))
    assert fit_residuals([nothing]).rejects
    for share in (0.5, 2.0):
        assert fit_residuals([group(kind, share, 1, 800, "times", str(share))]).rejects
    found = fit_residuals([group(kind, 1.0, 1, 800, "honest")])
    assert not found.rejects
    assert (found.draws, found.tests) == (800, 6)


@pytest.mark.parametrize("kind", ["gaussian", "laplace", "integer laplace"])
@pytest.mark.parametrize("rows", [2, 3, 6])
def test_noise_that_is_drawn_once_and_used_again_is_found(kind: str, rows: int) -> None:
    declared, draw = KINDS[kind]
    source = SeededSource(7, "reused", kind, rows)
    once = draw(declared.scale, 200, source.child("row"))
    reused = ResidualGroup.of("x", declared, [once] * rows, source)
    found = fit_residuals([reused])
    assert found.rejects
    assert found.worst is not None and "draw" in found.worst.name
    assert not fit_residuals([group(kind, 1.0, rows, 200, "fresh")]).rejects


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_one_number_for_a_pair_of_coordinates_is_found(kind: str) -> None:
    declared, draw = KINDS[kind]
    source = SeededSource(7, "pairs", kind)
    noise = np.repeat(draw(declared.scale, 300, source.child("row")), 2)
    found = fit_residuals([ResidualGroup.of("x", declared, [noise], source)])
    assert found.rejects
    assert found.worst is not None and "neighbouring" in found.worst.name


def test_another_shape_of_the_same_scale_is_found() -> None:
    """Uniform noise of the declared variance; and noise whose tails were cut at two scales."""
    declared = DeclaredNoise(GAUSSIAN, 1.0)
    draw = SeededSource(7, "uniform").generator()
    for name, noise in (
        ("uniform", draw.uniform(-math.sqrt(3), math.sqrt(3), 2_000)),
        ("cut", np.clip(draw.normal(0, 1, 2_000), -2, 2)),
    ):
        made = ResidualGroup.of("x", declared, [noise], SeededSource(7, "shape", name))
        assert fit_residuals([made]).rejects


def test_a_larger_scale_within_the_slack_is_honest() -> None:
    noise = SeededSource(7, "slack").generator().normal(0.0, 1.004, 1_000_000)
    found = {}
    for slack in (0.005, 1e-6):
        declared = DeclaredNoise(GAUSSIAN, 1.0, slack)
        made = ResidualGroup.of("x", declared, [noise], SeededSource(7, "slack", str(slack)))
        found[slack] = fit_residuals([made]).p_value
    assert found[0.005] > 1e-3
    assert found[1e-6] < FALSE_ALARM


def test_releases_with_the_noise_of_another_one_are_found_when_pooled() -> None:
    """Each release on its own is honest."""
    kinds = ["gaussian", "integer gaussian"]
    first = [group(kind, 1.0, 1, 150, "first") for kind in kinds]
    other = [group(kind, 1.0, 1, 150, "other") for kind in kinds]
    for releases, is_found in (([first, first], True), ([first, other], False)):
        pooled = ResidualGroup.pooled("all", releases)
        every = [one for release in releases for one in release]
        assert not fit_residuals(every).rejects
        assert fit_residuals(every, pooled=[pooled]).rejects is is_found
        assert fit_residuals(every, pooled=[pooled]).draws == 600


def test_sampling_of_another_rate_is_found() -> None:
    assert fit_residuals([], [rate_test("sampled", 2_000, 10_000, 0.1)]).rejects
    honest = fit_residuals([], [rate_test("sampled", 1_020, 10_000, 0.1)])
    assert not honest.rejects
    assert honest.text.startswith("sampled is 0.102, declared 0.1 over 0 draws")


def test_residuals_that_are_no_numbers_are_found() -> None:
    noise = np.array([0.1, np.nan, 0.2])
    made = ResidualGroup.of("x", DeclaredNoise(GAUSSIAN, 1.0), [noise], SeededSource(7, "nan"))
    assert fit_residuals([made]).rejects


def test_nothing_to_test_rejects_nothing() -> None:
    found = fit_residuals([])
    assert (found.p_value, found.tests, found.rejects) == (1.0, 0, False)
    assert not finds_quarter_less([])
    assert LEVEL == 1e-9


@pytest.mark.parametrize(("scale", "slack"), [(0.0, 0.0), (math.inf, 0.0), (1.0, -1.0)])
def test_impossible_declarations_are_refused(scale: float, slack: float) -> None:
    with pytest.raises(BadParameter):
        DeclaredNoise(GAUSSIAN, scale, slack)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_cells_of_a_histogram_follow_their_declared_noise(delta: float) -> None:
    """Cells of a table of counts, less the counts; with a twin of half the noise."""
    relation = Neighbours.RECORD_ADD_REMOVE
    counts = np.arange(900, dtype=np.int64)
    cells = GaussianCells(0.4, delta, relation) if delta else LaplaceCells(0.4, relation)
    if isinstance(cells, GaussianCells):
        declared = DeclaredNoise(GAUSSIAN, cells.table.sigma, is_integer=True)
    else:
        declared = DeclaredNoise(LAPLACE, 1 / 0.4, 1e-4, is_integer=True)
    released = cells.add(counts, SeededSource(7, "histogram", str(delta)))
    noise = (released - counts).astype(np.float64)
    for share, is_found in ((1.0, False), (0.5, True)):
        source = SeededSource(7, "histogram", str(delta), str(share))
        made = ResidualGroup.of("cells", declared, [np.rint(share * noise)], source)
        assert fit_residuals([made]).rejects is is_found
