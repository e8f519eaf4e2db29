"""Tables that bidders learn: exact without noise, shrunk with it, never worse than the page's."""

import numpy as np
import pytest
from numpy.typing import NDArray

from noisefloor.ads.auction.learning import ReportCells, learn_chances
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.randomness import Generator, SeededSource

Floats = NDArray[np.float64]
SHAPE = (6, 5, 4)
NOISE = 0.5
REPEATS = 60


def additive(draw: Generator, symbol: float) -> Floats:
    """Return chances that are a sum of effects, those of symbols of this size."""
    symbols, topics, campaigns = SHAPE
    page = draw.normal(0, 0.05, (1, topics, campaigns))
    released = draw.normal(0, 1, (symbols, 1, campaigns)) * symbol
    return np.asarray(np.clip(0.4 + page + released, 0.0, 1.0))


def test_without_noise_the_table_is_the_truth() -> None:
    chance = additive(SeededSource(1, "exact").generator(), 0.1)
    shown = np.full(SHAPE, 10**9)
    table = learn_chances(shown, shown * chance, 0.0, by_page=True, by_symbol=True)
    assert table == pytest.approx(chance, abs=1e-3)
    page = learn_chances(shown, shown * chance, 0.0, by_page=True, by_symbol=False)
    assert page[0] == pytest.approx(chance.mean(axis=0), abs=1e-3)
    assert (page == page[:1]).all()


def test_symbols_that_say_no_more_than_noise_change_nothing() -> None:
    chance = additive(SeededSource(2, "page").generator(), 0.0)
    shown = np.full(SHAPE, 100)
    found = {
        by: learn_chances(shown, shown * chance, NOISE, by_page=True, by_symbol=by)
        for by in (True, False)
    }
    assert np.array_equal(found[True], found[False])


def test_no_reports_make_no_chances_and_empty_cells_get_those_of_the_others() -> None:
    none = np.zeros(SHAPE)
    assert not learn_chances(none, none, NOISE, by_page=True, by_symbol=True).any()
    shown = np.full(SHAPE, 1000)
    shown[0] = 0
    table = learn_chances(shown, 0.25 * shown, NOISE, by_page=True, by_symbol=True)
    assert table == pytest.approx(np.full(SHAPE, 0.25))


def is_surely_less(one: Floats, other: Floats) -> bool:
    """Whether the mean of paired differences is below 0 by five standard errors."""
    gap = one - other
    return bool(gap.mean() < -5 * gap.std(ddof=1) / np.sqrt(len(gap)))


@pytest.mark.statistical
@pytest.mark.parametrize("symbol", [0.0, 0.08])
def test_effects_of_symbols_help_or_do_not_hurt(symbol: float, seed: int) -> None:
    # Mean squared errors over 60 worlds, paired: a shrunk table beside the page's and beside
    # plain means, which a table comes to that takes its noise for signal. Each difference has to
    # be below 0 by five standard errors of its mean: chance alone gets there once in 1e6.
    draw, shown = SeededSource(seed, "shrunk").generator(), np.full(SHAPE, 60)
    errors = np.empty((REPEATS, 3))
    for row in errors:
        chance = additive(draw, symbol)
        spread = np.sqrt(shown * (NOISE + chance * (1 - chance)))
        clicks = shown * chance + draw.normal(0, 1, SHAPE) * spread
        both, page = (
            learn_chances(shown, clicks, NOISE, by_page=True, by_symbol=by) for by in (True, False)
        )
        cells = clicks / shown
        plain = cells.mean(axis=0) + cells.mean(axis=1, keepdims=True) - cells.mean(axis=(0, 1))
        row[:] = [np.mean(np.square(table - chance)) for table in (both, page, plain)]
    assert is_surely_less(errors[:, 0], errors[:, 2])
    if symbol:
        assert is_surely_less(errors[:, 0], errors[:, 1])
    else:  # nothing is to be learnt: less than a quarter is lost of what plain means lose
        lost, plainly = (errors[:, place] - errors[:, 1] for place in (0, 2))
        assert is_surely_less(lost, 0.25 * plainly)
        assert not is_surely_less(errors[:, 2], errors[:, 1])  # the twin: plain means do hurt


def test_cells_number_every_report_once() -> None:
    cells = ReportCells(*SHAPE)
    grid = [one.reshape(-1) for one in np.indices(SHAPE)]
    assert np.array_equal(cells.number(*grid), np.arange(len(cells)))
    with pytest.raises(OutOfDomain):
        cells.number([6], [0], [0])
    with pytest.raises(BadParameter, match="cells"):
        ReportCells(1000, 100, 10)
    with pytest.raises(BadParameter, match="three dimensions"):
        learn_chances(np.ones((2, 2)), np.ones((2, 2)), NOISE, by_page=True, by_symbol=True)
