"""Private logistic regression: what one record can move, what it costs, and that it learns."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.accounting import GaussianNoise, epsilon_at
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.logistic_regression import LogisticPlan, _Descent
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables.one_hot import Examples

ADD, SWAP = Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE


def cost(epsilon: float, neighbours: Neighbours = ADD) -> Guarantee:
    return Guarantee(epsilon, neighbours, delta=1e-5, model=TrustModel.CENTRAL)


def examples(count: int, classes: int, seed: int, width: int = 6) -> Examples:
    with new_run():
        draw = SeededSource(seed, "examples").generator()
    features = draw.random((count, width), dtype=np.float32)
    pull = draw.normal(0, 4, (width, classes))
    noise = draw.gumbel(size=(count, classes))
    labels = ((features - 0.5) @ pull + noise).argmax(axis=1).astype(np.int64)
    return Examples(features, labels, classes)


def quiet(width: int, classes: int, size: int, steps: int, clip: float = 1e3) -> LogisticPlan:
    """Return a plan with hardly any noise; its cost is of no account."""
    return LogisticPlan(cost(1.0), width, classes, size, math.sqrt(width), 1e-9, steps, clip)


@given(seed=st.integers(0, 10_000), classes=st.integers(2, 4), scale=st.floats(0, 50))
def test_a_record_moves_the_gradient_by_no_more_than_the_clip(
    seed: int, classes: int, scale: float
) -> None:
    some = examples(7, classes, seed)
    plan = LogisticPlan(cost(1.0), 6, classes, 7, math.sqrt(6), 1.0, 10, 0.3)
    everybody = np.ones((1, 7), dtype=np.bool_)
    with new_run():
        sources = [SeededSource(seed, "means")]
        descent = _Descent(plan, some.features, some.labels, everybody, sources)
        draw = SeededSource(seed, "point").generator()
    heads = 1 if classes == 2 else classes
    weights = (scale * draw.standard_normal((6, 1, heads))).astype(np.float32)
    bias = (scale * draw.standard_normal((1, heads))).astype(np.float32)
    whole = descent.gradients(weights, bias)
    for gone in range(7):
        descent.present[gone] = 0
        rest = descent.gradients(weights, bias)
        descent.present[gone] = 1
        moved = sum(float(((one - two) ** 2).sum()) for one, two in zip(whole, rest, strict=True))
        assert math.sqrt(moved) <= 0.3 * (1 + 1e-4)


def test_gradients_without_a_clip_are_caught() -> None:
    """The twin: with a clip that never bites, a record moves more than 0.3."""
    some = examples(7, 2, 1)
    plan = quiet(6, 2, 7, 10)
    everybody = np.ones((1, 7), dtype=np.bool_)
    descent = _Descent(plan, some.features, some.labels, everybody, [SeededSource(1, "m")])
    zero = np.zeros((6, 1, 1), np.float32), np.zeros((1, 1), np.float32)
    whole = descent.gradients(*zero)
    descent.present[0] = 0
    rest = descent.gradients(*zero)
    moved = sum(float(((one - two) ** 2).sum()) for one, two in zip(whole, rest, strict=True))
    assert math.sqrt(moved) > 0.3


@pytest.mark.parametrize("neighbours", [ADD, SWAP])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_guarantee_is_that_of_all_releases(neighbours: Neighbours, epsilon: float) -> None:
    plan = LogisticPlan.for_budget(
        cost(epsilon, neighbours), width=6, classes=2, size=100, length=2.0, steps=20
    )
    sums, step = plan.multipliers
    events = [GaussianNoise(sums), GaussianNoise(step, 20)]
    composed = epsilon_at(events, 1e-5, neighbours=neighbours).epsilon
    assert 0.999 * epsilon <= plan.guarantee.epsilon <= epsilon
    assert plan.guarantee.epsilon == pytest.approx(composed, rel=0.01)
    forgotten = epsilon_at(events[1:], 1e-5, neighbours=neighbours).epsilon
    assert forgotten < 0.99 * plan.guarantee.epsilon  # the twin: the sums are not free


def test_substitution_takes_twice_the_noise() -> None:
    one, two = (
        LogisticPlan.for_budget(cost(1.0, it), width=6, classes=2, size=100, length=2.0)
        for it in (ADD, SWAP)
    )
    assert two.multiplier == pytest.approx(2 * one.multiplier, rel=1e-3)
    assert two.rate <= one.rate


@pytest.mark.parametrize("classes", [2, 3])
def test_without_noise_it_is_the_maximum_of_the_likelihood(classes: int) -> None:
    from sklearn.linear_model import LogisticRegression

    some = examples(2_000, classes, 5)
    plan = quiet(6, classes, 2_000, 600)
    model = plan.fit(some, SeededSource(1, "fit"))
    oracle = LogisticRegression(C=1e6, max_iter=5_000, tol=1e-8).fit(some.features, some.labels)
    logits = model.logits(some.features)
    if classes == 2:
        ours = 1 / (1 + np.exp(-logits[:, 0]))
        theirs = oracle.predict_proba(some.features)[:, 1]
    else:
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        ours = (shares / shares.sum(axis=1, keepdims=True))[:, 0]
        theirs = oracle.predict_proba(some.features)[:, 0]
    assert np.abs(ours - theirs).max() < 0.005
    predicted = model.predict_classes(some.features)
    assert (predicted == oracle.predict(some.features)).mean() > 0.99


def test_tables_fitted_together_are_those_fitted_alone() -> None:
    some = examples(300, 2, 6)
    plan = LogisticPlan.for_budget(cost(1.0), width=6, classes=2, size=300, length=2.5, steps=10)
    members = np.array([np.arange(300) % 3 != part for part in range(3)])
    together = plan.fit_tables(some, members, [SeededSource(it, "table") for it in range(3)])
    for part, model in enumerate(together):
        with new_run():  # the same draws once more
            alone = plan.fit(some[members[part]], SeededSource(part, "table"))
        np.testing.assert_allclose(model.weights, alone.weights, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(model.bias, alone.bias, rtol=1e-3, atol=1e-4)


def test_bad_plans_and_examples_are_refused() -> None:
    with pytest.raises(BadParameter, match="delta > 0"):
        pure = Guarantee(1.0, ADD, model=TrustModel.CENTRAL)
        LogisticPlan.for_budget(pure, width=6, classes=2, size=10, length=1.0)
    with pytest.raises(BadParameter, match="classes"):
        LogisticPlan(cost(1.0), 6, 1, 10, 1.0, 1.0)
    with pytest.raises(BadParameter, match="length"):
        LogisticPlan(cost(1.0), 6, 2, 10, 0.0, 1.0)
    plan = LogisticPlan(cost(1.0), 5, 2, 10, 1.0, 1.0)
    with pytest.raises(BadParameter, match="width"):
        plan.fit(examples(10, 2, 1), SeededSource(1, "bad"))


def test_a_record_that_goes_moves_no_more_than_its_own_gradient_in_a_large_table() -> None:
    """The others move up one place: sums in single precision then differ all over."""
    with new_run():
        draw = SeededSource(5, "rows").generator()
    features = (draw.random((20_000, 40)) < 0.3).astype(np.float32)
    some = Examples(features, np.ones(20_000, dtype=np.int64), 2)
    plan = quiet(40, 2, 20_000, 10, clip=1.0)
    zero = np.zeros((40, 1, 1), dtype=np.float32), np.zeros((1, 1), dtype=np.float32)

    def descent(rows: slice) -> _Descent:
        part = some[rows]
        members = np.ones((1, len(part)), dtype=np.bool_)
        with new_run():
            made = _Descent(plan, part.features, part.labels, members, [SeededSource(5, "noise")])
        made.means[:] = 0.3
        made.scales = (1 / np.sqrt(made.means + np.float32(0.05))).astype(np.float32)
        made.limits = made._limits()
        return made

    whole, rest, one = (
        np.concatenate([part.reshape(-1) for part in descent(rows).gradients(*zero)])
        for rows in (slice(None), slice(1, None), slice(0, 1))
    )
    assert np.linalg.norm(whole - rest - one) < 1e-6
    assert np.linalg.norm(whole - rest) <= 1
