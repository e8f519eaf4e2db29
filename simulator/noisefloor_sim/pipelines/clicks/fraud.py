"""Fraud in click statistics, scored: how far the pushed ad was lifted, and whether it shows."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.ads.detectors import odd_total, roc
from noisefloor.laws import ONE
from noisefloor.mechanisms.base import Estimate
from noisefloor.mechanisms.unary import UnaryEncoding
from noisefloor.randomness import Generator, SeededSource
from noisefloor.roles.protocols import Aggregation
from noisefloor_sim.pipelines.base import Metric
from noisefloor_sim.pipelines.clicks.books import DayBook
from noisefloor_sim.pipelines.clicks.estimates import sum_of
from noisefloor_sim.pipelines.clicks.forgery import Forger, day_encoding
from noisefloor_sim.pipelines.clicks.games import share_metric

FALSE_ALARMS = 0.01
"""The level of the detector: so many honest epochs it may accuse."""

EPOCHS = 1_000
"""Honest epochs, and as many attacked ones, on which the detector is tried: the fewest that tell
a rate of one in a hundred."""


def fraud_metrics(
    forger: Forger | None,
    books: Sequence[DayBook],
    aggregator: Aggregation,
    kind: str,
    source: SeededSource,
    *,
    share_coins: bool,
) -> list[Metric]:
    """Tell how far fakes lifted their ad, beside the formula, and how well a detector does.

    Args:
        forger: Whose fakes there are; nothing is told where there is none.
        books: One for each day.
        aggregator: What was released.
        kind: Of the frames.
        source: Of the epochs that the detector is tried on.
        share_coins: Whether the days' estimates may rest on the same coins.
    """
    if forger is None:
        return []
    released = [
        (book, *aggregator.release(kind, day)) for day, book in enumerate(books) if book.honest
    ]
    days = [(book, tally, n) for book, tally, n in released if n]
    if not days:
        return []
    metrics = _bias_metrics(forger, days, share_coins=share_coins)
    encoding = day_encoding(forger.mechanism)
    if encoding is None:
        return metrics
    p_values = [float(odd_total(encoding, tally, n)) for _, tally, n in days]
    return [
        *metrics,
        Metric("fraud.p_value", float(np.median(p_values)), n=len(days)),
        *_detector_metrics(forger, encoding, [book for book, _, _ in days], source),
    ]


def _bias_metrics(
    forger: Forger, days: Sequence[tuple[DayBook, NDArray[np.int64], int]], *, share_coins: bool
) -> list[Metric]:
    """Compare the estimated share of the pushed ad with that among the honest."""
    gaps, formulas, ad = [], [], slice(forger.pushed, forger.pushed + 1)
    for book, tally, n in days:
        honest = forger.honest_share(book.held, book.honest)
        estimate = forger.mechanism.estimate(tally, n)
        gaps.append(Estimate(estimate.value[ad] - honest, estimate.standard_error[ad]))
        formulas.append(forger.bias(book.fakes / (book.honest + book.fakes), honest))
    total = sum_of(gaps, share_coins=share_coins)
    mean, error = (float(one[0]) / len(days) for one in (total.value, total.standard_error))
    reports = sum(n for _, _, n in days)
    fakes, honest_reports = (
        sum(getattr(book, name) for book, _, _ in days) for name in ("fakes", "honest")
    )
    return [
        Metric("fraud.share", fakes / (fakes + honest_reports), n=fakes + honest_reports),
        Metric.normal("fraud.bias", mean, error, reports),
        Metric("fraud.bias_formula", math.fsum(formulas) / len(days), n=reports),
    ]


def _detector_metrics(
    forger: Forger, encoding: UnaryEncoding, books: Sequence[DayBook], source: SeededSource
) -> list[Metric]:
    """Try the detector on epochs of a mean day's size, honest and attacked ones.

    Sees:      the tally of an epoch.
    Knows:     the encoding, and how many ones an honest device may hold.
    Guesses:   whether there are fakes among the reports.
    Reference: the number of all ones in an epoch is a sum of two binomials, by exact law.
    """
    honest = sum(book.honest for book in books)
    held = sum(int(book.held.sum()) for book in books) / honest
    each, fakes = round(honest / len(books)), round(sum(b.fakes for b in books) / len(books))
    draw = source.child("detector").generator()
    clean = _totals(encoding, each + fakes, held, draw)
    # An evasive fake moves a one but keeps their number: that of somebody who holds one.
    forged = fakes if forger.forgery == "maximal" else _totals(encoding, fakes, 1.0, draw)
    attacked = _totals(encoding, each, held, draw) + forged
    accused, found = (
        odd_total(encoding, totals[:, None], each + fakes) for totals in (clean, attacked)
    )
    return [
        Metric("fraud.auc", roc(accused, found, false_positive_rate=FALSE_ALARMS).auc, n=EPOCHS),
        share_metric("fraud.found", int((found < FALSE_ALARMS).sum()), EPOCHS),
        share_metric("fraud.false_alarms", int((accused < FALSE_ALARMS).sum()), EPOCHS),
    ]


def _totals(
    encoding: UnaryEncoding, reports: int, held: float, draw: Generator
) -> NDArray[np.int64]:
    """Return all ones of so many reports, in as many epochs as the detector is tried on."""
    ones = round(reports * held)
    stayed = draw.binomial(ones, encoding.stay / ONE, EPOCHS)
    raised = draw.binomial(reports * encoding.size - ones, encoding.rise / ONE, EPOCHS)
    return np.asarray(stayed + raised, dtype=np.int64)
