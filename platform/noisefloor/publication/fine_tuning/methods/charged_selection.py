"""Settings that are chosen on the private records themselves, and paid for.

    chosen = ChargedSelection(plans, TrialCount(0, 0.1), score_noise=20, held_out=0.2)
    chosen.guarantee(1e-5)                       # more than one plan costs, whatever the number
    chosen.run(lambda: TopLayers(...), inputs, labels, source)

Each trial takes one plan at random, trains it on some records and counts, with noise, how many of
the others it predicts right. The best count is released with its model; nothing else is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from noisefloor.accounting import GaussianNoise, ReleaseLoss, TrialCount, TrialSelection
from noisefloor.checks import check_finite, check_probability
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.publication.fine_tuning.methods.method_plan import FineTuningPlan
from noisefloor.randomness import Source

if TYPE_CHECKING:
    from torch import Tensor

    from noisefloor.publication.fine_tuning.top_layers import LayeredModule

_RAREST = 2.0**-40
"""The probability that counts as never, for a part of the records that is empty."""


class SelectedModel(NamedTuple):
    """The best of all trials: what a selection releases.

    Attributes:
        plan: By which it was trained.
        module: Trained.
        noisy_right: Records that it predicts right among those held out, with noise.
    """

    plan: FineTuningPlan
    module: "LayeredModule"
    noisy_right: float


@dataclass(frozen=True, slots=True)
class ChargedSelection:
    """A choice among plans by private records, for one price.

    Guarantee:  that of ``TrialSelection``. A record is held out by a random bit of its own, so
                that it is trained on or counted, never both: a trial costs the larger of the two.
                The number of trials must not be shown, nor the time that they took.
    Neighbours: those of the plans.
    Domain:     private plans of one relation, none as printed.
    Reference:  Papernot and Steinke 2022, arXiv 2110.03620, theorem 2.

    Attributes:
        candidates: Plans; their ``examples`` are the records that are not held out.
        trials: How many are made: a random number.
        score_noise: Standard deviation of the noise on the number of right predictions.
        held_out: The probability of a record to be counted on instead of trained on.
    """

    candidates: tuple[FineTuningPlan, ...]
    trials: TrialCount
    score_noise: float
    held_out: float

    def __post_init__(self) -> None:
        check_probability(self.held_out, "held_out")
        if check_finite(self.score_noise, "score_noise") <= 0:
            raise BadParameter("score_noise", self.score_noise, "> 0")
        if not self.candidates or any(one.is_experiment for one in self.candidates):
            rule = "at least one plan, each private and with clipping other than printed"
            raise BadParameter("candidates", f"<{len(self.candidates)} plans>", rule)
        if any(self._has_empty_part(one.examples) for one in self.candidates):
            raise BadParameter("held_out", self.held_out, "such that no part of records is empty")
        if len({one.cost.neighbours for one in self.candidates}) > 1:
            raise BadParameter("candidates", "<plans>", "of one relation of neighbours")

    def _has_empty_part(self, trained: int) -> bool:
        """Return whether all records may fall into one part: a training on none has no noise."""
        largest = max(self.held_out, 1 - self.held_out)
        return bool(largest ** (trained / (1 - self.held_out)) > _RAREST)

    @property
    def neighbours(self) -> Neighbours:
        """The relation of all plans."""
        return self.candidates[0].cost.neighbours

    @property
    def selection(self) -> TrialSelection:
        """What the whole costs."""
        counting = ReleaseLoss((GaussianNoise(self.score_noise),))
        losses = (*(one.loss for one in self.candidates), counting)
        return TrialSelection(losses, self.trials, self.neighbours)

    def guarantee(self, delta: float) -> Guarantee:
        """Return what is proved of the released model and its count, whatever was tried."""
        return self.selection.guarantee(delta)

    def run(
        self,
        module_of: Callable[[], "LayeredModule"],
        inputs: tuple["Tensor", ...],
        labels: "Tensor",
        source: Source,
    ) -> SelectedModel:
        """Make all trials and return the best; each call is a release of its own.

        Args:
            module_of: Makes a fresh module for a trial.
            inputs: Of the module, an example in each row.
            labels: Of the examples.
            source: Of all randomness.
        """
        drawn = source.stage("trials").draw(self.trials.distribution, 1)
        count = int(drawn[0]) + 1
        chosen = source.stage("candidates").below(len(self.candidates), count)
        trials = (
            self._trial(self.candidates[place], module_of(), inputs, labels, source.child(number))
            for number, place in enumerate(chosen.tolist())
        )
        return max(trials, key=lambda one: one.noisy_right)

    def _trial(
        self,
        plan: FineTuningPlan,
        module: "LayeredModule",
        inputs: tuple["Tensor", ...],
        labels: "Tensor",
        source: Source,
    ) -> SelectedModel:
        import torch

        from noisefloor.publication.fine_tuning.methods.method_training import fine_tune

        bits = source.stage("held-out").bernoulli(int(self.held_out * ONE), len(labels))
        is_counted = torch.from_numpy(bits.astype(bool))
        trained = tuple(one[~is_counted] for one in inputs)
        fine_tune(plan, module, trained, labels[~is_counted], source.child("training"))
        with torch.no_grad():
            found = module(*(one[is_counted] for one in inputs)).argmax(dim=1)
        right = int((found == labels[is_counted]).sum())
        noise = float(source.stage("score").normals(1)[0]) * self.score_noise
        return SelectedModel(plan, module, right + noise)
