"""Naive Bayes from joint responses, by counts and by whole tuples."""

import numpy as np
import pytest

from noisefloor.collection.encoding.discretisation import Discretiser
from noisefloor.collection.encoding.joint_response import JointResponse
from noisefloor.collection.encoding.report_columns import joint_rows
from noisefloor.collection.encoding.sizing import joint_choice
from noisefloor.collection.learners.naive_bayes import (
    SPREADS,
    NaiveBayes,
    Shrinkage,
    _chosen_spread,
    _Fit,
    effective_counts,
    fit_counts,
    fit_tuples,
    label_shares,
)
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms.base import Reports
from noisefloor.randomness import SeededSource
from noisefloor.tables.scaled_records import Label, ScaledRecords, ScaledSchema
from record_worlds import accuracy, mixed_schema, ranges, two_groups


def collected(
    records: ScaledRecords, schema: ScaledSchema, epsilon: float, path: str
) -> tuple[JointResponse, Reports, Discretiser]:
    choice = joint_choice(len(records), len(schema), epsilon)
    classes = Discretiser(schema, choice.classes)
    response = JointResponse(classes.sizes, choice.chosen, epsilon)
    rows = joint_rows(classes.codes(records.values), records.labels)
    return response, response.randomise(rows, SeededSource(5, "collected", path)), classes


def test_odds_run_straight_between_centres_and_stay_outside_them() -> None:
    model = NaiveBayes(Discretiser(ranges(1), 3), np.array([-3.0, 0.0, 6.0]), 0.5)
    values = np.array([[-1.0], [-2 / 3], [-1 / 3], [0.0], [1 / 3], [1.0]])
    assert np.allclose(model.scores(values), np.array([-3, -3, -1.5, 0, 3, 6]) + 0.5)


def test_categories_have_the_odds_of_their_class() -> None:
    schema = mixed_schema()
    model = NaiveBayes(Discretiser(schema, 3), np.arange(11.0), 0.0)
    record = np.array([[0.0, 1.0, 0.0, 0.0]])  # classes 1 of 3, 1 of 2, 1 of 3, 1 of 3
    assert model.scores(record)[0] == 1 + 4 + 6 + 9


def test_of_three_labels_the_likeliest_is_predicted() -> None:
    odds = np.array([[-3.0, 0.0], [0.0, -1.0], [1.0, 2.0]])
    model = NaiveBayes(Discretiser(ranges(1), 3), odds, np.array([0.5, 0.25]))
    values = np.array([[-1.0], [0.0], [1.0]])
    assert model.scores(values).tolist() == [[-2.5, 0.25], [0.5, -0.75], [1.5, 2.25]]
    assert model.predict(values).tolist() == [2, 1, 2]
    with pytest.raises(BadParameter, match="odds"):
        NaiveBayes(Discretiser(ranges(1), 3), odds[:, :1], np.array([0.5, 0.25]))


def test_three_labels_are_found_in_reports_by_both_fits() -> None:
    """3,000 owners, epsilon 6: both models name at least 80 % of labels, a constant a third."""
    label = Label("label", "a", "b", ("c",))
    schema = ScaledSchema(ranges(3).attributes, label)
    draw = SeededSource(3, "three").generator()
    labels = draw.integers(0, 3, 3000).astype(np.uint8)
    values = np.clip(draw.normal((labels[:, None] - 1) * 0.6, 0.3, (3000, 3)), -1, 1)
    classes = Discretiser(schema, 5)
    response = JointResponse(classes.sizes, 2, 6.0, label_classes=3)
    rows = joint_rows(classes.codes(values), labels)
    reports = response.randomise(rows, SeededSource(3, "reports"))
    models = (
        fit_counts(response, response.tally(reports), classes),
        fit_tuples(response, reports, Shrinkage(classes)),
    )
    for model in models:
        assert np.mean(model.predict(values) == labels) > 0.8


@pytest.mark.parametrize("odds", [np.zeros(4), np.array([0, 0, np.nan])])
def test_odds_that_do_not_fit_are_refused(
    odds: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> None:
    with pytest.raises(BadParameter, match="odds"):
        NaiveBayes(Discretiser(ranges(1), 3), odds, 0.0)


def test_records_outside_the_range_are_refused() -> None:
    model = NaiveBayes(Discretiser(ranges(2), 3), np.zeros(6), 0.0)
    with pytest.raises(OutOfDomain):
        model.predict(np.array([[0.0, np.nan]]))
    with pytest.raises(OutOfDomain):
        model.predict(np.array([[0.0]]))


@pytest.mark.parametrize("schema", [ranges(4), mixed_schema()], ids=["ranges", "mixed"])
def test_without_noise_to_speak_of_both_fits_find_the_true_odds(schema: ScaledSchema) -> None:
    """30,000 owners, epsilon 30, every attribute told: shares are known to about 0.005."""
    records = two_groups(schema, 30_000, "plain")
    classes = Discretiser(schema, 3)
    response = JointResponse(classes.sizes, len(schema), 30.0)
    codes = classes.codes(records.values)
    reports = response.randomise(joint_rows(codes, records.labels), SeededSource(5, "plain"))
    shares = [
        np.bincount(codes[records.labels == label, place], minlength=size)
        / np.count_nonzero(records.labels == label)
        for label in (False, True)
        for place, size in enumerate(classes.sizes)
    ]
    negative, positive = (
        np.concatenate(shares[: len(schema)]),
        np.concatenate(shares[len(schema) :]),
    )
    common = np.minimum(negative, positive) > 0.02
    odds = np.log(positive[common] / negative[common])
    counted = fit_counts(response, response.tally(reports), classes)
    whole = fit_tuples(response, reports, Shrinkage(classes, shared=0.0))
    for model in (counted, whole):
        assert np.allclose(model.odds[common], odds, atol=0.1)
        assert model.prior == pytest.approx(np.log(0.4 / 0.6), abs=0.06)


@pytest.mark.parametrize(
    "n, epsilon, least",
    [(5_000, 1.0, 0.80), (2_000, 2.0, 0.85), (500, 5.0, 0.88), (500, 10, 0.90)],
)
def test_a_separable_data_set_is_fitted(n: int, epsilon: float, least: float) -> None:
    """Twelve attributes, each 0.4 apart at a deviation of 0.3: the best rule has 0.99."""
    schema = ranges(12)
    response, reports, classes = collected(
        two_groups(schema, n, "learn"), schema, epsilon, f"{n} {epsilon}"
    )
    queried = two_groups(schema, 4_000, "asked")
    counted = fit_counts(response, response.tally(reports), classes)
    whole = fit_tuples(response, reports, Shrinkage(classes))
    assert accuracy(counted.predict(queried.values), queried) > least - 0.05
    assert accuracy(whole.predict(queried.values), queried) > least


def test_labels_that_say_nothing_of_the_values_teach_next_to_nothing() -> None:
    """The twin: the same reports with labels tossed. What is left is the share of the labels."""
    schema = ranges(12)
    records = two_groups(schema, 2_000, "tossed", apart=0.0)
    response, reports, classes = collected(records, schema, 2.0, "tossed")
    queried = two_groups(schema, 4_000, "asked")
    model = fit_tuples(response, reports, Shrinkage(classes))
    assert abs(accuracy(model.predict(queried.values), queried) - 0.5) < 0.2


def test_an_empty_round_gives_a_model_that_says_nothing() -> None:
    classes = Discretiser(ranges(3), 3)
    response = JointResponse(classes.sizes, 1, 1.0)
    none = np.empty((0, 3), dtype=np.uint16)
    for model in (
        fit_counts(response, response.tally(none), classes),
        fit_tuples(response, none, Shrinkage(classes)),
    ):
        assert not model.scores(np.zeros((2, 3))).any()


def test_an_epsilon_next_to_nothing_does_no_harm() -> None:
    schema = ranges(3)
    response, reports, classes = collected(two_groups(schema, 200, "tiny"), schema, 1e-6, "tiny")
    assert np.isfinite(fit_counts(response, response.tally(reports), classes).odds).all()
    assert np.isfinite(fit_tuples(response, reports, Shrinkage(classes)).odds).all()


def test_what_reports_are_worth() -> None:
    response = JointResponse((3, 3), 1, 2.0)
    reports = np.array([[0, 0, 1]] * 10 + [[1, 2, 0]] * 30, dtype=np.uint16)
    kept = response.kept_shares[0]
    tally = response.tally(reports)
    assert np.allclose(effective_counts(response, tally), [10 * kept**2, 30 * kept**2])
    assert np.allclose(label_shares(response, tally).sum(), 1)


def test_a_response_of_other_sizes_or_without_label_is_refused() -> None:
    classes, none = Discretiser(ranges(3), 3), np.empty((0, 3), dtype=np.uint16)
    with pytest.raises(BadParameter, match="classes"):
        fit_tuples(JointResponse((3, 3), 1, 1.0), none, Shrinkage(classes))
    bare = JointResponse((3, 3, 3), 1, 1.0, labelled=False)
    with pytest.raises(BadParameter, match="label"):
        fit_tuples(bare, none[:, :2], Shrinkage(classes))
    with pytest.raises(BadParameter, match="label"):
        fit_counts(bare, bare.tally(none[:, :2]), classes)


@pytest.mark.parametrize("bad", [{"strength": 0.0}, {"shared": 100.0}, {"shared": -0.1}])
def test_bad_shrinkage_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(BadParameter):
        Shrinkage(Discretiser(ranges(2), 3), **bad)


def test_reports_choose_a_wide_spread_for_smooth_values_and_not_for_spikes() -> None:
    """3,000 owners at epsilon 10: normal values want more spread than values at three points."""
    schema = ranges(4)
    draw = SeededSource(4, "spread").generator()
    labels = draw.random(3000) < 0.5
    smooth = np.clip(draw.normal(np.where(labels, 0.2, -0.2)[:, None], 0.4, (3000, 4)), -1, 1)
    spikes = draw.choice([-0.9, 0.1, 0.8], (3000, 4))
    classes, found = Discretiser(schema, 12), []
    response = JointResponse(classes.sizes, 3, 10.0)
    for place, values in enumerate((smooth, spikes)):
        rows = joint_rows(classes.codes(values), labels)
        reports = response.randomise(rows, SeededSource(4, "reports", place))
        fit = _Fit.of(response, reports)
        found.append(_chosen_spread(fit, Shrinkage(classes), 2).spread)
        again = fit_tuples(response, reports[::-1], Shrinkage(classes))
        assert np.array_equal(fit_tuples(response, reports, Shrinkage(classes)).odds, again.odds)
    assert found[0] > found[1] == SPREADS[0]
