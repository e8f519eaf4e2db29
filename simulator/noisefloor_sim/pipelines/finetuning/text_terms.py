"""What the pipeline of fine-tuning requests, plans and publishes of users' texts."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor import roles
from noisefloor.accounting import ReleaseLoss, epsilon_at
from noisefloor.privacy import Guarantee
from noisefloor.publication import ResidualObserver
from noisefloor.publication.methods import TEXT_METHODS, Parameter, TextPlan, TextSpec
from noisefloor.tables import TextRecords
from noisefloor.wire.messages import DataSetMessage
from noisefloor_sim.pipelines.finetuning.block import HEAD, FinetuningBlock
from noisefloor_sim.pipelines.finetuning.noisy_trainings import noisy_trainings
from noisefloor_sim.pipelines.finetuning.text_assignment import FrozenTexts, UserTexts
from noisefloor_sim.pipelines.releases import (
    DeclaredPart,
    ReleaseNoise,
    ReleaseResiduals,
    data_set_message,
    declared_size,
    sgd_noise,
)

LAYERS = "text-layers"
"""The method of publication by which all but a head alone is published."""

_SHARED = ("steps", "batch", "learning_rate")
_OF_LAYERS = ("train_layers", "rank", "sparsity")


@dataclass(frozen=True, slots=True, eq=False)
class TextTerms:
    """Releases of models of texts; each is planned once, since calibration takes seconds.

    Attributes:
        block: The settings.
        texts: Who holds which text.
        frozen: What the frozen encoder made of them.
        plans: By size and method.
    """

    block: FinetuningBlock
    texts: UserTexts
    frozen: FrozenTexts
    plans: dict[tuple[int, str], TextPlan] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """The name of the method of publication."""
        return LAYERS if self.block.trains_layers else HEAD

    @property
    def cost(self) -> Guarantee:
        """What one release is claimed to cost."""
        return self.block.cost

    @property
    def message(self) -> DataSetMessage:
        """What a publisher has to know of the data set."""
        return data_set_message(
            self.texts.records.schema,
            self.block.total_budget,
            is_experiment=self.block.is_experiment("corrected"),
        )

    def parameters(self, size: int) -> dict[str, Parameter]:
        """Return the parameters of a request; what is 0 is left to the method's own choice."""
        block = self.block
        names = [*_SHARED, *(_OF_LAYERS if block.trains_layers else ())]
        if block.is_private:
            names += ["clip", *(("clipping",) if block.trains_layers else ())]
        found: dict[str, Parameter] = {"size": size}
        found |= {name: getattr(block, name) for name in names if getattr(block, name)}
        if block.batch:
            found["batch"] = min(block.batch, size)
        if block.trains_layers:
            found["trains"] = block.method
        return found

    def size(self, day: int, owners: NDArray[np.bool_]) -> int:
        """Return the public number of texts: counted only where neighbours have as many."""
        if self.block.neighbours == "substitute":
            return int(np.count_nonzero(owners))
        return declared_size(self.texts.owners, day, self.block.join_over_days)

    def records(self, owners: NDArray[np.bool_]) -> TextRecords:
        """Return the texts of some users."""
        return self.texts.records[owners]

    def plan(self, size: int) -> TextPlan:
        """Plan a release from a public number of texts; no text is looked at."""
        key = (size, self.method)
        if key not in self.plans:
            schema, named = self.texts.records.schema, self.parameters(size)
            spec = TextSpec.read(schema, self.cost, named)
            with self.frozen.used():
                self.plans[key] = TEXT_METHODS[self.method].of(spec)
        return self.plans[key]

    def residuals(self, plan: TextPlan, owners: NDArray[np.bool_]) -> ReleaseResiduals:
        """Return an observer of a release."""
        return ReleaseResiduals(plan, int(np.count_nonzero(owners)), declared_of(plan))

    def methods(
        self, data_sets: roles.DataSets, residuals: ResidualObserver
    ) -> Iterable[roles.PublicationMethod]:
        """Return the method of a publisher in this process."""
        return (roles.model_method(TEXT_METHODS[self.method], data_sets, residuals=residuals),)


def declared_of(plan: TextPlan) -> ReleaseNoise | None:
    """Return what a plan declares of its noise; None if it has none."""
    parts: dict[str, DeclaredPart] = {}
    vectors: dict[str, tuple[int, int]] = {}
    for name, sgd in noisy_trainings(plan).items():
        declared = sgd_noise(sgd)
        (part,) = declared.parts.values()
        parts[name] = replace(part, group=name)
        vectors[name] = (sgd.steps, sgd.steps)
    return ReleaseNoise(parts, vectors) if parts else None


def accountant_guarantee(plans: Iterable[TextPlan], delta: float) -> Guarantee | None:
    """Return what all releases cost together by the accountant, or None where one has no noise."""
    made = list(plans)
    if not all(noisy_trainings(plan) for plan in made):
        return None
    losses: list[ReleaseLoss] = [plan.loss for plan in made]
    events = [event for loss in losses for event in loss.events]
    return epsilon_at(events, delta, neighbours=made[0].spec.cost.neighbours)
