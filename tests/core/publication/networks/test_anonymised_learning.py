"""AnonymizedLearning: what one record can change, and what noise does to it."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from network_cases import Silent, examples_of, random_network
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.publication.networks.anonymised_learning import (
    AnonymisedLearning,
    CertifiedRanges,
    clip_norms,
    norms_of,
)
from noisefloor.publication.networks.dense import (
    DenseNetwork,
    Floats,
    NetworkPass,
    NetworkShape,
    NetworkTraining,
    TrainingBatch,
)
from noisefloor.publication.published_model import classification_scores
from noisefloor.randomness import SeededSource
from noisefloor.tables.one_hot import Examples
from statistics_of_tests import FALSE_ALARM, binomial_p

SHAPE = NetworkShape((7, 5, 4, 3))
TRAINING = NetworkTraining((5, 4), 0.1, 10, 4)


def batch_of(rows: int, seed: int) -> TrainingBatch:
    draw = SeededSource(seed, "batch").generator()
    inputs = np.ones((rows, 8), np.float32)
    inputs[:, :-1] = draw.random((rows, 7))
    return TrainingBatch(inputs, np.eye(3, dtype=np.float32)[draw.integers(3, size=rows)])


def substituted(batch: TrainingBatch, seed: int) -> TrainingBatch:
    """Return the batch with another first record."""
    other = batch_of(1, seed)
    return TrainingBatch(
        np.concatenate([other.inputs, batch.inputs[1:]]),
        np.concatenate([other.targets, batch.targets[1:]]),
    )


def clean_sums(
    learning: AnonymisedLearning, network: DenseNetwork, batch: TrainingBatch
) -> Floats:
    """Return the increments of a batch as they are before any noise."""
    return learning.increments_of(SHAPE, Silent())(network, batch).copy()


def moved(learning: AnonymisedLearning, network: DenseNetwork, seed: int) -> Floats:
    """Return how far a substituted record moves each increment."""
    batch = batch_of(10, seed)
    other = substituted(batch, seed + 1)
    ours, theirs = (clean_sums(learning, network, one) for one in (batch, other))
    return np.asarray(np.abs(ours - theirs))


def reach_of(network: DenseNetwork, threshold: float) -> Floats:
    ranges = CertifiedRanges(SHAPE)(network)
    reach = np.empty(SHAPE.count, np.float32)
    for signal in ranges.signals:
        np.minimum(signal, 1, out=signal)
    for error in ranges.errors:
        np.minimum(error, threshold, out=error)
    ranges.into(SHAPE.views(reach))
    return reach


@given(st.integers(0, 1 << 30), st.floats(0.1, 4.0), st.sampled_from([0.05, 1.0]))
def test_a_substituted_record_moves_no_increment_further_than_its_width(
    seed: int, size: float, threshold: float
) -> None:
    network = random_network(SHAPE, seed, size)
    for form in ("clipped", "widths"):
        learning = AnonymisedLearning(1.0, TRAINING, form, threshold, clamps=False)
        found = moved(learning, network, seed)
        reach = reach_of(network, threshold)
        assert (found <= 2 * reach * (1 + 1e-4) + 1e-5).all()


@given(st.integers(0, 1 << 30), st.floats(0.1, 4.0), st.sampled_from([0.05, 1.0]))
def test_a_substituted_record_moves_a_clipped_norm_by_two_at_most(
    seed: int, size: float, norm: float
) -> None:
    network = random_network(SHAPE, seed, size)
    learning = AnonymisedLearning(1.0, TRAINING, "norm", norm=norm, clamps=False)
    assert moved(learning, network, seed).sum() <= 2 * norm * (1 + 1e-4)


def test_as_printed_a_record_moves_increments_further_than_the_noise_is_made_for() -> None:
    """C7: nothing is clipped before the noise, and thresholds are tighter than what comes."""
    learning = AnonymisedLearning(1.0, TRAINING, "printed", 0.05, clamps=False)
    assert moved(learning, random_network(SHAPE, 3, 2.0), 1).max() > 10 * 2 * 0.05


def test_norms_come_from_the_factors() -> None:
    both = NetworkPass(SHAPE, 10)
    both.run(random_network(SHAPE, 1), batch_of(10, 1))
    norms = np.abs(both.each()).sum(axis=1)
    assert norms_of(both) == pytest.approx(norms, rel=1e-5)
    clip_norms(both, np.float32(np.median(norms)))
    clipped = np.abs(both.each()).sum(axis=1)
    assert clipped.max() <= np.median(norms)
    assert clipped.min() == pytest.approx(norms.min(), rel=1e-4)


@pytest.mark.parametrize("form", ["printed", "clipped", "widths", "norm"])
def test_the_scale_of_the_noise_is_the_sensitivity_over_what_an_epoch_may_cost(form: str) -> None:
    network, batch = random_network(SHAPE, 1, 0.3), batch_of(10, 1)
    learning = AnonymisedLearning(2.0, TRAINING, form, clamps=False)  # type: ignore[arg-type]
    word = SeededSource(1, "word").words(1)
    noise = float(Silent(int(word[0])).laplaces(1)[0])
    loud = learning.increments_of(SHAPE, Silent(int(word[0])))(network, batch).copy()
    scale = (loud - clean_sums(learning, network, batch)) / noise
    reach = reach_of(network, 1.0)
    per_epoch = 2.0 / TRAINING.epochs
    if form == "clipped":
        assert scale == pytest.approx(2 * reach / per_epoch, rel=1e-3, abs=1e-3)
    elif form == "widths":
        assert scale == pytest.approx(2 * reach.sum() / per_epoch, rel=1e-3)
    elif form == "norm":
        assert scale == pytest.approx(2 * learning.norm / per_epoch, rel=1e-3)
    else:
        assert scale.max() == pytest.approx(2 / per_epoch, rel=1e-3)


@pytest.mark.parametrize("form", ["printed", "clipped", "widths", "norm"])
def test_clamped_sums_lie_in_the_range_of_one_record(form: str) -> None:
    network = random_network(SHAPE, 1)
    for block in network.blocks:
        block[-1] = 1  # (21) does no harm
    learning = AnonymisedLearning(0.1, TRAINING, form)  # type: ignore[arg-type]
    sums = learning.increments_of(SHAPE, SeededSource(1, "noise"))(network, batch_of(10, 1))
    assert np.abs(sums).max() == pytest.approx(1)


@pytest.mark.statistical
@pytest.mark.parametrize(("epochs", "passes"), [(500, True), (125, False)])
def test_printed_noise_stays_inside_the_thresholds_once_in_a_thousand(
    seed: int, epochs: int, passes: bool
) -> None:
    """C11: E = 500, epsilon 1: the scale is 500 times the width, 1 - e^(-1/1000) are inside.

    n = 400 steps of 79 parameters; false alarm 1e-6; a quarter of the noise is seen.
    """
    network = random_network(SHAPE, 1, 0.3)
    learning = AnonymisedLearning(
        1.0, NetworkTraining((5, 4), 0.1, 10, epochs), "clipped", clamps=True
    )
    step = learning.increments_of(SHAPE, SeededSource(seed, "noise"))
    batch = batch_of(1, 1)
    reach, inside = reach_of(network, 1.0), 0
    for _ in range(400):
        inside += int((np.abs(step(network, batch)) < reach * (1 - 1e-6)).sum())
    chance = -math.expm1(-1 / 1000)
    assert (binomial_p(inside, 400 * SHAPE.count, chance) > FALSE_ALARM) is passes


def test_with_little_noise_it_learns() -> None:
    examples = examples_of(600, 7, 3)
    learning = AnonymisedLearning(
        1e6, NetworkTraining((16,), 0.5, 20, 30), "clipped", clamps=False
    )
    network = learning.train(examples, SeededSource(1, "train"))
    assert (
        classification_scores(
            network.predict_classes(examples.features), examples.labels, 3
        ).accuracy
        > 0.85
    )


@pytest.mark.parametrize("form", ["printed", "clipped", "widths", "norm"])
@pytest.mark.parametrize("clamps", [True, False])
def test_every_form_trains_to_finite_parameters(form: str, clamps: bool) -> None:
    learning = AnonymisedLearning(1.0, TRAINING, form, clamps=clamps)  # type: ignore[arg-type]
    network = learning.train(examples_of(55, 7, 3), SeededSource(1, "train"))
    assert np.isfinite(network.vector).all()


def test_features_outside_of_their_public_range_are_refused() -> None:
    examples = examples_of(20, 7, 3)
    for wrong in (-0.1, 1.1, math.nan):
        features = examples.features.copy()
        features[3, 2] = wrong
        learning = AnonymisedLearning(1.0, TRAINING)
        with pytest.raises(OutOfDomain, match=r"\[0, 1\]"):
            learning.train(Examples(features, examples.labels, 3), SeededSource(1, "train"))


def test_what_is_proved() -> None:
    def proved(form: Any) -> float:
        return AnonymisedLearning(0.5, TRAINING, form).guarantee(1000).epsilon

    assert math.isinf(proved("printed"))
    assert proved("clipped") == 500.0
    assert proved("widths") == proved("norm") == 0.5


@pytest.mark.parametrize(
    "make",
    [
        lambda: AnonymisedLearning(0.0, TRAINING),
        lambda: AnonymisedLearning(1.0, TRAINING, threshold=math.inf),
        lambda: AnonymisedLearning(1.0, TRAINING, norm=-1.0),
        lambda: AnonymisedLearning(1.0, TRAINING, "best"),  # type: ignore[arg-type]
    ],
)
def test_what_has_no_meaning_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(BadParameter):
        make()


@pytest.mark.parametrize("form", ["clipped", "widths", "norm"])
def test_a_record_that_overflows_adds_nothing_and_is_not_reported(form: str) -> None:
    network = random_network(SHAPE, 2)
    network.vector *= np.float32(1e20)  # signals and errors of some records are no numbers
    learning = AnonymisedLearning(1.0, TRAINING, form, clamps=False)  # type: ignore[arg-type]
    batch = batch_of(10, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        step = learning.increments_of(SHAPE, Silent())
        sums = step(network, batch).copy()
        calm = step(random_network(SHAPE, 1), batch).copy()
    assert np.isfinite(sums).all()
    assert np.abs(sums).max() <= 10
    fresh = learning.increments_of(SHAPE, Silent())(random_network(SHAPE, 1), batch)
    if form == "norm":  # the others have ranges of the network before
        assert calm == pytest.approx(fresh)
