"""Scores against loops that do the same by hand, against closed forms, and on a null."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from noisefloor.adversary.audit.roc import RocCurve
from noisefloor.adversary.models.shadow_attacks import ATTACKS, lira, rmia
from noisefloor.adversary.models.shadow_runs import ShadowRuns, fair_members
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM

Floats = NDArray[np.float64]


def normals(seed: int, *shape: int) -> Floats:
    drawn = SeededSource(seed, "normals").normals(math.prod(shape))
    return drawn.astype(np.float64).reshape(shape)


def some_runs(models: int = 24, records: int = 15, *, gain: float = 1.0) -> ShadowRuns:
    members = fair_members(models, records, SeededSource(7, "some", f"{gain:g}"))
    noise = normals(round(100 + 10 * gain), models, records)
    return ShadowRuns(members, noise + gain * members, is_fair=True)


def auc_limit(members: int, others: int, chance: float) -> float:
    """Return how far an AUC of independent scores strays (Hoeffding 1963, two samples)."""
    return math.sqrt(math.log(2 / chance) / (2 * min(members, others)))


def lira_by_hand(runs: ShadowRuns, *, offline: bool, pooled: bool) -> Floats:
    scores = np.empty(runs.log_odds.shape)
    for target in range(runs.models):
        rest = np.arange(runs.models) != target
        odds, is_in = runs.log_odds[rest], runs.members[rest]
        distributions = []
        for side in (True, False):
            groups = [odds[is_in[:, j] == side, j] for j in range(runs.records)]
            spread = [float(group.var(ddof=1)) if len(group) > 1 else 0.0 for group in groups]
            if pooled:
                free = [len(group) - 1 for group in groups]
                spread = [float(np.dot(spread, free) / sum(free))] * len(groups)
            distributions.append(
                [(g.mean(), math.sqrt(s)) for g, s in zip(groups, spread, strict=True)]
            )
        for j, x in enumerate(runs.log_odds[target]):
            (mean_in, dev_in), (mean_out, dev_out) = distributions[0][j], distributions[1][j]
            if offline:
                scores[target, j] = (x - mean_out) / dev_out
            else:
                scores[target, j] = norm.logpdf(x, mean_in, dev_in)
                scores[target, j] -= norm.logpdf(x, mean_out, dev_out)
    return scores


@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize("pooled", [False, True])
def test_lira_in_turns_is_lira_by_hand(offline: bool, pooled: bool) -> None:
    runs = some_runs()
    found = lira(runs, is_offline=offline, is_pooled=pooled)
    assert found == pytest.approx(lira_by_hand(runs, offline=offline, pooled=pooled), abs=1e-8)


def test_lira_of_another_target_uses_all_shadows() -> None:
    runs, target = some_runs(), normals(9, 1, 15)
    joined = ShadowRuns(
        np.concatenate([runs.members, np.zeros((1, 15), dtype=np.bool_)]),
        np.concatenate([runs.log_odds, target]),
    )
    for offline in (False, True):
        alone = lira(runs, target, is_offline=offline)
        assert alone[0] == pytest.approx(lira(joined, is_offline=offline)[-1], abs=1e-9)


def rmia_by_hand(runs: ShadowRuns, gamma: float, offline: float | None) -> Floats:
    chance = 1 / (1 + np.exp(-runs.log_odds))
    scores = np.zeros(chance.shape)
    for target in range(runs.models):
        gains = []
        for j in range(runs.records):
            rest = np.arange(runs.models) != target
            is_in = runs.members[:, j]
            out = chance[rest & ~is_in, j].mean()
            if offline is None:
                usual = (out + chance[rest & is_in, j].mean()) / 2
            else:
                usual = ((1 + offline) * out + 1 - offline) / 2
            gains.append(chance[target, j] / usual)
        for j in range(runs.records):
            scores[target, j] = np.mean([gains[j] / other >= gamma for other in gains])
    return scores


@pytest.mark.parametrize("gamma", [1.3, 2.0])
@pytest.mark.parametrize("offline", [None, 0.3])
def test_rmia_in_turns_is_rmia_by_hand(gamma: float, offline: float | None) -> None:
    runs = some_runs(gain=2.0)
    found = rmia(runs, gamma=gamma, offline=offline)
    assert found == pytest.approx(rmia_by_hand(runs, gamma, offline), abs=1e-12)
    assert 0 < found.mean() < 1


def test_rmia_compares_with_the_population_alone() -> None:
    runs = some_runs(gain=2.0)
    some = np.array([3, 4, 5])
    found = rmia(runs, population=some)
    assert set(np.round(3 * np.unique(found), 9)) <= {0.0, 1.0, 2.0, 3.0}
    with pytest.raises(BadParameter, match="population"):
        rmia(runs, population=np.array([], dtype=np.intp))


def known_shadows(records: int, shift: float) -> tuple[ShadowRuns, Floats]:
    """Return four shadows whose sample mean and variance are exactly those of the
    distributions."""
    centre = 5 * normals(10, records)
    aside = math.sqrt(0.5)
    odds = np.stack(
        [centre + shift + aside, centre + shift - aside, centre + aside, centre - aside]
    )
    members = np.repeat([[True], [True], [False], [False]], records, axis=1)
    return ShadowRuns(members, odds), centre


@pytest.mark.statistical
@pytest.mark.parametrize("offline", [False, True])
def test_lira_on_gaussian_log_odds_reaches_its_closed_form(offline: bool) -> None:
    """400,000 records: AUC is Phi(d / sqrt 2); false alarm 1e-6; 10 % more shift is found."""
    records, shift = 400_000, 1.0
    shadows, centre = known_shadows(records, shift)
    members = fair_members(1, records, SeededSource(11, "target"))
    targets = (centre + normals(12, records) + shift * members[0])[None]
    scores = lira(shadows, targets, is_offline=offline)
    found = RocCurve.of(scores[members], scores[~members])
    limit = auc_limit(len(found.members), len(found.others), FALSE_ALARM)
    assert abs(found.auc - norm.cdf(shift / math.sqrt(2))) < limit
    assert abs(found.auc - norm.cdf(1.1 * shift / math.sqrt(2))) > limit
    expected = norm.cdf(norm.ppf(0.01) + shift)
    rate, error = found.at(0.01)
    assert abs(rate - expected) < 10 * error


@pytest.mark.statistical
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_nothing_is_found_where_nothing_leaks(attack: Callable[..., Floats]) -> None:
    """40 models, 2,000 records each: no model's AUC strays; false alarm 1e-6 for all together."""
    runs = some_runs(40, 2000, gain=0.0)
    leaking = some_runs(40, 2000, gain=0.6)
    scores, leaks = attack(runs, None), attack(leaking, None)
    for model, own in enumerate(runs.members):
        roc = RocCurve.of(scores[model, own], scores[model, ~own])
        limit = auc_limit(len(roc.members), len(roc.others), FALSE_ALARM / 40)
        assert abs(roc.auc - 0.5) < limit
    # The planted leak, by the same limit: the test has power.
    own = leaking.members[0]
    assert RocCurve.of(leaks[0, own], leaks[0, ~own]).auc > 0.5 + limit


def test_too_few_shadows_are_refused_with_the_side_that_lacks() -> None:
    members = np.array([[True, True], [True, False], [True, False], [False, False]])
    runs = ShadowRuns(members, normals(13, 4, 2))
    with pytest.raises(BadParameter, match=r"shadows without the record=0.*train more models"):
        lira(runs)
    with pytest.raises(BadParameter, match="shadows with"):
        lira(ShadowRuns(members & False, runs.log_odds), normals(14, 1, 2), is_pooled=True)
    with pytest.raises(BadParameter, match="shadows without the record=0"):
        rmia(runs)


def test_shadows_that_agree_exactly_give_finite_scores() -> None:
    members = fair_members(20, 5, SeededSource(15, "constant"))
    scores = lira(ShadowRuns(members, np.ones((20, 5))))
    assert np.isfinite(scores).all()
    assert np.ptp(scores) == 0


@pytest.mark.parametrize(
    "wrong", [{"gamma": 0.5}, {"offline": 1.5}, {"targets": np.zeros((1, 3))}]
)
def test_parameters_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadParameter):
        rmia(some_runs(), **wrong)  # type: ignore[arg-type]  # wrong on purpose
