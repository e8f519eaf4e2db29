"""LearningFirst: its distribution, exactly; what is proved of it; and what a record that moves it
shows."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import logsumexp

from network_cases import random_network
from noisefloor.errors import BadParameter
from noisefloor.publication.networks.dense import DenseNetwork, NetworkShape
from noisefloor.publication.networks.learning_first import HALF_STEPS, LearningFirst
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p

GRID = (np.arange(-HALF_STEPS, HALF_STEPS + 1) / HALF_STEPS).astype(np.float32)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("clean", [-1.0, -0.3, 0.0, 1.0, 2.5])
def test_the_distribution_sums_to_one(epsilon: float, clean: float) -> None:
    for noise in (LearningFirst(epsilon, 1, "printed"), LearningFirst(epsilon, 1, "clamped")):
        logs = noise.log_likelihoods(GRID, np.full(1, clean, np.float32))
        assert float(logsumexp(logs)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_the_worst_ratio_over_all_outputs_is_what_is_proved(epsilon: float) -> None:
    noise = LearningFirst(epsilon, 1, "clamped")
    worst = 0.0
    for one, two in ((-1.0, 1.0), (1.0, -1.0), (0.0, 1.0)):
        first = noise.log_likelihoods(GRID, np.full(1, one, np.float32))
        worst = max(
            worst, float((first - noise.log_likelihoods(GRID, np.full(1, two, np.float32))).max())
        )
    proved = noise.parameter_guarantee.epsilon
    assert epsilon >= proved >= worst - 1e-9
    assert worst >= epsilon * (1 - 2e-6)


def test_a_model_of_clamped_parameters_costs_them_all_and_that_is_reached() -> None:
    noise = LearningFirst(0.5, 40, "clamped")
    high, low = np.ones(40, np.float32), -np.ones(40, np.float32)
    ratio = float(noise.log_likelihood(high, high) - noise.log_likelihood(high, low))
    assert ratio == pytest.approx(40 * 0.5, rel=1e-5)
    assert 20.0 >= noise.guarantee.epsilon >= ratio - 1e-9


def test_corrected_the_whole_model_costs_epsilon() -> None:
    noise = LearningFirst(1.0, 818, "corrected")
    high, low = np.ones(818, np.float32), -np.ones(818, np.float32)
    ratio = float(noise.log_likelihood(high, high) - noise.log_likelihood(high, low))
    assert 1.0 >= noise.guarantee.epsilon >= ratio - 1e-9
    assert ratio > 0.999
    assert noise.scale == pytest.approx(1636, rel=1e-5)  # the sum of 818 widths of 2


def test_as_printed_a_parameter_outside_of_the_thresholds_breaks_any_epsilon() -> None:
    """Clamped only afterwards, a parameter may move further than the noise was made for."""
    noise = LearningFirst(1.0, 1, "printed")
    ratios = []
    for size in (1.0, 3.0, 30.0):
        one, two = np.full(1, size, np.float32), np.full(1, -size, np.float32)
        seen = np.full(1, 1.0, np.float32)
        ratios.append(float(noise.log_likelihood(seen, one) - noise.log_likelihood(seen, two)))
    assert ratios[0] <= 1.0
    assert ratios[1] > 2.0
    assert ratios[2] > 15.0
    assert math.isinf(noise.guarantee.epsilon)
    assert "clamped only after" in noise.guarantee.reason
    clamped = LearningFirst(1.0, 1, "clamped")
    far = clamped.log_likelihood(seen, one) - clamped.log_likelihood(seen, two)
    assert float(far) <= 1.0


def test_releases_lie_on_the_grid_inside_of_the_thresholds() -> None:
    network = random_network(NetworkShape((7, 5, 3)), 1, 2.0)
    noise = LearningFirst(5.0, network.shape.count, "clamped", bound=0.5)
    released = noise.release(network, SeededSource(1, "noise"))
    places = released.vector * (HALF_STEPS / 0.5)
    assert np.array_equal(places, np.rint(places))
    assert np.abs(released.vector).max() == 0.5
    assert np.isfinite(noise.log_likelihood(released.vector, network.vector))


@pytest.mark.statistical
@pytest.mark.parametrize(("scale", "passes"), [(1.0, True), (1.1, False)])
def test_draws_follow_the_stated_distribution(seed: int, scale: float, passes: bool) -> None:
    """How often noise stays below its median size; n = 40,000, false alarm 1e-6."""
    shape = NetworkShape((199, 200))
    network = DenseNetwork(shape, np.zeros(shape.count, np.float32))
    noise = LearningFirst(20.0, shape.count, "clamped")
    released = noise.release(network, SeededSource(seed, "noise")).vector
    inside = int((np.abs(released) <= scale * noise.scale * math.log(2)).sum())
    # On the grid the distribution has a step of 1 / HALF_STEPS: far finer than a tenth.
    assert (binomial_p(inside, shape.count, 0.5) > FALSE_ALARM) is passes


@pytest.mark.statistical
@pytest.mark.parametrize(("moved", "passes"), [(0.0, True), (10.0, False)])
def test_averaging_all_parameters_tells_what_one_hides(
    seed: int, moved: float, passes: bool
) -> None:
    """C1: x in every one of P parameters; the mean errs by 1 / sqrt(P) of one parameter's noise.

    P = 40,000; five standard errors, a false alarm of 6e-7; ten of them away is seen.
    """
    shape = NetworkShape((199, 200))
    noise = LearningFirst(1.0, shape.count, "clamped")
    drawn = noise.noise.sampler(SeededSource(seed, "noise"))(shape.count) / HALF_STEPS
    error = math.sqrt(noise.noise.variance) / HALF_STEPS / math.sqrt(shape.count)
    assert error == pytest.approx(math.sqrt(2) * noise.scale / 200, rel=1e-3)
    assert bool(abs(drawn.mean() + moved * error) < 5 * error) is passes


@pytest.mark.parametrize(
    "make",
    [
        lambda: LearningFirst(0.0, 1),
        lambda: LearningFirst(math.inf, 1),
        lambda: LearningFirst(1.0, 0),
        lambda: LearningFirst(1.0, 1, bound=0.0),
        lambda: LearningFirst(1.0, 1, "best"),  # type: ignore[arg-type]
    ],
)
def test_what_has_no_distribution_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(BadParameter):
        make()


def test_a_network_of_another_size_is_refused() -> None:
    with pytest.raises(BadParameter, match="parameters"):
        LearningFirst(1.0, 5).release(
            random_network(NetworkShape((2, 2)), 1), SeededSource(1, "x")
        )


def test_what_is_no_number_is_noised_like_any_other() -> None:
    """One record may decide whether training goes astray: an error would tell which it was."""
    astray = DenseNetwork(
        NetworkShape((1, 2)), np.array([np.nan, np.inf, -np.inf, 0.5], np.float32)
    )
    noise = LearningFirst(1.0, 4, "corrected")
    released = noise.release(astray, SeededSource(1, "astray")).vector
    assert np.isfinite(released).all()
    places = noise._grid(astray.vector)
    assert places.tolist() == [0, HALF_STEPS, -HALF_STEPS, HALF_STEPS // 2]
