"""What the piecewise mechanism gives away: an interval, and which of two values it was.

With s = e^(eps/2), a report lies in the window of its value with s / (s + 1). Turned around: the
values whose window holds the report are an interval of width 2 / s, and hold the truth as often.
"""

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import binary_success, success
from noisefloor.adversary.audit import AttackOutcome, draw_truth, score
from noisefloor.checks import Floats, check_count, check_reals
from noisefloor.distributions import ONE
from noisefloor.mechanisms import STEPS, Piecewise, Reports, position_of, positions_of
from noisefloor.privacy import Neighbours
from noisefloor.randomness import Source


def attack_interval(mechanism: Piecewise, values: Floats, source: Source) -> AttackOutcome:
    """Guess an interval for each owner's value.

    Sees:      the report of one value.
    Knows:     the mechanism; the baseline and the bound are of values that are even in [-1, 1].
    Guesses:   the values for which the report is likely: an interval of width 2 e^(-eps/2),
               less at the ends.
    Reference: Wang et al. 2019, arXiv 1907.00782 (the window); ``interval_success`` is the
               closed form, whatever the values are.
    """
    reals = check_reals(values, -1.0, 1.0)
    low, high = guess_interval(mechanism, mechanism.randomise(reals, source))
    places = positions_of(reals, -1.0, 1.0)
    width = mechanism.window.width / STEPS
    return AttackOutcome(
        int(np.count_nonzero((low <= places) & (places <= high))),
        len(reals),
        min(1.0, width),
        float(success(mechanism.guarantee().epsilon, max(1.0, 1 / width))),
        interval_success(mechanism),
    )


def guess_interval(
    mechanism: Piecewise, reports: Reports
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the last position on the grid whose window holds each report.

    Sees:      reports, one an owner.
    Knows:     the mechanism.
    Guesses:   the positions between the two.
    Reference: as ``attack_interval``.
    """
    cells = np.asarray(reports, dtype=np.int64)
    return np.maximum(cells - mechanism.window.width + 1, 0), np.minimum(cells, STEPS)


def interval_success(mechanism: Piecewise) -> float:
    """Return how often the interval holds the value: s / (s + 1), by the window as rounded."""
    return mechanism.window.inside / ONE


def attack_pair(
    mechanism: Piecewise, first: float, second: float, games: int, source: Source
) -> AttackOutcome:
    """Guess which of two values, each as likely, was reported.

    Sees:      the report.
    Knows:     the mechanism and both values.
    Guesses:   the more likely of the two.
    Reference: Neyman and Pearson 1933; ``pair_success`` is the closed form.
    """
    check_count(games, "games")
    truth = draw_truth(np.full(2, 0.5), games, source.child("truth"))
    values = np.array([first, second])[truth]
    reports = mechanism.randomise(values, source.child("reports"))
    gap = mechanism.log_likelihood(reports, second) - mechanism.log_likelihood(reports, first)
    return score(
        (gap > 0).astype(np.intp),
        truth,
        baseline=0.5,
        bound=float(binary_success(mechanism.guarantee(Neighbours.USER).epsilon)),
        closed_form=pair_success(mechanism, first, second),
    )


def pair_success(mechanism: Piecewise, first: float, second: float) -> float:
    """Return how often two values are distinguished: 1/2 + TV/2, by the window as rounded.

    Formula: TV = (p - q) min(width, |x - x'|) in cells, p and q of a near and of a far cell.
    """
    window = mechanism.window
    apart = abs(position_of(first, -1.0, 1.0) - position_of(second, -1.0, 1.0))
    near, far = window.inside / ONE / window.width, (ONE - window.inside) / ONE / STEPS
    return 0.5 + (near - far) * min(window.width, apart) / 2
