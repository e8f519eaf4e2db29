"""What the data holder asks the publisher for: cost, method and parameters, from the settings.

A network without any noise: what attacks are tried on first, and what privacy is paid from.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from noisefloor.accounting import Amount
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.methods import (
    MODEL_METHODS,
    ModelPlan,
    ModelSpec,
    Parameter,
    ParameterReader,
    network_file,
    read_training,
    training_fields,
)
from noisefloor.publication.networks import NetworkTraining, train
from noisefloor.randomness import Source
from noisefloor.roles import PublicationMethod, model_method
from noisefloor.tables import OneHot, Records
from noisefloor_sim.pipelines.models.block import SUBSTITUTE_ONLY, ModelsBlock

_TRAINING = ("hidden", "epochs", "batch", "learning_rate", "decay")


@dataclass(frozen=True, slots=True)
class PlainPlan(ModelPlan):
    """A plain network; nothing is proved of it.

    Attributes:
        spec: What was asked for.
        training: How it is trained.
    """

    NAME = "plain"
    HELP = "A network without noise, for comparison."

    spec: ModelSpec
    training: NetworkTraining

    @classmethod
    def of(cls, spec: ModelSpec) -> "PlainPlan":
        """Plan a training without noise."""
        parameters = ParameterReader(spec.parameters, _TRAINING)
        return cls(spec, read_training(parameters, spec, hidden="16", epochs=20, rate=0.5))

    @property
    def proved(self) -> Guarantee:
        """Nothing."""
        relation = self.spec.cost.neighbours
        return Guarantee.none("there is no noise in the model", relation, TrustModel.CENTRAL)

    @property
    def settings(self) -> Mapping[str, Any]:  # Any: JSON
        """How it is trained, with defaults filled in."""
        return training_fields(self.training)

    def release(self, records: Records, source: Source) -> bytes:
        """Return the file that is published."""
        examples = self.spec.encoding.examples(records)
        network = train(examples, self.training, source.child("training"))
        return network_file(self.spec.encoding, network)


DATA_SET = "users"

PLANS: Mapping[str, type[ModelPlan]] = {**MODEL_METHODS, PlainPlan.NAME: PlainPlan}
"""Every way to publish, by name; 'plain' is for the simulator alone."""

_RELATIONS = {
    "substitute": Neighbours.RECORD_SUBSTITUTE,
    "add-remove": Neighbours.RECORD_ADD_REMOVE,
}
_NETWORK = ("hidden", "epochs", "batch", "learning_rate")
_TAKES = {
    "plain": _NETWORK,
    "logistic": (),
    "private-sgd": _NETWORK,
    "anonymising-first": ("tables", "columns"),
    "synthetic-table": ("tables", "columns"),
    "learning-first": (*_NETWORK, "bound"),
    "anonymised-learning": _NETWORK,
}
"""Which settings each method has a use for."""

_PURE = (*SUBSTITUTE_ONLY, PlainPlan.NAME)
_PAPER_FORMS = {"clamped": "clamped", "printed": "paper"}


def relation_of(block: ModelsBlock) -> Neighbours:
    """Return what is hidden."""
    return _RELATIONS[block.neighbours]


def cost_of(block: ModelsBlock) -> Guarantee:
    """Return what one release is claimed to cost; this is what the ledger debits."""
    delta = 0.0 if block.method in _PURE else block.delta
    return Guarantee(block.epsilon, relation_of(block), delta=delta, model=TrustModel.CENTRAL)


def covered_releases(block: ModelsBlock, requested: int) -> int:
    """Return how many releases the budget of the data set covers, of so many."""
    cost, budget = cost_of(block), Amount.budget(block.budget, block.budget_delta)
    return max(n for n in range(requested + 1) if Amount.cost(cost, n).fits(budget))


def parameters_of(block: ModelsBlock, variant: str) -> dict[str, Parameter]:
    """Return what the method is told; zeros and empty texts are left to its own choice."""
    parameters = _method_parameters(block, block.method)
    if variant == "paper" and block.method in SUBSTITUTE_ONLY:
        parameters["variant"] = _PAPER_FORMS[block.form]
    return parameters


def _method_parameters(block: ModelsBlock, method: str) -> dict[str, Parameter]:
    return {name: getattr(block, name) for name in _TAKES[method] if getattr(block, name)}


def is_experiment(block: ModelsBlock, variant: str) -> bool:
    """Say whether more may be claimed than is proved: for papers, and without noise."""
    return block.method == PlainPlan.NAME or variant == "paper"


@dataclass(slots=True)
class Planner:
    """Plans releases of one world, each once: to calibrate noise takes seconds.

    Attributes:
        encoding: Public schema and label.
        block: The settings.
        variant: Of the scenario.
        kept: Plans by what was asked for.
    """

    encoding: OneHot
    block: ModelsBlock
    variant: str
    kept: dict[Hashable, ModelPlan] = field(default_factory=dict)

    @property
    def NAME(self) -> str:  # noqa: N802  as the kinds of plans have it
        """The method's name."""
        return self.block.method

    @property
    def HELP(self) -> str:  # noqa: N802  likewise
        """Of the method."""
        return PLANS[self.block.method].HELP

    def of(self, spec: ModelSpec) -> ModelPlan:
        """Plan what is spec, or return the plan that was made before."""
        parameters = tuple(sorted((name, repr(value)) for name, value in spec.parameters.items()))
        key = (spec.cost, spec.size, parameters)
        if key not in self.kept:
            self.kept[key] = PLANS[self.block.method].of(spec)
        return self.kept[key]

    def at(self, size: int) -> ModelPlan:
        """Plan a release from so many records, which is public; no record is looked at."""
        parameters = parameters_of(self.block, self.variant)
        return self.of(ModelSpec(self.encoding, cost_of(self.block), size, parameters))

    def faulty(self, size: int) -> ModelPlan | None:
        """Plan what the method would be if its noise were made for one parameter at a time."""
        if self.block.method not in SUBSTITUTE_ONLY:
            return None
        parameters = parameters_of(self.block, "paper") | {"variant": "clamped"}
        return self.of(ModelSpec(self.encoding, cost_of(self.block), size, parameters))

    def bare(self, size: int) -> ModelPlan:
        """Plan a network without noise, of the same widths."""
        parameters = _method_parameters(self.block, PlainPlan.NAME)
        return PlainPlan.of(ModelSpec(self.encoding, cost_of(self.block), size, parameters))

    def method(self, records: Records) -> PublicationMethod:
        """Return the publisher's method for records that came so far."""
        # It has all that is used of a kind of plans.
        kind = cast("type[ModelPlan]", self)
        return model_method(kind, {DATA_SET: records})
