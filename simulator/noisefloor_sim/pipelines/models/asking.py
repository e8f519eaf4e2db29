"""What the data holder asks the publisher for: cost, method and parameters, from the settings."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import cast

from noisefloor.privacy import Guarantee, Model, Neighbours
from noisefloor.publication.examples import OneHot
from noisefloor.publication.model_methods import MODEL_METHODS, ModelPlan, Parameter, Wanted
from noisefloor.publication.records import Records
from noisefloor.roles.model_publisher import Method
from noisefloor.roles.published_models import model_method
from noisefloor_sim.pipelines.models.block import SUBSTITUTE_ONLY, ModelsBlock
from noisefloor_sim.pipelines.models.plain import PlainPlan

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
    return Guarantee(block.epsilon, relation_of(block), delta=delta, model=Model.CENTRAL)


def parameters_of(block: ModelsBlock, variant: str) -> dict[str, Parameter]:
    """Return what the method is told; zeros and empty texts are left to its own choice."""
    told = _told(block, block.method)
    if variant == "paper" and block.method in SUBSTITUTE_ONLY:
        told["variant"] = _PAPER_FORMS[block.form]
    return told


def _told(block: ModelsBlock, method: str) -> dict[str, Parameter]:
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

    def of(self, wanted: Wanted) -> ModelPlan:
        """Plan what is wanted, or return the plan that was made before."""
        told = tuple(sorted((name, repr(value)) for name, value in wanted.parameters.items()))
        key = (wanted.cost, wanted.size, told)
        if key not in self.kept:
            self.kept[key] = PLANS[self.block.method].of(wanted)
        return self.kept[key]

    def at(self, size: int) -> ModelPlan:
        """Plan a release from so many records, which is public; no record is looked at."""
        told = parameters_of(self.block, self.variant)
        return self.of(Wanted(self.encoding, cost_of(self.block), size, told))

    def faulty(self, size: int) -> ModelPlan | None:
        """Plan what the method would be if its noise were made for one parameter at a time."""
        if self.block.method not in SUBSTITUTE_ONLY:
            return None
        told = parameters_of(self.block, "paper") | {"variant": "clamped"}
        return self.of(Wanted(self.encoding, cost_of(self.block), size, told))

    def bare(self, size: int) -> ModelPlan:
        """Plan a network without noise, of the same widths."""
        told = _told(self.block, PlainPlan.NAME)
        return PlainPlan.of(Wanted(self.encoding, cost_of(self.block), size, told))

    def method(self, records: Records) -> Method:
        """Return the publisher's method for records that came so far."""
        # It has all that is used of a kind of plans.
        kind = cast("type[ModelPlan]", self)
        return model_method(kind, {DATA_SET: records})
