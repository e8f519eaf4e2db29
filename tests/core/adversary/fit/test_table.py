"""Exact tests of counts, against scipy's own binomials and against faults that are planted."""

import numpy as np
import pytest
from scipy import stats

from noisefloor.adversary.fit import LEVEL, FitTable, two_sided
from noisefloor.errors import BadParameter


def test_p_values_are_twice_the_smaller_tail_of_the_binomial() -> None:
    for n, p in ((1, 0.5), (7, 0.3), (40, 0.01), (1_000, 0.999)):
        k = np.arange(n + 1)
        below, above = stats.binom.cdf(k, n, p), stats.binom.sf(k - 1, n, p)
        expected = np.minimum(1, 2 * np.minimum(below, above))
        found = two_sided(k, np.full(n + 1, n), np.full(n + 1, p))
        assert found == pytest.approx(expected, rel=1e-9)


def test_certain_events_are_rejected_by_one_exception_and_not_without() -> None:
    hits, trials = np.array([0, 1, 9, 10]), np.full(4, 10)
    assert two_sided(hits, trials, np.zeros(4)).tolist() == [1, 0, 0, 0]
    assert two_sided(hits, trials, np.ones(4)).tolist() == [0, 0, 0, 1]
    assert two_sided(np.zeros(1, int), np.zeros(1, int), np.array([0.3])).tolist() == [1]


def test_an_honest_flow_is_rejected_at_most_as_often_as_the_level_says() -> None:
    """Exactly, by summing over all counts of each cell."""
    level, cells = 1e-3, (50, 400)
    rejected = 0.0
    for n in cells:
        k = np.arange(n + 1)
        p_values = two_sided(k, np.full(n + 1, n), np.full(n + 1, 0.2)) * len(cells)
        rejected += stats.binom.pmf(k, n, 0.2)[p_values < level].sum()
    assert 0 < rejected <= level


def test_counts_add_up_over_tables_and_the_worst_test_is_named() -> None:
    whole, parts = FitTable(), [FitTable(), FitTable()]
    for table in (whole, parts[0]):
        table.add("ones", [5, 6], [10, 10], 0.5)
    for table in (whole, parts[1]):
        table.add("ones", [900, 6], [1_000, 10], 0.5)
    parts[0].merge(parts[1])
    assert parts[0].result() == whole.result()
    found = whole.result()
    assert found.rejects
    assert found.p_value < LEVEL
    assert found.misfit == "ones, cell 0: a share of 0.896 of 1,010, where 0.5 is declared"
    assert FitTable().result().tests == 0


def test_a_declared_probability_may_not_change() -> None:
    table = FitTable()
    table.add("ones", 1, 2, 0.5)
    with pytest.raises(BadParameter, match="declared"):
        table.add("ones", 1, 2, 0.6)


def test_a_planted_fault_is_found_with_many_trials_and_not_with_few() -> None:
    for trials, is_found in ((100_000, True), (20, False)):
        table = FitTable()
        table.add("ones", round(0.3 * trials), trials, 0.3, 0.25)
        assert table.result().finds_planted is is_found
