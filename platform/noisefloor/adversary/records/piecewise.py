"""What the piecewise mechanism gives away: which of two values it was."""

import numpy as np

from noisefloor.accounting import binary_success
from noisefloor.adversary.audit import AttackOutcome, draw_truth, score
from noisefloor.checks import check_count
from noisefloor.distributions import ONE
from noisefloor.mechanisms import STEPS, Piecewise, position_of
from noisefloor.privacy import Neighbours
from noisefloor.randomness import Source


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
