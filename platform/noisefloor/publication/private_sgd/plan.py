"""What a private training will do, said before it is done; torch-free.

From a plan alone follows what the training proves: its sampling rate, its noise and its number of
steps are those that are used, not those that were requested.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from noisefloor.accounting import SampledGaussian, epsilon_at, noise_multiplier_for
from noisefloor.checks import check_count, check_finite
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter, IncompatibleGuarantees
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.private_sgd.clipping import (
    Clipping,
    Flat,
    clipping_as_json,
    clipping_from_json,
)
from noisefloor.publication.private_sgd.parameter_groups import (
    ParameterGroup,
    check_names,
    find_group,
)

_ROUNDING = 2.0**-23
"""Of a sum of as many gradients of full length, twice what one rounding is off by. Sums of UCI
Adult with and without an example differed by up to half of it beyond the example's own gradient
(6e-5 of the bound in batches of 2,048, 3e-3 in one of 45,222)."""

Optimiser: TypeAlias = Literal["sgd", "adam", "adam-printed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SgdPlan:
    """A private training by noisy, clipped gradients of Poisson samples.

    Each step takes every example with ``sampling_rate``, by itself; sums the clipped gradients;
    adds Gaussian noise of ``noise_multiplier`` times the add/remove sensitivity; divides by the
    EXPECTED batch; and hands the result to the optimiser, which sees nothing else.

    Groups of parameters may have scales and rates of their own. Matrices may be carried by
    factors of low rank (RGP: Yu, Zhang, Chen, Liu 2021, arXiv 2106.09352): then W = rest + L R,
    with L and R made anew at each step from what was released so far, gradients are taken of L
    and R alone, clipped and noised, and W moves by dL R + L dR - L L^T dL R.

    Guarantee:  (epsilon, delta) DP of all weights of all steps together, by the privacy loss
                distribution of the sampled Gaussian. It speaks of real numbers: ``noise`` says
                what floats leave open; and of modules that remember nothing where ``state``
                does not look. No value of an example stops a training.
    Neighbours: one record there or not, or one record for another; both from the same noise
                multiplier, which is always over the ADD/REMOVE sensitivity. What is proved
                follows from noise and sensitivity as they are used (``proved_multiplier``).
    Domain:     any examples; gradients are clipped, and count as zero where loss or gradient
                cannot be computed or is not finite.
    Reference:  Abadi and others 2016, arXiv 1607.00133; clipping by book-keeping: Bu, Wang, Zha,
                Karypis 2022, arXiv 2210.00038.

    Attributes:
        examples: How many there are, a public number: it sets the rate. A table of another size
            (a neighbouring one, say) may be trained on; the rate stays, and so does the proof.
        expected_batch: Examples in a step, on average. Equal to ``examples`` it is the full batch.
        steps: How many steps.
        noise_multiplier: Noise over the sensitivity to adding or removing one example (over one
            bound, for ``EachAtFullBound``).
        clipping: How much one example may say.
        optimiser: ``"sgd"``, ``"adam"``, or ``"adam-printed"``: Adam with the constant of
            stability inside the root and correction factors of one step later, as printed in the
            DP-Adam of a paper.
        learning_rate: Of the optimiser.
        momentum: Of SGD; Adam's first decay.
        second_decay: Of Adam.
        weight_decay: Added to the noisy gradient, times the weights: post-processing.
        averaging: The share of last steps whose weights are averaged at the end; 0 for none.
        neighbours: What the guarantee tells apart.
        groups: Scales and rates of groups of parameters; 1 for parameters in none of them.
        carriers: Names of groups of matrices and the rank by which they are carried. Vectors of
            these groups (biases, say) are trained as they are.
    """

    examples: int
    expected_batch: float
    steps: int
    noise_multiplier: float
    clipping: Clipping = field(default_factory=Flat)
    optimiser: Optimiser = "adam"
    learning_rate: float = 1e-3
    momentum: float = 0.9
    second_decay: float = 0.999
    weight_decay: float = 0.0
    averaging: float = 0.0
    neighbours: Neighbours = Neighbours.RECORD_ADD_REMOVE
    groups: tuple[ParameterGroup, ...] = ()
    carriers: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        check_count(self.examples, "examples")
        check_count(self.steps, "steps", most=1 << 24)
        if not 0 < check_finite(self.expected_batch, "expected_batch") <= self.examples:
            raise BadParameter("expected_batch", self.expected_batch, "in (0, examples]")
        # Below, either noise is lost in a float32 sum or its scale is no float32 number.
        if not 1e-3 <= check_finite(self.noise_multiplier, "noise_multiplier") <= 1e9:
            raise BadParameter("noise_multiplier", self.noise_multiplier, "in [0.001, 1e+09]")
        if self.optimiser not in get_args(Optimiser):
            known = " or ".join(map(repr, get_args(Optimiser)))
            raise BadParameter("optimiser", self.optimiser, f"to be {known}")
        self._check_rates()
        self._check_groups()
        if self.neighbours not in (Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE):
            raise BadParameter("neighbours", self.neighbours.value, "to be of records")
        if not self.threshold:
            raise BadParameter("expected_batch", self.expected_batch, ">= examples / 2**64")

    def _check_rates(self) -> None:
        if check_finite(self.learning_rate, "learning_rate") <= 0:
            raise BadParameter("learning_rate", self.learning_rate, "> 0")
        if check_finite(self.weight_decay, "weight_decay") < 0:
            raise BadParameter("weight_decay", self.weight_decay, ">= 0")
        for name in ("momentum", "second_decay"):
            if not 0 <= check_finite(getattr(self, name), name) < 1:
                raise BadParameter(name, getattr(self, name), "in [0, 1)")
        if not 0 <= check_finite(self.averaging, "averaging") <= 1:
            raise BadParameter("averaging", self.averaging, "in [0, 1]")

    def _check_groups(self) -> None:
        check_names("groups", [group.name for group in self.groups])
        check_names("carriers", [name for name, _ in self.carriers])
        for _, rank in self.carriers:
            check_count(rank, "carriers")

    @classmethod
    def for_budget(
        cls,
        guarantee: Guarantee,
        *,
        examples: int,
        expected_batch: float,
        steps: int | None = None,
        epochs: float | None = None,
        **rest: Any,  # the other attributes, as they are called
    ) -> "SgdPlan":
        """Make the plan with the least noise that keeps to a guarantee.

        Args:
            guarantee: Epsilon, a positive delta and the neighbours, in the central model.
            examples: How many there are.
            expected_batch: Examples in a step, on average.
            steps: How many steps; or
            epochs: how often each example is to be seen, on average.
            rest: The other attributes of a plan.
        """
        plan = cls.for_claim(
            guarantee,
            examples=examples,
            expected_batch=expected_batch,
            steps=steps,
            epochs=epochs,
            **rest,
        )
        short = plan.sensitivity / plan.clipping.noised_bound
        return plan.with_noise(plan.noise_multiplier * short) if short > 1 else plan

    @classmethod
    def for_claim(
        cls,
        guarantee: Guarantee,
        *,
        examples: int,
        expected_batch: float,
        steps: int | None = None,
        epochs: float | None = None,
        **rest: Any,  # the other attributes, as they are called
    ) -> "SgdPlan":
        """Make the plan with the noise that an accountant names, whatever it is multiplied by.

        The same as ``for_budget``, but for ``EachAtFullBound``: then the guarantee is what is
        claimed (``claimed``), and ``guarantee`` is what is proved.
        """
        if guarantee.model is not TrustModel.CENTRAL:
            raise IncompatibleGuarantees(
                "Noise on sums of gradients needs the central model of trust."
            )
        if (steps is None) == (epochs is None):
            raise BadParameter("steps", steps, "or epochs, one of the two")
        if steps is None:
            seen = check_finite(epochs or 0.0, "epochs") * examples
            steps = max(1, round(seen / check_finite(expected_batch, "expected_batch")))
        plan = cls(
            examples=examples,
            expected_batch=expected_batch,
            steps=steps,
            noise_multiplier=1.0,
            neighbours=guarantee.neighbours,
            **rest,
        )
        return plan.with_noise(
            noise_multiplier_for(
                guarantee.epsilon,
                guarantee.delta,
                plan.sampling_rate,
                plan.steps,
                neighbours=guarantee.neighbours,
            )
        )

    def with_noise(self, noise_multiplier: float) -> "SgdPlan":
        """Return the plan with other noise."""
        from dataclasses import replace

        return replace(self, noise_multiplier=noise_multiplier)

    @property
    def threshold(self) -> int:
        """The sampling rate times 2**64, as it is drawn by."""
        return int(self.expected_batch / self.examples * ONE)

    @property
    def sampling_rate(self) -> float:
        """The probability of each example to be in a step, as it is drawn by."""
        return self.threshold / ONE

    @property
    def is_full_batch(self) -> bool:
        """Whether every step takes everybody."""
        return self.threshold == ONE

    @property
    def sensitivity(self) -> float:
        """The most that one example moves a sum of gradients by, if added or removed, in L2."""
        return self.clipping.sensitivity

    @property
    def noise_scale(self) -> float:
        """The standard deviation of the noise in each coordinate of a sum of gradients.

        A little more than the account asks for: sums are of single floats, and one example less
        puts the others in other places, where they round to another sum.
        """
        rounding = 1 + self.expected_batch * _ROUNDING
        return self.noise_multiplier * self.clipping.noised_bound * rounding

    @property
    def proved_multiplier(self) -> float:
        """Noise over the sensitivity: less than ``noise_multiplier`` for ``EachAtFullBound``."""
        return self.noise_multiplier * (self.clipping.noised_bound / self.sensitivity)

    @property
    def events(self) -> tuple[SampledGaussian, ...]:
        """The events for an accountant; add the events of other releases on the same records."""
        return (SampledGaussian(self.proved_multiplier, self.sampling_rate, self.steps),)

    def guarantee(self, delta: float) -> Guarantee:
        """Return what the training proves at a delta, by the plan's neighbours."""
        return epsilon_at(self.events, delta, neighbours=self.neighbours)

    def claimed(self, delta: float) -> Guarantee:
        """Return what would be proved if the sensitivity were what the noise is multiplied by.

        It is what is proved, but for ``EachAtFullBound``: there it is what was printed.
        """
        claim = SampledGaussian(self.noise_multiplier, self.sampling_rate, self.steps)
        return epsilon_at((claim,), delta, neighbours=self.neighbours)

    def group_of(self, parameter: str) -> ParameterGroup:
        """Return the group that a parameter belongs to; one of scale 1 and rate 1 if none."""
        place = find_group(parameter, [group.name for group in self.groups])
        return ParameterGroup("") if place is None else self.groups[place]

    def rank_of(self, parameter: str) -> int | None:
        """Return the rank by which a matrix is carried; None if it is trained as it is."""
        place = find_group(parameter, [name for name, _ in self.carriers])
        return None if place is None else self.carriers[place][1]

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Write the plan for a checkpoint or a card."""
        said = {name: value for name, value in asdict(self).items() if name != "clipping"}
        for name in ("groups", "carriers"):  # plans without them are written as they always were
            said[name] = [list(one) if isinstance(one, tuple) else one for one in said[name]]
            if not said[name]:
                del said[name]
        return said | {
            "clipping": clipping_as_json(self.clipping),
            "neighbours": self.neighbours.value,
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> "SgdPlan":  # Any: JSON
        """Read what ``as_json`` wrote."""
        return cls(
            **{
                **said,
                "clipping": clipping_from_json(said["clipping"]),
                "neighbours": Neighbours(said["neighbours"]),
                "groups": tuple(ParameterGroup(**group) for group in said.get("groups", ())),
                "carriers": tuple((name, rank) for name, rank in said.get("carriers", ())),
            }
        )
