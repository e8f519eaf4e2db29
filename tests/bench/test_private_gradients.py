"""LDP-SGD: what a gradient's report costs, that it is unbiased, and that owners answer once."""

import math

import numpy as np
import pytest
from bench.private_gradients import (
    Descent,
    PrivUnit,
    SampledHybrid,
    debiased,
    features_of,
    fit_gradients,
    width_of,
)
from scipy import integrate, special

from noisefloor.checks import Floats
from noisefloor.randomness import SeededSource
from record_worlds import accuracy, mixed_schema, ranges, two_groups
from statistics_of_tests import FALSE_ALARM, binomial_p, ks_p


def share_of_cap(dimension: int, edge: float) -> float:
    """Return the share of the sphere above an edge, by quadrature over the angle."""

    def density(angle: float) -> float:
        return math.sin(angle) ** (dimension - 2)

    inside = integrate.quad(density, 0, math.acos(edge), epsabs=0)[0]
    return float(inside / integrate.quad(density, 0, math.pi, epsabs=0)[0])


def log_ratio(mechanism: PrivUnit) -> float:
    """Return the log of the largest over the least density of a report."""
    cap = share_of_cap(mechanism.dimension, mechanism.edge)
    largest, least = mechanism.inside / cap, (1 - mechanism.inside) / (1 - cap)
    return math.log(largest / least)


@pytest.mark.parametrize("dimension", [2, 3, 31, 120])
def test_the_densities_of_a_cap_have_the_ratio_that_is_guaranteed(dimension: int) -> None:
    for epsilon in (0.1, 1.0, 5.0, 10.0):
        mechanism = PrivUnit(dimension, epsilon)
        assert log_ratio(mechanism) == pytest.approx(epsilon, abs=1e-8)
        assert mechanism.guarantee().epsilon == pytest.approx(epsilon, abs=1e-8)
        choice = math.log(mechanism.inside / (1 - mechanism.inside))
        assert choice + mechanism.epsilon_of_cap == pytest.approx(epsilon, abs=1e-8)
        assert 0 < mechanism.epsilon_of_cap <= epsilon + 1e-8
        object.__setattr__(mechanism, "inside", 1 - (1 - mechanism.inside) / 1.1)
        assert log_ratio(mechanism) > epsilon + 0.09  # the twin: a coin that tells more


def products_of(epsilon: float, drawn_at: float, seed: int) -> tuple[PrivUnit, Floats]:
    """Return products of reports with the own direction, of n = 20,000 owners."""
    mechanism, sender = PrivUnit(6, epsilon), PrivUnit(6, drawn_at)
    own = np.full(6, 1 / math.sqrt(6))
    source = SeededSource(seed, "cap", f"{drawn_at:g}")
    reports = sender.randomise(np.repeat(own[None], 20_000, axis=0), source)
    return mechanism, np.asarray(reports @ own * sender.gain)


@pytest.mark.statistical
def test_reports_follow_their_distribution(seed: int) -> None:
    """n = 20,000; false alarm FALSE_ALARM for each of two. The twin: 1.1 times the epsilon."""
    mechanism, products = products_of(3.0, 3.0, seed)
    half, cap = (mechanism.dimension - 1) / 2, share_of_cap(6, mechanism.edge)

    def below(product: Floats) -> Floats:
        above = special.betainc(half, half, (1 - product) / 2)
        outside = (1 - mechanism.inside) * (1 - above) / (1 - cap)
        inside = 1 - mechanism.inside * above / cap
        return np.asarray(np.where(product < mechanism.edge, outside, inside))

    def in_cap(found: Floats) -> float:
        hits = int(np.count_nonzero(found >= mechanism.edge))
        return binomial_p(hits, len(found), mechanism.inside)

    assert ks_p(products, below) > FALSE_ALARM
    assert in_cap(products) > FALSE_ALARM
    _, twins = products_of(3.0, 3.3, seed)
    assert ks_p(twins, below) < FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [PrivUnit, SampledHybrid])
def test_the_mean_of_reports_is_the_vector(kind: type, seed: int) -> None:
    """n = 20,000, six coordinates, 6 standard errors: false alarm 1e-8. A twin is a tenth off."""
    mechanism, n = kind(6, 5.0), 20_000
    own = np.array([0.5, -0.4, 0.1, 0.0, 0.3, -0.2])
    source = SeededSource(seed, "mean", kind.__name__)
    reports = mechanism.randomise(np.repeat(own[None], n, axis=0), source)
    errors = reports.std(axis=0) / math.sqrt(n)
    assert (np.abs(reports.mean(axis=0) - own) < 6 * errors).all()
    assert (np.abs(reports.mean(axis=0) - 1.1 * own - 0.1) > 6 * errors).any()


@pytest.mark.parametrize(("epsilon", "chosen"), [(1.0, 1), (5.0, 2), (10.0, 4)])
def test_sampled_coordinates_share_epsilon(epsilon: float, chosen: int) -> None:
    mechanism = SampledHybrid(40, epsilon)
    assert mechanism.chosen == chosen
    assert epsilon - 1e-6 <= mechanism.guarantee().epsilon <= epsilon + 1e-9
    outputs = mechanism.each.outputs()
    chances = np.exp(mechanism.each.log_likelihood(outputs, 0.25))
    assert float(chances @ debiased(mechanism.each, outputs)) == pytest.approx(0.25, abs=1e-9)


class Recorder:
    """Passes vectors on, and keeps how many there were."""

    scale = 1.0

    def __init__(self) -> None:
        self.batches: list[int] = []

    def bound(self, vectors: Floats) -> Floats:
        return vectors

    def randomise(self, vectors: Floats, source: SeededSource) -> Floats:
        self.batches.append(len(vectors))
        return vectors

    def guarantee(self) -> None:
        raise NotImplementedError


def test_every_owner_answers_once() -> None:
    schema = ranges(3)
    records, recorder = two_groups(schema, 103, "once"), Recorder()
    labels = records.labels.astype(np.int64)
    source = SeededSource(6, "once")
    descent = Descent(8, 1.0, 1.0)
    fit_gradients(recorder, descent, schema, records.values, labels, source)  # type: ignore[arg-type] # no guarantee
    assert len(recorder.batches) == 8
    assert sum(recorder.batches) == 103


@pytest.mark.parametrize("kind", [PrivUnit, SampledHybrid])
def test_randomised_gradients_learn(kind: type) -> None:
    schema = ranges(6)
    records, queried = two_groups(schema, 8_000, "descent"), two_groups(schema, 2_000, "asked")
    mechanism, descent = kind(width_of(schema), 5.0), Descent(16, 4.0, 0.25)
    labels, source = records.labels.astype(np.int64), SeededSource(6, "learn", kind.__name__)
    model = fit_gradients(mechanism, descent, schema, records.values, labels, source)
    assert accuracy(model.predict(queried.values) == 1, queried) > 0.85


def test_three_labels_have_a_row_of_weights_each() -> None:
    draw = SeededSource(6, "three").generator()
    labels = draw.integers(0, 3, 9_000)
    centres = np.array([[0.6, 0.0], [-0.6, 0.0], [0.0, 0.7]])
    values = np.clip(draw.normal(centres[labels], 0.2), -1, 1)
    mechanism, schema = PrivUnit(9, 5.0), ranges(2)
    descent, source = Descent(32, 8.0, 0.25), SeededSource(6, "rows")
    model = fit_gradients(mechanism, descent, schema, values, labels, source, label_count=3)
    assert model.weights.shape == (3, 3)
    assert float(np.mean(model.predict(values) == labels)) > 0.8


def test_categories_have_a_column_each_and_a_flag_has_one() -> None:
    values = np.array([[0.5, -1.0, 0.0, 0.25], [0.5, 1.0, 1.0, 0.25]])
    features = features_of(mixed_schema(), values)
    assert features.tolist() == [
        [0.5, -1.0, 0.0, 1.0, 0.0, 0.25, 1.0],
        [0.5, 1.0, 0.0, 0.0, 1.0, 0.25, 1.0],
    ]
