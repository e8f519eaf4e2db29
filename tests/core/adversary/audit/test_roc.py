"""The curve: ties, areas and rates against counting by hand, and what is not resolved."""

import numpy as np
import pytest

from noisefloor.adversary.audit.roc import RocCurve
from noisefloor.errors import BadParameter, UnresolvedRate
from noisefloor.randomness import SeededSource


def test_the_area_is_the_share_of_pairs_in_order_with_half_of_the_ties() -> None:
    drawn = SeededSource(1, "roc").below(7, 90).astype(np.float64)
    members, others = drawn[:40] + 1, drawn[40:]
    above = (members[:, None] > others).mean() + (members[:, None] == others).mean() / 2
    assert RocCurve.of(members, others).auc == pytest.approx(above, abs=1e-12)


def test_the_advantage_is_the_best_of_all_thresholds() -> None:
    drawn = SeededSource(2, "roc").below(7, 90).astype(np.float64)
    members, others = drawn[:40] + 1, drawn[40:]
    best = max((members >= t).mean() - (others >= t).mean() for t in range(9))
    assert RocCurve.of(members, others).advantage == pytest.approx(best, abs=1e-12)


def test_scores_that_are_all_equal_say_nothing() -> None:
    roc = RocCurve.of(np.ones(30), np.ones(50))
    assert (roc.auc, roc.advantage) == (0.5, 0.0)
    assert roc.false_positive_rate.tolist() == [0.0, 1.0]
    assert roc.at(0.5)[0] == 0.0


def test_perfect_scores_are_perfect() -> None:
    roc = RocCurve.of(np.ones(2000), np.zeros(20_000))
    assert (roc.auc, roc.advantage) == (1.0, 1.0)
    assert roc.resolved() == {0.001: 1.0, 0.01: 1.0}


def test_rates_are_reported_only_where_the_sample_resolves_them() -> None:
    members = np.arange(9_999.0)
    assert RocCurve.of(members, np.arange(10_000.0)).resolved()[0.001] is not None
    short = RocCurve.of(members, np.arange(9_999.0))
    assert short.resolved()[0.001] is None
    assert short.resolved()[0.01] is not None
    with pytest.raises(UnresolvedRate, match="10000 trials"):
        short.at(0.001)


def test_no_scores_and_nan_are_refused() -> None:
    with pytest.raises(BadParameter, match="members"):
        RocCurve.of(np.array([]), np.ones(3))
    with pytest.raises(BadParameter, match="others"):
        RocCurve.of(np.ones(3), np.array([np.nan]))
