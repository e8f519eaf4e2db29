"""Guessing games: devices with known clicks, and an adversary that sees their reports.

A game draws a fair random bit for each canary: one of two inputs, mostly vectors of clicks, the
same in all its periods. The canary's device reports as any other; the adversary sees the reports
of a connection, knows both inputs, and names one. So there is a truth to score against and a
closed form to meet.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import binary_success
from noisefloor.ads.clicks import ClickEncoding, ClickReport, DeliveredClick, MemoisedClicks
from noisefloor.adversary.audit import (
    AttackOutcome,
    bayes_guess,
    lower_limit,
    majority_success,
    pair_success,
    score,
    upper_limit,
    vector_success,
)
from noisefloor.distributions import ONE
from noisefloor.mechanisms import Reports
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.scoring import game_metrics

Bits = NDArray[np.bool_]

_MOST_BITS = 1_000
"""Of a vector whose number of values a float can hold."""


@dataclass(frozen=True, slots=True)
class DistinguishingGame:
    """Two inputs to be distinguished.

    Attributes:
        name: Of the metrics.
        first: One vector of clicks, or one symbol of a delivered ad and its click.
        second: The other.
        periods: Days on which a canary reports.
    """

    name: str
    first: Reports
    second: Reports
    periods: int


def games_of(report: ClickReport, days: int, *, is_linked: bool) -> list[DistinguishingGame]:
    """Return the games: one bit, the worst two profiles, and one bit over several fresh reports.

    Days are joined only by a server that can link a connection's reports. Reports that are sent
    again tell nothing new, so ``days`` counts the fresh ones.
    """
    none = np.zeros(report.ads, dtype=np.bool_)
    bit = np.arange(report.ads) == 0
    worst = report.worst_pairs(Neighbours.USER)[0]
    games = [
        DistinguishingGame("single_bit", bit, none, 1),
        DistinguishingGame("profiles", worst[0], worst[1], 1),
    ]
    return (
        [*games, DistinguishingGame("all_days", bit, none, days)]
        if is_linked and days > 1
        else games
    )


def delivered_games_of(days: int, *, is_linked: bool) -> list[DistinguishingGame]:
    """Return the games about one delivered ad: its click, once and over several fresh reports."""
    clicked, none = np.array(1), np.array(0)
    games = [DistinguishingGame("single_bit", clicked, none, 1)]
    return (
        [*games, DistinguishingGame("all_days", clicked, none, days)]
        if is_linked and days > 1
        else games
    )


def play(
    report: ClickReport | DeliveredClick,
    game: DistinguishingGame,
    canaries: int,
    source: SeededSource,
) -> list[Metric]:
    """Let the adversary guess for every canary, and score it in whole counts."""
    truth, periods = _reports(report, game, canaries, source.child(game.name))
    guessed = bayes_guess(report, periods, [game.first, game.second]).candidate
    proved = game.periods * report.guarantee(Neighbours.USER).epsilon
    bound, expected = float(binary_success(proved)), closed_form(report, game)
    outcome = score(guessed, truth, baseline=0.5, bound=bound, closed_form=expected)
    return game_metrics(game.name, outcome)


def _reports(
    report: ClickReport | DeliveredClick,
    game: DistinguishingGame,
    canaries: int,
    source: SeededSource,
) -> tuple[Bits, list[Reports]]:
    """Draw each canary's bit, and return it with the reports of all periods."""
    truth = source.child("truth").bernoulli(ONE // 2, canaries)
    inputs = np.stack([game.first, game.second])[truth.view(np.uint8)]
    return truth, [
        report.randomise(inputs, source.child("day", day)) for day in range(game.periods)
    ]


def play_row_order(
    report: ClickReport, days: int, canaries: int, source: SeededSource, *, is_kept: bool
) -> list[Metric]:
    """Let an adversary without labels take the place of a row in its frame for a label.

    Sees:      one frame a day, rows in the order of the frame; no connection.
    Knows:     both vectors; that a frame holds the same devices every day.
    Guesses:   what the device in each place of the first day's frame holds.
    Reference: closed form of all days linked, if the order is kept; of one day, if it is not.
    """
    game = DistinguishingGame(
        "row_order", np.arange(report.ads) == 0, np.zeros(report.ads, dtype=np.bool_), days
    )
    randomness = source.child(game.name)
    truth, periods = _reports(report, game, canaries, randomness)
    orders = [np.arange(canaries)] * days
    if not is_kept:
        orders = [randomness.child("order", day).permutation(canaries) for day in range(days)]
    frames = [rows[order] for rows, order in zip(periods, orders, strict=True)]
    guessed = bayes_guess(report, frames, [game.first, game.second]).candidate
    outcome = score(guessed, truth[orders[0]], baseline=0.5, bound=1.0, is_covered=False)
    return game_metrics(game.name, outcome)


def play_vector(report: ClickReport, canaries: int, source: SeededSource) -> list[Metric]:
    """Let the adversary name whole vectors of fair bits; only for forms that answer each bit.

    Sees:      one report.
    Knows:     that every bit is fair.
    Guesses:   the whole vector: the report itself is the best guess.
    Reference: every bit is right with the chance to stay, independently.
    """
    if report.form not in (ClickEncoding.PER_BIT, ClickEncoding.SPLIT):
        return []
    randomness = source.child("vector")
    truth = (
        randomness.child("truth")
        .bernoulli(ONE // 2, canaries * report.ads)
        .reshape(-1, report.ads)
    )
    rows = report.randomise(truth, randomness.child("reports"))
    outcome = AttackOutcome(
        int(np.count_nonzero((rows == truth).all(axis=1))),
        canaries,
        0.5**report.ads,
        1.0,
        vector_success(report.ads, report.encoding.stay / ONE),
        is_covered=False,
        candidates=2 ** min(report.ads, _MOST_BITS),
    )
    return game_metrics("vector", outcome)


def delivered_metrics(counts: NDArray[np.int64], report: ClickReport) -> list[Metric]:
    """Score guesses about real users' bits: those of delivered ads, clicked and not.

    Sees:      one report of each user and day, linked to what was delivered to them.
    Knows:     which ads were delivered; that a bit is one that was clicked, or one that was not,
               as likely. How often ads are clicked differs between worlds: it is no prior here.
    Guesses:   each bit of a delivered ad: what is reported.
    Reference: mean of both values' chances to be reported as they are.

    ``counts[bit, report]`` are the delivered bits by their value and by what was reported.
    """
    totals = counts.sum(axis=1)
    if not totals.all():
        return []
    n, right = int(totals.sum()), counts.diagonal()
    success = float((right / totals).mean())
    # Each value misses its interval with half the probability: their mean misses with no more.
    low = float(np.mean(lower_limit(right, totals, 0.0125)))
    high = float(np.mean(upper_limit(right, totals, 0.0125)))
    proved = report.guarantee(Neighbours.USER).epsilon
    metrics = [
        Metric("attack.delivered.success", success, low, high, n),
        Metric("attack.delivered.prior", 0.5, n=n),
        Metric("attack.delivered.advantage", success - 0.5, low - 0.5, high - 0.5, n),
        Metric("attack.delivered.candidates", 2.0, n=n),
        Metric("attack.delivered.bound", float(binary_success(proved)), n=n),
    ]
    # Under a cap a click may have been dropped before the noise: no closed form for the bit.
    if report.form in (ClickEncoding.PER_BIT, ClickEncoding.SPLIT):
        expected = (report.encoding.stay + ONE - report.encoding.rise) / ONE / 2
        metrics.append(Metric("attack.delivered.closed_form", expected, n=n))
    return metrics


def closed_form(report: ClickReport | DeliveredClick, game: DistinguishingGame) -> float | None:
    """Return how often the best guess is right, where a formula tells."""
    if isinstance(report, DeliveredClick):
        return majority_success(game.periods, 1 - report.response.flip / ONE)
    if report.form is ClickEncoding.PAD_AND_SAMPLE:
        return None
    return pair_success(report.encoding, game.first, game.second, game.periods)


def play_memoised(clicks: MemoisedClicks, canaries: int, source: SeededSource) -> list[Metric]:
    """Let the adversary average over the days of a steady bit: it learns the permanent answer.

    Sees:      all reports of a connection.
    Knows:     that the bit does not change.
    Guesses:   the bit.
    Reference: closed form over the number of ones, mixed over the permanent answer.
    """
    randomness = source.child("all_days")
    truth = randomness.child("truth").bernoulli(ONE // 2, canaries)
    bit, none = np.arange(clicks.ads) == 0, np.zeros(clicks.ads, dtype=np.bool_)
    reports = clicks.randomise(np.where(truth[:, None], bit, none), randomness.child("reports"))
    outcome = score(
        bayes_guess(clicks, [reports], [none, bit]).candidate,
        truth,
        baseline=0.5,
        bound=float(binary_success(clicks.guarantee(Neighbours.USER).epsilon)),
        closed_form=clicks.bit_success(),
    )
    return game_metrics("all_days", outcome)
