"""Published machines: support vectors name their owners, reports do not; nulls and planted leaks.

Every game trains a machine, so that games are independent and binomial limits are exact.
"""

import math

import numpy as np
import pytest
from scipy.stats import beta

from attack_outcomes import assert_met
from noisefloor.adversary.audit.outcome import AttackOutcome
from noisefloor.adversary.records.support_vector_attacks import (
    MemberOutcome,
    SupportVectors,
    SvmPublisher,
    attack_members,
    collector_publisher,
    joint_publisher,
)
from noisefloor.collection.collecting.collectors import (
    Collected,
    JointCollector,
    RawCollector,
    UnifiedCollector,
    WeakCollector,
)
from noisefloor.collection.collecting.piecewise_collectors import PiecewiseCollector
from noisefloor.collection.encoding.discretisation import Discretiser
from noisefloor.collection.learners.classifiers import (
    ConstantClassifier,
    JointSVM,
    SklearnClassifier,
    fit,
)
from noisefloor.collection.learners.exported_models import LinearModel, export_model
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from record_worlds import ranges, two_groups
from statistics_of_tests import FALSE_ALARM

SCHEMA, COLUMNS = ranges(3), (0, 1, 2)
CLASSES, POOL = Discretiser(SCHEMA, 3), two_groups(SCHEMA, 300, "pool")
PRIVATE = {
    "WALDP": collector_publisher(UnifiedCollector(CLASSES, 1.0), COLUMNS),
    "joint": joint_publisher(CLASSES, COLUMNS, 1.0),
}
SIZE, GAMES = 20, 240


def assert_kept(outcome: MemberOutcome) -> None:
    """No more members are named than the promise allows for n others."""
    assert outcome.proved(FALSE_ALARM) <= outcome.epsilon
    assert outcome.members.interval[0] <= outcome.members.bound


@pytest.mark.statistical
def test_the_epsilon_of_two_rates_takes_half_of_alpha_for_each_limit() -> None:
    outcome = MemberOutcome(
        AttackOutcome(80, 100, 0.5, 1.0), AttackOutcome(10, 200, 0.5, 1.0), 0.0, 1.0
    )
    low, high = beta.ppf(0.01, 80, 21), beta.ppf(0.99, 11, 190)
    assert outcome.proved(0.02) == pytest.approx(math.log(low / high), rel=1e-9)


def test_support_vectors_of_plain_rows_name_their_owners(seed: int) -> None:
    # 240 trainings; false alarm FALSE_ALARM. The twin: what an epsilon of 1 would allow.
    outcome = attack_members(
        collector_publisher(RawCollector(), COLUMNS), POOL, SIZE, GAMES, SeededSource(seed, "raw")
    )
    assert_met(outcome.members)  # the share of support vectors
    assert outcome.members.closed_form == outcome.support
    assert outcome.others.right == 0
    assert outcome.bound == 1.0
    assert outcome.success > 0.7
    assert outcome.proved(FALSE_ALARM) > 1.0


@pytest.mark.statistical
@pytest.mark.parametrize("name", PRIVATE)
def test_support_vectors_of_reports_keep_the_promise(name: str, seed: int) -> None:
    # 240 trainings; false alarm FALSE_ALARM. The twin is the test above: it proves more than 1.
    outcome = attack_members(PRIVATE[name], POOL, SIZE, GAMES, SeededSource(seed, name))
    assert_kept(outcome)
    assert outcome.members.closed_form is None
    assert outcome.epsilon == pytest.approx(1.0)
    assert outcome.success < outcome.bound


def test_rows_are_matched_in_every_feature_and_with_their_label() -> None:
    export_model = SupportVectors(
        np.array([[0.5, 0.0], [0.0, 0.5]]), np.array([True, False]), ConstantClassifier(True)
    )
    rows = Collected(
        np.array([[0.5, 0.0], [0.5, 0.0], [0.0, 0.5], [0.5, 0.5]]),
        np.array([True, False, False, True]),
    )
    assert export_model.contains(rows).tolist() == [True, False, True, False]


def test_a_machine_is_read_alike_from_scikit_learn_and_as_it_is_published() -> None:
    fitted = fit("svm", POOL.values, POOL.labels)
    first, second = (SupportVectors.of(one, 3) for one in (fitted, export_model(fitted, None)))
    assert np.array_equal(first.vectors, second.vectors)
    assert np.array_equal(first.labels, second.labels)
    clear = collector_publisher(RawCollector(), COLUMNS).clear(POOL)
    assert np.count_nonzero(first.contains(clear)) == len(first.vectors)
    joint = collector_publisher(JointCollector(CLASSES, 2.0), COLUMNS)
    assert joint.epsilon == pytest.approx(2.0)
    assert len(joint.publish(POOL, SeededSource(1, "joint")).vectors)


def test_what_has_no_support_vectors_names_nobody_or_is_refused() -> None:
    rows = Collected(np.zeros((2, 3)), np.array([True, False]))
    for model in (ConstantClassifier(True), JointSVM(CLASSES, COLUMNS, False)):
        export_model = SupportVectors.of(model, 3)
        assert export_model.contains(rows).tolist() == [False, False]
    for other in (SklearnClassifier(object()), LinearModel(np.zeros(3), 0.0)):
        with pytest.raises(BadParameter, match="support vectors"):
            SupportVectors.of(other, 3)
    with pytest.raises(BadParameter, match="collector"):
        collector_publisher(PiecewiseCollector(1.0), COLUMNS)


def test_classes_without_noise_promise_nothing_and_a_game_needs_owners() -> None:
    weak = collector_publisher(WeakCollector(CLASSES), COLUMNS)
    assert weak.epsilon == np.inf
    assert not weak.is_plain
    source = SeededSource(1, "small")
    with pytest.raises(BadParameter, match="size"):
        attack_members(weak, POOL, len(POOL), 2, source.child(1))
    with pytest.raises(BadParameter, match="games"):
        attack_members(weak, POOL, SIZE, 1, source.child(2))
    assert isinstance(PRIVATE["joint"], SvmPublisher)
