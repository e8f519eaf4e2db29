"""Fraud in click statistics, scored: how far the pushed ad was lifted, and whether it shows.

Fake devices in click statistics: what they send to push one ad, and what it gains them.

Fakes send beside the honest, in the same frames, within the form that every report has; they
spend nobody's budget. Each sends once a day with random numbers of its own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.clicks import ClickReport, DeliveredClick, MemoisedClicks
from noisefloor.adversary.ads import (
    ReportSupport,
    crafted_bias,
    crafted_reports,
    detection_rates,
    input_bias,
    mimic,
    mimic_bias,
    support_of,
    total_test,
)
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Estimate, Reports, UnaryEncoding
from noisefloor.randomness import Generator, SeededSource
from noisefloor.roles import Aggregation
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.clicks.click_flow import ClickMechanism
from noisefloor_sim.pipelines.clicks.day_statistics import ClickDayStatistics
from noisefloor_sim.pipelines.clicks.sending import SentReports
from noisefloor_sim.pipelines.scoring import proportion_metric
from noisefloor_sim.scenario import Scenario

Forgery = Literal["maximal", "evasive", "input"]


def day_encoding(mechanism: ClickMechanism) -> UnaryEncoding | None:
    """Return the unary encoding that one day's reports follow, if they are rows of bits.

    Permanent and fresh answers together flip each bit of one day's report with one probability.
    """
    if isinstance(mechanism, ClickReport):
        return mechanism.encoding
    if isinstance(mechanism, DeliveredClick):
        return None
    once, again = mechanism.response.permanent, mechanism.response.instant
    lie = (once * (ONE - again) + (ONE - once) * again) // ONE
    return UnaryEncoding(mechanism.ads, ONE - lie, lie, mechanism.ads)


@dataclass(frozen=True, slots=True)
class Forger:
    """The adversary that runs the fake devices.

    Attributes:
        mechanism: Whose reports are forged.
        pushed: The ad that is to look clicked.
        share: Of fakes among all devices that report.
        forgery: Write the report that gains most; or one with as many ones as an honest report
            has; or lie about the clicks and report as everybody does.
    """

    mechanism: ClickMechanism
    pushed: int
    share: float
    forgery: Forgery

    @classmethod
    def of(cls, scenario: Scenario, mechanism: ClickMechanism) -> "Forger | None":
        """Return the forger of a scenario, if there is one."""
        threat, ads = scenario.threat, scenario.ad_behaviour.ads
        if not threat.fakes:
            return None
        if threat.pushed_ad >= ads:
            raise BadParameter("threat.pushed_ad", threat.pushed_ad, f"< {ads}, the ads there are")
        return cls(mechanism, threat.pushed_ad, threat.fakes, threat.forgery)

    def join(self, sent: SentReports, stats: ClickDayStatistics, source: SeededSource) -> Reports:
        """Return honest reports with forged ones behind them, and write down how many."""
        fakes = round(len(sent.reports) * self.share / (1 - self.share))
        stats.true_tally += self.mechanism.tally(sent.inputs)
        stats.fakes += fakes
        if not fakes:
            return sent.reports
        return np.concatenate([sent.reports, self.reports(fakes, source)])

    def reports(self, fakes: int, source: SeededSource) -> Reports:
        """Return a number of forged reports."""
        encoding = day_encoding(self.mechanism)
        if self.forgery == "maximal":
            return crafted_reports(encoding or self.mechanism, self.pushed, fakes)
        if self.forgery == "evasive" and encoding is not None:
            # From reports of somebody who holds the ad: fewer of them are empty than of somebody
            # who holds nothing, and only an empty report has no one to move to the ad.
            own = encoding.randomise(
                self._rows_with_pushed_ad(fakes, encoding.size), source.child("own")
            )
            return mimic(own, self.pushed, source.child("moved"))
        return self._honest_lies(fakes, source)

    def _honest_lies(self, fakes: int, source: SeededSource) -> Reports:
        """Report as everybody does, for somebody who clicked the ad and no other.

        One bit has nothing to hide a forgery in: of the reports on a delivered ad that look like
        honest ones, these gain most.
        """
        if isinstance(self.mechanism, DeliveredClick):
            symbols = np.full(fakes, 2 * self.pushed + 1)
            return self.mechanism.randomise(symbols, source)
        vectors = self._rows_with_pushed_ad(fakes, self.mechanism.ads)
        if isinstance(self.mechanism, MemoisedClicks):
            # A fake of one day and one of many have the same law on any one day.
            return self.mechanism.report(
                vectors, self.mechanism.memorise(fakes, source.child("memory")), source
            )
        return self.mechanism.randomise(vectors, source)

    def _rows_with_pushed_ad(self, rows: int, width: int) -> NDArray[np.bool_]:
        """Return rows with a one for the pushed ad, and no other."""
        true_tally = np.zeros((rows, width), dtype=np.bool_)
        true_tally[:, self.pushed] = True
        return true_tally

    def honest_share(self, true_tally: NDArray[np.int64], honest: int) -> float:
        """Return the share of honest reports that hold the pushed ad, as the estimator sees it.

        Args:
            true_tally: The tally of the honest reports without their noise.
            honest: How many there are.
        """
        is_symbol = isinstance(self.mechanism, DeliveredClick)
        place = 2 * self.pushed + 1 if is_symbol else self.pushed
        return self._support.scale * float(true_tally[place]) / honest

    def bias(self, fakes: float, honest: float) -> float:
        """Return by how much the estimated share is expected to rise.

        Args:
            fakes: Their share of all reports.
            honest: The share of honest reports that hold the ad.
        """
        encoding, support = day_encoding(self.mechanism), self._support
        if self.forgery == "maximal":
            return crafted_bias(support, fakes=fakes, honest=honest)
        if self.forgery == "evasive" and encoding is not None:
            # Sampling scales the whole estimate, the honest share in it too.
            part = honest / support.scale
            return support.scale * mimic_bias(encoding, fakes=fakes, honest=part)
        return input_bias(fakes=fakes, honest=honest)

    @property
    def _support(self) -> ReportSupport:
        if isinstance(self.mechanism, MemoisedClicks):
            return support_of(day_encoding(self.mechanism))
        return support_of(self.mechanism)


FALSE_ALARMS = 0.01
"""The level of the detector: the share of honest epochs that it may accuse."""

EPOCHS = 1_000
"""Honest epochs, and as many attacked ones, on which the detector is tried: the fewest that tell
a rate of one in a hundred."""


def fraud_metrics(
    forger: Forger | None,
    statistics: Sequence[ClickDayStatistics],
    aggregator: Aggregation,
    kind: str,
    source: SeededSource,
    *,
    share_randomness: bool,
) -> list[Metric]:
    """Tell how far fakes lifted their ad, beside the formula, and how well a detector does.

    Args:
        forger: Whose fakes there are; no metrics where there is none.
        statistics: One for each day.
        aggregator: What was released.
        kind: Of the frames.
        source: Of the epochs that the detector is tried on.
        share_randomness: Whether the days' estimates may rest on the same random numbers.
    """
    if forger is None:
        return []
    released = [
        (stats, *aggregator.release(kind, day))
        for day, stats in enumerate(statistics)
        if stats.honest
    ]
    days = [(stats, tally, n) for stats, tally, n in released if n]
    if not days:
        return []
    metrics = _bias_metrics(forger, days, share_randomness=share_randomness)
    encoding = day_encoding(forger.mechanism)
    if encoding is None:
        return metrics
    p_values = [float(total_test(encoding, tally, n)) for _, tally, n in days]
    return [
        *metrics,
        Metric("fraud.p_value", float(np.median(p_values)), n=len(days)),
        *_detector_metrics(forger, encoding, [stats for stats, _, _ in days], source),
    ]


def _bias_metrics(
    forger: Forger,
    days: Sequence[tuple[ClickDayStatistics, NDArray[np.int64], int]],
    *,
    share_randomness: bool,
) -> list[Metric]:
    """Compare the estimated share of the pushed ad with that among the honest."""
    gaps, formulas, ad = [], [], slice(forger.pushed, forger.pushed + 1)
    for stats, tally, n in days:
        honest = forger.honest_share(stats.true_tally, stats.honest)
        estimate = forger.mechanism.estimate(tally, n)
        gaps.append(Estimate(estimate.value[ad] - honest, estimate.standard_error[ad]))
        formulas.append(forger.bias(stats.fakes / (stats.honest + stats.fakes), honest))
    total = _sum_of(gaps, share_randomness=share_randomness)
    mean, error = (float(one[0]) / len(days) for one in (total.value, total.standard_error))
    reports = sum(n for _, _, n in days)
    fakes, honest_reports = (
        sum(getattr(stats, name) for stats, _, _ in days) for name in ("fakes", "honest")
    )
    return [
        Metric("fraud.share", fakes / (fakes + honest_reports), n=fakes + honest_reports),
        Metric.normal("fraud.bias", mean, error, reports),
        Metric("fraud.bias_formula", math.fsum(formulas) / len(days), n=reports),
    ]


def _detector_metrics(
    forger: Forger,
    encoding: UnaryEncoding,
    statistics: Sequence[ClickDayStatistics],
    source: SeededSource,
) -> list[Metric]:
    """Try the detector on epochs of a mean day's size, honest and attacked ones.

    Sees:      the tally of an epoch.
    Knows:     the encoding, and how many ones an honest device may hold.
    Guesses:   whether there are fakes among the reports.
    Reference: the number of all ones in an epoch is a sum of two binomials, by exact law.
    """
    honest = sum(stats.honest for stats in statistics)
    true_tally = sum(int(stats.true_tally.sum()) for stats in statistics) / honest
    each, fakes = (
        round(honest / len(statistics)),
        round(sum(b.fakes for b in statistics) / len(statistics)),
    )
    draw = source.child("detector").generator()
    clean = _totals(encoding, each + fakes, true_tally, draw)
    # An evasive fake moves a one but keeps their number: that of somebody who holds one.
    forged = fakes if forger.forgery == "maximal" else _totals(encoding, fakes, 1.0, draw)
    attacked = _totals(encoding, each, true_tally, draw) + forged
    accused, found = (
        total_test(encoding, totals[:, None], each + fakes) for totals in (clean, attacked)
    )
    return [
        Metric(
            "fraud.auc",
            detection_rates(accused, found, false_positive_rate=FALSE_ALARMS).auc,
            n=EPOCHS,
        ),
        proportion_metric("fraud.found", int((found < FALSE_ALARMS).sum()), EPOCHS),
        proportion_metric("fraud.false_alarms", int((accused < FALSE_ALARMS).sum()), EPOCHS),
    ]


def _totals(
    encoding: UnaryEncoding, reports: int, true_tally: float, draw: Generator
) -> NDArray[np.int64]:
    """Return how many ones the reports have, in as many epochs as the detector is tried on."""
    ones = round(reports * true_tally)
    stayed = draw.binomial(ones, encoding.stay / ONE, EPOCHS)
    raised = draw.binomial(reports * encoding.size - ones, encoding.rise / ONE, EPOCHS)
    return np.asarray(stayed + raised, dtype=np.int64)


def _sum_of(parts: Sequence[Estimate], *, share_randomness: bool) -> Estimate:
    """Return the sum of estimates with its standard error.

    Independent errors add up in squares. Permanent answers and reports that are sent again rest on
    the same random numbers every day: then the plain sum is the most that the error can be.
    """
    value = np.sum([part.value for part in parts], axis=0)
    errors = [part.standard_error for part in parts]
    if share_randomness:
        return Estimate(value, np.sum(errors, axis=0))
    return Estimate(value, np.sqrt(np.sum(np.square(errors), axis=0)))
