"""LearningFirst: train without noise, then add noise to every parameter of the network."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import product_up
from noisefloor.checks import check_count, check_finite
from noisefloor.distributions import in_sixty_digits, ratio, round_up
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import TwoSidedGeometric
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.networks.dense import DenseNetwork, Floats
from noisefloor.publication.noised_vectors import NoisedVector, ResidualObserver
from noisefloor.randomness import Source

ParameterForm: TypeAlias = Literal["printed", "clamped", "corrected"]

HALF_STEPS = 1 << 15
"""Grid steps from 0 to the threshold: finer than anything noise leaves visible."""

SUBSTITUTE = Neighbours.RECORD_SUBSTITUTE
UNCLAMPED = (
    "parameters are clamped only after the noise: before it, one record may move them by more "
    "than the thresholds are wide"
)

_SLACK = 1e-6
"""The noise is calibrated to so much less, relatively, so that rounding stays within epsilon."""


@dataclass(frozen=True, slots=True)
class LearningFirst:
    """Add Laplace noise to trained parameters, and clamp them into public thresholds.

    Guarantee:  pure DP from the weights as rounded. ``printed``: none. ``clamped``: epsilon for
                each parameter alone, ``parameters`` times that for the model. ``corrected``:
                epsilon for the model. Per release.
    Neighbours: one record substituted (central model). How training moves is not bounded, so one
                record may move every parameter over its whole range, and so may an added one.
    Domain:     any parameters; they are put on a grid, and clamped before the noise unless the
                form is ``printed``. What is no number counts as 0: whether training went astray
                is a fact about the records, and is not released.
    Reference:  the approach is the paper's; the discrete distribution Ghosh, Roughgarden and
                Sundararajan 2009, arXiv 0811.2841.

    Attributes:
        epsilon: Of each parameter, or of the model where the form is ``corrected``.
        parameters: How many there are: P.
        form: As printed; clamped before the noise; or with noise for the sum of all widths.
        bound: The threshold: parameters lie in [-bound, bound].
    """

    epsilon: float
    parameters: int
    form: ParameterForm = "corrected"
    bound: float = 1.0
    noise: TwoSidedGeometric = field(init=False, repr=False, compare=False)

    @in_sixty_digits
    def __post_init__(self) -> None:
        if check_finite(self.epsilon, "epsilon") <= 0:
            raise BadParameter("epsilon", self.epsilon, "> 0")
        if check_finite(self.bound, "bound") <= 0:
            raise BadParameter("bound", self.bound, "> 0")
        if self.form not in get_args(ParameterForm):
            raise BadParameter("form", self.form, f"one of {', '.join(get_args(ParameterForm))}")
        check_count(self.parameters, "parameters")
        shares = self.parameters if self.form == "corrected" else 1
        rate = ratio(Decimal(self.epsilon * (1 - _SLACK)), shares * 2 * HALF_STEPS)
        object.__setattr__(self, "noise", TwoSidedGeometric(rate))
        most = ratio(Decimal(self.epsilon), shares)
        if self.noise.epsilon(2 * HALF_STEPS) > most:
            raise BadParameter("epsilon", self.epsilon, "within what 64-bit weights can hold")

    @property
    def scale(self) -> float:
        """The scale of the noise, in units of a parameter."""
        return self.bound / HALF_STEPS / float(self.noise.rate)

    @property
    def parameter_guarantee(self) -> Guarantee:
        """What is proved of one parameter, looked at alone."""
        if self.form == "printed":
            return Guarantee.none(UNCLAMPED, SUBSTITUTE, TrustModel.CENTRAL)
        epsilon = round_up(self.noise.epsilon(2 * HALF_STEPS))
        return Guarantee(epsilon, SUBSTITUTE, model=TrustModel.CENTRAL)

    @property
    def guarantee(self) -> Guarantee:
        """What is proved of all parameters together: the sum, for all of them may move."""
        one = self.parameter_guarantee
        if not one.is_finite:
            return one
        whole = product_up(one.epsilon, self.parameters)
        return Guarantee(whole, SUBSTITUTE, model=TrustModel.CENTRAL)

    def release(
        self, clean: DenseNetwork, source: Source, residuals: ResidualObserver | None = None
    ) -> DenseNetwork:
        """Return the network with fresh noise in every parameter.

        Args:
            clean: The trained network.
            source: Of the noise.
            residuals: Gets the parameters on the grid, before and after the noise; for simulations
                alone.
        """
        if clean.shape.count != self.parameters:
            raise BadParameter("parameters", self.parameters, f"== {clean.shape.count}")
        places = self._grid(clean.vector)
        noisy = places + self.noise.sampler(source)(self.parameters)
        if residuals is not None:
            before, after = places.astype(np.float64), noisy.astype(np.float64)
            longest = float(np.abs(before).max(initial=0.0))
            residuals(NoisedVector("parameters", after, before, longest))
        return DenseNetwork(clean.shape, self._values(np.clip(noisy, -HALF_STEPS, HALF_STEPS)))

    def log_likelihoods(self, released: Floats, clean: Floats) -> NDArray[np.float64]:
        """Return ln P(released | clean) of each parameter, exactly; rows may be broadcast.

        At the thresholds it is the probability of everything that was clamped to them.
        """
        seen = np.rint(np.asarray(released, np.float64) * (HALF_STEPS / self.bound))
        places, truth = seen.astype(np.int64), self._grid(clean)
        places, truth = np.broadcast_arrays(places, truth)
        logs = self.noise.log_pmf(places - truth)
        for sign in (1, -1):
            at = places * sign == HALF_STEPS
            logs[at] = self.noise.log_survival((places - truth)[at] * sign)
        return logs

    def log_likelihood(self, released: Floats, clean: Floats) -> NDArray[np.float64]:
        """Return ln P(released | clean) of all parameters together, along the last axis."""
        return np.asarray(self.log_likelihoods(released, clean).sum(axis=-1))

    def _grid(self, values: Floats) -> NDArray[np.int64]:
        """Put parameters on the grid, clamped unless this is the printed form."""
        places = np.rint(np.asarray(values, np.float64) * (HALF_STEPS / self.bound))
        if self.form != "printed":
            places = np.clip(np.nan_to_num(places), -HALF_STEPS, HALF_STEPS)
        return places.astype(np.int64)

    def _values(self, places: NDArray[np.int64]) -> Floats:
        return (places * (self.bound / HALF_STEPS)).astype(np.float32)
