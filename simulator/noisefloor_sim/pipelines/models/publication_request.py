"""Requests of the data holder to the publisher: budget, cost, method and parameters."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import cast

from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication import ResidualObserver
from noisefloor.publication.methods import (
    EXPERIMENT_METHODS,
    MODEL_METHODS,
    ModelPlan,
    ModelSpec,
    Parameter,
    PlainPlan,
)
from noisefloor.roles import DataSets, PublicationMethod, model_method
from noisefloor.tables import OneHot
from noisefloor_sim.pipelines.models.block import SUBSTITUTE_ONLY, ModelsBlock

PLANS: Mapping[str, type[ModelPlan]] = {**MODEL_METHODS, **EXPERIMENT_METHODS}
"""Every way to publish, by name."""

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


def parameters_of(block: ModelsBlock, variant: str) -> dict[str, Parameter]:
    """Return the parameters of the method; zeros and empty texts are left to its own choice."""
    parameters = _method_parameters(block, block.method)
    if variant == "paper" and block.method in SUBSTITUTE_ONLY:
        parameters["variant"] = _PAPER_FORMS[block.form]
    return parameters


def _method_parameters(block: ModelsBlock, method: str) -> dict[str, Parameter]:
    return {name: getattr(block, name) for name in _TAKES[method] if getattr(block, name)}


@dataclass(slots=True)
class Planner:
    """Plans releases of one world, each once: to calibrate noise takes seconds.

    Attributes:
        encoding: Public schema and label.
        block: The settings.
        variant: Of the scenario.
        plans: By cost, size and parameters.
    """

    encoding: OneHot
    block: ModelsBlock
    variant: str
    plans: dict[Hashable, ModelPlan] = field(default_factory=dict)

    @property
    def NAME(self) -> str:  # noqa: N802  as the kinds of plans have it
        """The method's name."""
        return self.block.method

    @property
    def HELP(self) -> str:  # noqa: N802  likewise
        """Of the method."""
        return PLANS[self.block.method].HELP

    @property
    def IS_CLASSIFIER(self) -> bool:  # noqa: N802  likewise
        """Whether the method publishes a model that predicts."""
        return PLANS[self.block.method].IS_CLASSIFIER

    def of(self, spec: ModelSpec) -> ModelPlan:
        """Plan a release, or return the plan that was made before."""
        parameters = tuple(sorted((name, repr(value)) for name, value in spec.parameters.items()))
        key = (spec.cost, spec.size, parameters)
        if key not in self.plans:
            self.plans[key] = PLANS[self.block.method].of(spec)
        return self.plans[key]

    def at(self, size: int) -> ModelPlan:
        """Plan a release from a public number of records; no record is looked at."""
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

    def methods(
        self, data_sets: DataSets, residuals: ResidualObserver | None = None
    ) -> tuple[PublicationMethod]:
        """Return the publisher's method for some records; it uses the plans that are here.

        Args:
            data_sets: The records.
            residuals: Gets what noise was added to.
        """
        # It has all that is used of a kind of plans.
        kind = cast("type[ModelPlan]", self)
        return (model_method(kind, data_sets, residuals=residuals),)
