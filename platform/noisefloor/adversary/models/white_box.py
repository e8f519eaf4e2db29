"""The recipient of a noised model: which of two known parameter vectors lies under the noise?

All parameters carry the same record, so the adversary adds up what each says. Noise that is
calibrated to one parameter at a time leaves the sum growing with their number.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from noisefloor.accounting.bounds import binary_success
from noisefloor.adversary.held_out import held_out_bound
from noisefloor.adversary.intervals import Floats
from noisefloor.adversary.outcome import Outcome, score
from noisefloor.adversary.releases.noise_laws import LaplaceLaw, ShiftedLaw
from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter
from noisefloor.privacy import LowerBound
from noisefloor.randomness import Source

_BLOCK = 1 << 20
"""Noise drawn at once, in numbers; it is part of the definition of seeded streams."""


@dataclass(frozen=True, slots=True, eq=False)
class WhiteBox:
    """Tell two clean parameter vectors apart by the noised one.

    Sees:      every released parameter.
    Knows:     both clean vectors (with and without the record, or with one of two values of it),
               and the noise.
    Guesses:   which of the two it was, by the sum of the log-likelihood ratios.
    Reference: Neyman and Pearson 1933; no test is better.

    Attributes:
        first: The clean parameters in the one case.
        second: Those in the other.
        noise: What was added.
    """

    first: Floats
    second: Floats
    noise: ShiftedLaw

    def __post_init__(self) -> None:
        if np.ndim(self.first) != 1 or np.shape(self.first) != np.shape(self.second):
            raise BadParameter("first", np.shape(self.first), "a vector, as long as the second")
        if not (np.isfinite(self.first).all() and np.isfinite(self.second).all()):
            raise BadParameter("first", "<array>", "and the second to be finite")

    @property
    def shift(self) -> Floats:
        """How far each parameter moves."""
        return np.asarray(self.first, dtype=np.float64) - self.second

    @property
    def epsilon(self) -> float:
        """The exact loss of this pair: what no audit of it can pass."""
        return self.noise.epsilon(self.shift)

    @property
    def closed_form(self) -> float:
        """How often the guess is right.

        Exact for one parameter under Laplace noise, 1 - e^(-h/2) / 2, and for Gaussian noise;
        otherwise the sum of log-ratios is taken for Gaussian: Phi(mean / deviation), which for
        equal small shifts of h scales is Phi(sqrt(P) h / 2).
        """
        from scipy.special import ndtr  # lazy: scipy is slow to import

        if isinstance(self.noise, LaplaceLaw) and np.count_nonzero(self.shift) == 1:
            return 1 - math.exp(-self.epsilon / 2) / 2
        mean, variance = (float(some.sum()) for some in self.noise.moments(self.shift))
        return float(ndtr(mean / math.sqrt(variance))) if variance else 0.5

    def log_ratios(self, released: Floats) -> Floats:
        """Return ln P(released | first) / P(released | second), a number for each row."""
        ours = self.noise.log_density(released - self.first)
        ours -= self.noise.log_density(released - self.second)
        return np.asarray(ours.sum(axis=-1))

    def scores(self, games: int, source: Source, *, is_first: bool) -> Floats:
        """Noise one of the vectors afresh in each game, and return the log-ratios."""
        clean = self.first if is_first else self.second
        found = np.empty(check_count(games, "games"))
        for number, rows in enumerate(_rows(games, len(clean))):
            shape = (rows.stop - rows.start, len(clean))
            noise = self.noise.draw(shape, source.child("block", number))
            found[rows] = self.log_ratios(clean + noise)
        return found

    def play(self, games: int, source: Source) -> Outcome:
        """Play so many games on each vector; a ratio of one is called the second."""
        found = [
            self.scores(games, source.child(name), is_first=name == "first")
            for name in ("first", "second")
        ]
        truth = np.repeat([1, 0], games)
        guessed = (np.concatenate(found) > 0).astype(np.int64)
        bound = float(binary_success(self.epsilon))
        return score(guessed, truth, baseline=0.5, bound=bound, closed_form=self.closed_form)

    def audit(self, games: int, source: Source, *, alpha: float, delta: float = 0.0) -> LowerBound:
        """Return the epsilon that so many games on each vector prove."""
        first = self.scores(games, source.child("first"), is_first=True)
        second = self.scores(games, source.child("second"), is_first=False)
        return held_out_bound(first, second, alpha=alpha, delta=delta)


def per_parameter_noise(widths: Floats, epsilon: float) -> LaplaceLaw:
    """Return noise that is calibrated to each parameter as if it were released alone."""
    return LaplaceLaw(_checked(widths) / _positive(epsilon))


def whole_model_noise(widths: Floats, epsilon: float) -> LaplaceLaw:
    """Return noise that is calibrated to all parameters together: to the sum of their widths."""
    return LaplaceLaw(float(_checked(widths).sum()) / _positive(epsilon))


def _checked(widths: Floats) -> Floats:
    if np.ndim(widths) != 1 or not len(widths) or not (np.asarray(widths) > 0).all():
        raise BadParameter("widths", np.shape(widths), "a vector of ranges, all > 0")
    return np.asarray(widths, dtype=np.float64)


def _positive(epsilon: float) -> float:
    if check_finite(epsilon, "epsilon") <= 0:
        raise BadParameter("epsilon", epsilon, "> 0")
    return float(epsilon)


def _rows(games: int, width: int) -> Iterator[slice]:
    step = max(1, _BLOCK // max(1, width))
    for start in range(0, games, step):
        yield slice(start, min(start + step, games))
