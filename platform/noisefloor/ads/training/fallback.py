"""Whether a training can learn factors at all, decided from public numbers before it starts.

A training whose predicted noise exceeds its predicted signal ends worse than one mean for each ad,
and its reports have cost as much. It is then replaced by protected means at the same epsilon:
a part of the users reports which ads are rated, all others how. Only the plan is used: how many
users are expected, epsilon, rounds, clip, ads and factors. No report and no rating is looked at.

The constants say how much signal to expect. They were chosen on worlds of ``bench/learning.py``
with seeds of their own, as the place where training and protected means come out even.
"""

import math

from noisefloor.ads.training.bit_training import BitTraining
from noisefloor.ads.training.gradient_noise import GradientBound
from noisefloor.ads.training.laplace_training import LaplaceTraining
from noisefloor.ads.training.rounds import AdTraining
from noisefloor.ads.training.spectral_training import LEAST_ADS, MOST_ADS, SpectralTraining
from noisefloor.checks import check_count

MEANS_SHARES = (0.15, 0.85, 0.0)
"""Users who report which ads are rated, and how; nobody reports axes."""

_AGREEMENT = 0.025
"""What the mean over users keeps of one bounded number of a gradient: few rate an ad, and those
who do pull its factors both ways."""

_USUAL_GRADIENT = 0.05
"""Size of one number of a gradient: a clip above it adds noise and no signal."""

_EXPLAINED_RATED = 0.24
"""Share of ads that a user rates times share of the variance that all factors explain: 0.3 and
0.8. Spread over the factors, it is what one of them adds to the moments of unit vectors."""


def noise_over_signal(training: AdTraining, users: int) -> float:
    """Return the predicted noise of a training over its predicted signal.

    For gradients, that of one number of the mean over all rounds. For axes, the edge of the
    eigenvalues of noise alone over the eigenvalue of one factor. Means have no signal to lose: 0.

    Args:
        training: As planned.
        users: How many are expected to take part.
    """
    count = check_count(users, "users", least=1, most=1 << 62)
    if isinstance(training, BitTraining):
        reports = max(1, count // training.rounds) if training.once else count
        return _gradient_ratio(
            training.gradient_deviation(reports), training.rounds, training.clip
        )
    if isinstance(training, LaplaceTraining):
        deviation = training.gradient_deviation(count)
        return _gradient_ratio(deviation, training.rounds, _most_per_number(training))
    if isinstance(training, SpectralTraining):
        return 0.0 if training.is_means else _axes_ratio(training, count)
    raise TypeError(f"{type(training).__name__} has no predicted noise.")


def _gradient_ratio(deviation: float, rounds: int, most: float) -> float:
    signal = _AGREEMENT * min(most, _USUAL_GRADIENT)
    return deviation / math.sqrt(rounds) / signal


def _most_per_number(training: LaplaceTraining) -> float:
    """Return how large one number of a gradient is at most; a block shares its clip."""
    if training.form is GradientBound.PRINTED:
        return math.inf
    is_block = training.form is GradientBound.BLOCK
    return training.clip / (training.ads * training.dimension if is_block else 1)


def _axes_ratio(training: SpectralTraining, users: int) -> float:
    gain, noise = training.axes_gain(max(1, round(training.shares[2] * users)))
    edge = 2 * noise * math.sqrt(training.ads)
    return edge / (gain * _EXPLAINED_RATED / training.dimension)


def means_instead(training: AdTraining) -> SpectralTraining | None:
    """Return protected means at the epsilon of a training; none for too few or too many ads."""
    if not isinstance(training, BitTraining | LaplaceTraining | SpectralTraining):
        raise TypeError(f"{type(training).__name__} has no settings that are known.")
    if not LEAST_ADS <= training.ads <= MOST_ADS:
        return None
    return SpectralTraining(
        training.ads,
        min(training.dimension, training.ads - 1),
        training.claimed.epsilon,
        shares=MEANS_SHARES,
        ridge=training.ridge,
        centre=training.centre,
    )


def with_fallback(training: AdTraining, users: int) -> AdTraining:
    """Return a training, or protected means where its predicted noise exceeds its signal."""
    if noise_over_signal(training, users) <= 1:
        return training
    return means_instead(training) or training
