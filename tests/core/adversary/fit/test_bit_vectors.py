"""Rows of bits against their encoding: honest ones pass, and every fault shows.

Each honest run is rejected with probability below LEVEL, 1e-10.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from noisefloor.ads.clicks import ClickEncoding, ClickReport, MemoisedClicks
from noisefloor.adversary.fit import BitVectorFit, SeenRows
from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.pipelines.clicks.click_flow import bit_distribution

ADS, USERS, COHORTS, DAYS = 8, 2_500, 4, 4
EPSILONS = (0.25, 1.0, 4.0, 8.0)
FORMS = (
    (ClickEncoding.PER_BIT, 1),
    (ClickEncoding.CAPPED, 2),
    (ClickEncoding.ONE_CLICK, 1),
    (ClickEncoding.PAD_AND_SAMPLE, 3),
)

Bits = NDArray[np.bool_]
Device = Callable[[ClickReport, Bits, int, int], Bits]


def clicks_of(cohort: int, day: int) -> Bits:
    draw = SeededSource(5, "clicks", cohort, day).generator()
    return draw.random((USERS, ADS)) < 0.2


def honest(report: ClickReport, bits: Bits, cohort: int, day: int) -> Bits:
    return report.randomise(bits, SeededSource(6, "report", cohort, day))


def seen(report: ClickReport, device: Device) -> BitVectorFit:
    fit = BitVectorFit(bit_distribution(report))
    with new_run():
        for cohort in range(COHORTS):
            for day in range(DAYS):
                users = np.flatnonzero(
                    SeededSource(7, cohort, day).generator().random(USERS) < 0.9
                )
                bits = clicks_of(cohort, day)[users]
                rows = device(report, bits, cohort, day)
                fit.see(SeenRows(cohort, day, USERS, users, rows, bits))
    return fit


@pytest.mark.statistical
def test_honest_reports_pass_in_every_form_at_every_epsilon() -> None:
    for form, most in FORMS:
        for epsilon in EPSILONS:
            found = seen(ClickReport(ADS, epsilon, form, most), honest).result()
            assert not found.rejects, (form, epsilon, found.worst)
            assert found.tests > 20


def half(report: ClickReport, bits: Bits, cohort: int, day: int) -> Bits:
    return honest(replace(report, epsilon=2 * report.epsilon), bits, cohort, day)


def raw(report: ClickReport, bits: Bits, cohort: int, day: int) -> Bits:
    return report.keep(bits, SeededSource(6, "report", cohort, day))


def same_each_day(report: ClickReport, bits: Bits, cohort: int, day: int) -> Bits:
    with new_run():
        return honest(report, bits, cohort, 0)


def same_in_all_cohorts(report: ClickReport, bits: Bits, cohort: int, day: int) -> Bits:
    with new_run():
        return honest(report, bits, 0, day)


def uncapped(report: ClickReport, bits: Bits, cohort: int, day: int) -> Bits:
    whole = replace(report.encoding, most_ones=report.width)
    padded = np.pad(bits, ((0, 0), (0, report.width - ADS)))
    return whole.randomise(padded, SeededSource(6, "report", cohort, day))


@pytest.mark.statistical
@pytest.mark.parametrize("device", [half, raw, same_each_day, same_in_all_cohorts])
def test_a_device_that_protects_less_is_found(device: Device) -> None:
    for form, most in FORMS:
        for epsilon in EPSILONS if device in (half, raw) else (1.0, 4.0):
            found = seen(ClickReport(ADS, epsilon, form, most), device).result()
            assert found.rejects, (form, epsilon)


@pytest.mark.statistical
def test_clicks_beyond_the_cap_are_found_though_each_bit_has_its_noise() -> None:
    for form, most in FORMS[1:]:
        assert seen(ClickReport(ADS, 2.0, form, most), uncapped).result().rejects, form


@pytest.mark.statistical
def test_one_row_of_noise_for_all_users_is_found() -> None:
    def alike(report: ClickReport, bits: Bits, cohort: int, day: int) -> Bits:
        none = np.zeros((1, ADS), dtype=np.bool_)
        flips = honest(report, none, cohort, day)
        return bits ^ flips

    for epsilon in (1.0, 4.0):
        assert seen(ClickReport(ADS, epsilon, ClickEncoding.PER_BIT), alike).result().rejects


@pytest.mark.statistical
def test_fresh_answers_do_not_pass_for_permanent_ones() -> None:
    clicks = MemoisedClicks(ADS, 8.0, 4.0, DAYS)

    def verdict(*, is_permanent: bool) -> bool:
        fit = BitVectorFit(bit_distribution(clicks))
        with new_run():
            for cohort in range(COHORTS):
                memory = clicks.memorise(USERS, SeededSource(8, "memory", cohort))
                for day in range(DAYS):
                    if not is_permanent:
                        memory = clicks.memorise(USERS, SeededSource(8, "new", cohort, day))
                    bits = clicks_of(cohort, 0)
                    rows = clicks.report(bits, memory, SeededSource(9, cohort, day))
                    fit.see(SeenRows(cohort, day, USERS, np.arange(USERS), rows, bits))
        return fit.result().rejects

    assert not verdict(is_permanent=True)
    assert verdict(is_permanent=False)


def test_counts_do_not_depend_on_the_order_in_which_frames_come() -> None:
    report = ClickReport(ADS, 2.0, ClickEncoding.ONE_CLICK)
    rows = []
    with new_run():
        for cohort in range(3):
            for day in range(3):
                bits = clicks_of(cohort, day)
                reports = honest(report, bits, cohort, day)
                rows.append(SeenRows(cohort, day, USERS, np.arange(USERS), reports, bits))
    found = []
    for order in (range(9), reversed(range(9))):
        fit = BitVectorFit(bit_distribution(report))
        for place in order:
            fit.see(rows[place])
        found.append(fit.result())
    assert found[0] == found[1]
