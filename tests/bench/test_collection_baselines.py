"""Learners and collectors that know their noise: forward correction, debiased moments, waves."""

import itertools
import math

import numpy as np
import pytest
from bench.forward_bayes import fit_forward
from bench.linear_moments import LinearRule, fit_linear, moments_of
from bench.wave_bayes import WaveResponse, fit_wave

from noisefloor.collection.encoding.discretisation import Discretiser
from noisefloor.collection.encoding.joint_response import JointResponse
from noisefloor.collection.encoding.report_columns import joint_rows
from noisefloor.collection.encoding.unified_response import UnifiedResponse
from noisefloor.collection.learners.naive_bayes import Shrinkage
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms.base import Reports
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource
from noisefloor.tables.scaled_records import ScaledRecords, ScaledSchema
from record_worlds import accuracy, mixed_schema, ranges, two_groups
from statistics_of_tests import FALSE_ALARM, chi_square_p


def unified(
    records: ScaledRecords, schema: ScaledSchema, epsilon: float, path: str
) -> tuple[Discretiser, Reports]:
    classes = Discretiser(schema, 3)
    rows = joint_rows(classes.codes(records.values), records.labels)
    response = UnifiedResponse((*classes.sizes, 2), epsilon)
    return classes, response.randomise(rows, SeededSource(6, "unified", path))


@pytest.mark.parametrize("schema", [ranges(4), mixed_schema()], ids=["ranges", "mixed"])
def test_forward_correction_finds_the_shares_behind_the_noise(schema: ScaledSchema) -> None:
    """12,000 owners, epsilon 6 over five answers; read as they are, shares are evened out."""
    records = two_groups(schema, 12_000, "forward")
    classes, reports = unified(records, schema, 6.0, "forward")
    shrinkage = Shrinkage(classes, strength=1.0, shared=0.0)
    model = fit_forward(reports[:, :-1], reports[:, -1] == 1, 6.0 / 5, shrinkage)
    codes = classes.codes(records.values)
    true = np.concatenate(
        [
            np.bincount(codes[records.labels, place], minlength=size) / records.labels.sum()
            for place, size in enumerate(classes.sizes)
        ]
    )
    as_reported = np.concatenate(
        [
            np.bincount(reports[reports[:, -1] == 1, place], minlength=size)
            / np.count_nonzero(reports[:, -1])
            for place, size in enumerate(classes.sizes)
        ]
    )
    assert np.abs(model.shares[:, 1] - true).max() < 0.06
    assert np.abs(as_reported - true).max() > 0.15
    assert model.labels[1] == pytest.approx(0.4, abs=0.03)


def test_a_query_is_worth_no_more_than_its_noise_leaves() -> None:
    schema = ranges(4)
    classes, reports = unified(two_groups(schema, 20_000, "query"), schema, 10.0, "query")
    model = fit_forward(reports[:, :-1], reports[:, -1] == 1, 2.0, Shrinkage(classes))
    queried = two_groups(schema, 5_000, "asked")
    on_device = accuracy(model.published().predict(queried.values), queried)
    response = UnifiedResponse(classes.sizes, 8.0)
    queries = response.randomise(classes.codes(queried.values), SeededSource(6, "queries"))
    assert on_device > 0.88
    assert on_device > accuracy(model.predict_codes(queries, 2.0), queried) > 0.7
    hardly = model.predict_codes(queries, 1e-6)
    assert not hardly.any()  # nothing is known but that fewer are positive


def test_answers_outside_their_classes_are_refused() -> None:
    classes = Discretiser(mixed_schema(), 3)
    bad = np.array([[0, 2, 0, 0]], dtype=np.uint16)
    with pytest.raises(OutOfDomain):
        fit_forward(bad, np.array([True]), 1.0, Shrinkage(classes))


# Moments.


def test_moments_are_debiased() -> None:
    """n = 100,000, epsilon 4, 2 of 4: standard errors below 0.008; 6 of them: false alarm 1e-7."""
    schema, n = ranges(4), 100_000
    records, classes = two_groups(schema, n, "moments"), Discretiser(schema, 4)
    response = JointResponse(classes.sizes, 2, 4.0)
    codes = classes.codes(records.values)
    reports = response.randomise(joint_rows(codes, records.labels), SeededSource(6, "moments"))
    found, values = moments_of(response, reports, classes), classes.values(codes)
    signs = 2.0 * records.labels - 1
    assert np.abs(found.means - values.mean(axis=0)).max() < 0.048
    assert np.abs(found.products - values.T @ values / n).max() < 0.048
    assert np.abs(found.with_label - signs @ values / n).max() < 0.048
    assert found.label == pytest.approx(signs.mean(), abs=0.03)
    as_sent = (2.0 * reports[:, -1] - 1).mean()
    assert abs(as_sent - signs.mean()) > 0.03  # what debiasing is for


def test_a_linear_rule_learns_and_says_nothing_where_nothing_is_known() -> None:
    schema = ranges(12)
    records, queried = two_groups(schema, 3_000, "linear"), two_groups(schema, 3_000, "asked")
    classes = Discretiser(schema, 4)
    response = JointResponse(classes.sizes, 2, 5.0)
    rows = joint_rows(classes.codes(records.values), records.labels)
    rule = fit_linear(response, response.randomise(rows, SeededSource(6, "linear")), classes)
    assert accuracy(rule.predict(queried.values), queried) > 0.9
    empty = fit_linear(response, np.empty((0, 5), dtype=np.uint16), classes)
    assert not empty.weights.any()
    with pytest.raises(OutOfDomain):
        LinearRule(np.zeros(2), 0.0).predict(np.array([[0.0, 2.0]]))


def test_an_unlabelled_response_teaches_no_rule() -> None:
    bare = JointResponse((3, 3), 1, 1.0, labelled=False)
    with pytest.raises(BadParameter, match="label"):
        moments_of(bare, np.empty((0, 2), dtype=np.uint16), Discretiser(ranges(2), 3))


# Square waves.


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 10.0])
def test_a_wave_report_costs_what_was_requested(epsilon: float) -> None:
    response = WaveResponse(3, epsilon)
    assert epsilon - 1e-3 <= response.guarantee().epsilon <= epsilon
    assert math.isinf(response.guarantee(Neighbours.DOCUMENT).epsilon)


def every_report(response: WaveResponse) -> Reports:
    cells = range(response.wave.window.cells)
    return np.array(list(itertools.product(range(response.attributes), cells, (0, 1))))


def test_the_distribution_of_a_wave_report_sums_to_one_and_reaches_its_guarantee() -> None:
    response = WaveResponse(1, 2.0)
    outputs = every_report(response)
    logs = [response.log_likelihood(outputs, np.array(row)) for row in ([-1.0, -1.0], [1.0, 1.0])]
    assert np.exp(logs[0]).sum() == pytest.approx(1, abs=1e-9)
    worst = float(np.abs(logs[0] - logs[1]).max())
    assert worst <= response.guarantee().epsilon < worst + 1e-6


@pytest.mark.statistical
def test_wave_reports_follow_their_distribution(seed: int) -> None:
    """n = 100 000; false alarm FALSE_ALARM. The twin is drawn at 1.1 times the epsilon."""
    record = np.array([-0.5, 0.75, 1.0])
    response = WaveResponse(2, 2.0)
    outputs = every_report(response)
    distribution = np.exp(response.log_likelihood(outputs, record))
    groups = 64 * outputs[:, 0] + outputs[:, 1] // 4096 * 2 + outputs[:, 2]

    def p_value(drawn_at: float, path: str) -> float:
        sender = WaveResponse(2, drawn_at)
        source = SeededSource(seed, "wave", path)
        reports = sender.randomise(np.repeat(record[None], 100_000, axis=0), source)
        reports = reports[reports[:, 1] < response.wave.window.cells].astype(np.int64)
        seen = np.bincount(
            64 * reports[:, 0] + reports[:, 1] // 4096 * 2 + reports[:, 2], minlength=128
        )
        return chi_square_p(seen, np.bincount(groups, distribution, 128))

    assert p_value(2.0, "law") > FALSE_ALARM
    assert p_value(2.2, "twin") < FALSE_ALARM


def test_a_wave_learns() -> None:
    schema = ranges(12)
    records, queried = two_groups(schema, 20_000, "wave"), two_groups(schema, 4_000, "asked")
    response = WaveResponse(12, 4.0)
    rows = np.column_stack([records.values, 2.0 * records.labels - 1])
    reports = response.randomise(rows, SeededSource(6, "wave"))
    model = fit_wave(response, response.tally(reports), Shrinkage(Discretiser(schema, 8)))
    assert accuracy(model.predict(queried.values), queried) > 0.9


def test_wave_tallies_add_up() -> None:
    response = WaveResponse(3, 1.0)
    rows = np.column_stack([np.zeros((100, 3)), np.ones(100)])
    reports = response.randomise(rows, SeededSource(6, "tally"))
    parts = response.tally(reports[:40]) + response.tally(reports[40:])
    assert np.array_equal(response.tally(reports), parts)
    assert parts.sum() == 100


@pytest.mark.parametrize("row", [[0.0, 0.5], [0.0, np.nan], [1.5, 1.0], [0.0, 0.0]])
def test_rows_outside_the_domain_are_refused(row: list[float]) -> None:
    with pytest.raises(OutOfDomain):
        WaveResponse(1, 1.0).randomise(np.array([row]), SeededSource(6, "bad", str(row)))


def test_classes_that_are_not_the_waves_bins_are_refused() -> None:
    response = WaveResponse(4, 1.0)
    tally = response.tally(np.empty((0, 3), dtype=np.uint32))
    for classes in (Discretiser(ranges(4), 4), Discretiser(mixed_schema(), 8)):
        with pytest.raises(BadParameter, match="classes"):
            fit_wave(response, tally, Shrinkage(classes))
