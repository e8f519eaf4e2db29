"""The white-box test: closed forms, and an audit that rises with P for noise per parameter."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from noisefloor.adversary.held_out import held_out_bound
from noisefloor.adversary.models.white_box import WhiteBox, per_parameter_noise, whole_model_noise
from noisefloor.adversary.releases.noise_laws import DiscreteLaplaceLaw, GaussianLaw, LaplaceLaw
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p

ALPHA = 1e-6
"""Each bound below is wrong with this probability."""


def worst_case(parameters: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two models between which every parameter moves over its whole range [-1, 1]."""
    return np.ones(parameters), -np.ones(parameters)


def per_parameter(parameters: int, epsilon: float = 1.0) -> WhiteBox:
    return WhiteBox(
        *worst_case(parameters), per_parameter_noise(np.full(parameters, 2.0), epsilon)
    )


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_one_parameter_is_told_as_often_as_the_closed_form_says(epsilon: float) -> None:
    """100,000 games: false alarm 1e-6; the form with e^-epsilon in it is found wrong."""
    outcome = per_parameter(1, epsilon).play(50_000, SeededSource(1, "one", f"{epsilon:g}"))
    expected = 1 - math.exp(-epsilon / 2) / 2
    assert outcome.closed_form == pytest.approx(expected)
    assert binomial_p(outcome.right, outcome.n, expected) > FALSE_ALARM
    assert binomial_p(outcome.right, outcome.n, 1 - math.exp(-epsilon) / 2) < FALSE_ALARM
    assert outcome.success < outcome.bound


@pytest.mark.statistical
def test_many_parameters_are_told_by_the_root_of_their_number() -> None:
    """20,000 games at P = 400, h = 0.1: Phi(1) to within 0.006 and a false alarm of 1e-6."""
    games, parameters, step = 10_000, 400, 0.1
    attack = WhiteBox(np.zeros(parameters), np.full(parameters, step), LaplaceLaw(1.0))
    small = norm.cdf(math.sqrt(parameters) * step / 2)
    assert attack.closed_form == pytest.approx(small, abs=0.006)
    outcome = attack.play(games, SeededSource(2, "many"))
    assert binomial_p(outcome.right, outcome.n, attack.closed_form) > FALSE_ALARM
    assert binomial_p(outcome.right, outcome.n, norm.cdf(0.8)) < FALSE_ALARM
    mean, _ = attack.noise.moments(attack.shift)
    assert mean.sum() == pytest.approx(parameters * (step - 1 + math.exp(-step)))


@pytest.mark.statistical
def test_gaussian_noise_has_an_exact_closed_form() -> None:
    """60,000 games: false alarm 1e-6; a tenth more shift is found."""
    shift = np.array([0.3, -0.4, 1.2])
    attack = WhiteBox(shift, np.zeros(3), GaussianLaw(1.3))
    expected = norm.cdf(1.3 / 1.3 / 2)
    assert attack.closed_form == pytest.approx(expected)
    outcome = attack.play(30_000, SeededSource(3, "gauss"))
    assert binomial_p(outcome.right, outcome.n, expected) > FALSE_ALARM
    assert binomial_p(outcome.right, outcome.n, norm.cdf(1.1 / 2)) < FALSE_ALARM


@pytest.mark.statistical
def test_per_parameter_noise_is_audited_above_its_claim_and_rises_with_p() -> None:
    claim = 1.0
    found = []
    for parameters in (1, 4, 16):
        attack = per_parameter(parameters, claim)
        assert attack.epsilon == pytest.approx(parameters * claim)
        bound = attack.audit(20_000, SeededSource(4, "claim", parameters), alpha=ALPHA)
        assert bound.epsilon <= attack.epsilon
        found.append(bound.epsilon)
    assert found == sorted(found)
    assert 0.85 < found[0] < claim < 2 < found[1] < found[2]


@pytest.mark.statistical
def test_whole_model_noise_stays_below_its_claim_whatever_p() -> None:
    for parameters in (1, 4, 16):
        noise = whole_model_noise(np.full(parameters, 2.0), 1.0)
        attack = WhiteBox(*worst_case(parameters), noise)
        assert attack.epsilon == pytest.approx(1.0)
        bound = attack.audit(20_000, SeededSource(5, "whole", parameters), alpha=ALPHA)
        assert bound.epsilon < 1.0


@pytest.mark.statistical
def test_the_null_is_not_accused() -> None:
    same = np.ones(8)
    attack = WhiteBox(same, -same, LaplaceLaw(2.0))
    scores = [
        attack.scores(20_000, SeededSource(6, "null", turn), is_first=True) for turn in range(2)
    ]
    assert held_out_bound(*scores, alpha=ALPHA).epsilon == 0
    assert WhiteBox(same, same, LaplaceLaw(2.0)).closed_form == 0.5


@pytest.mark.statistical
def test_discrete_noise_is_told_apart_like_its_law_says() -> None:
    first, second = np.array([3.0, 0.0]), np.array([0.0, 2.0])
    attack = WhiteBox(first, second, DiscreteLaplaceLaw(5.0))
    assert attack.epsilon == pytest.approx(1.0, abs=1e-9)
    bound = attack.audit(60_000, SeededSource(7, "whole"), alpha=ALPHA)
    assert 0.6 < bound.epsilon < 1.0


def test_scores_do_not_depend_on_the_size_of_blocks_but_on_the_games(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attack = per_parameter(3)
    released = attack.noise.draw((5, 3), SeededSource(8, "released"))
    by_hand = (np.abs(released + 1) - np.abs(released - 1)).sum(axis=1) / 2
    assert attack.log_ratios(released) == pytest.approx(by_hand)
    monkeypatch.setattr("noisefloor.adversary.models.white_box._BLOCK", 6)
    assert attack.scores(5, SeededSource(8, "small"), is_first=True).shape == (5,)


def test_vectors_of_unlike_length_and_nan_are_refused() -> None:
    with pytest.raises(BadParameter, match="as long as the second"):
        WhiteBox(np.ones(2), np.ones(3), LaplaceLaw(1.0))
    with pytest.raises(BadParameter, match="finite"):
        WhiteBox(np.array([np.nan]), np.ones(1), LaplaceLaw(1.0))
    with pytest.raises(BadParameter, match="widths"):
        per_parameter_noise(np.array([1.0, 0.0]), 1.0)
    with pytest.raises(BadParameter, match="epsilon"):
        whole_model_noise(np.ones(2), 0.0)
