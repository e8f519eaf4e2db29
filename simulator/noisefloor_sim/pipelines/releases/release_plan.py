"""What pipelines that publish have in common of a plan: of tables or of texts."""

from typing import TypeAlias

from noisefloor.accounting import Ledger, ReleaseLoss
from noisefloor.privacy import Claim, ClaimVerdict, Guarantee
from noisefloor.publication.methods import ModelPlan, TextPlan
from noisefloor.tables import DataSchema, data_schema_fields
from noisefloor.wire.messages import DataSetBudget, DataSetMessage

AnyPlan: TypeAlias = ModelPlan | TextPlan
"""A release that is fixed before any record is looked at."""


def charged_loss(plan: AnyPlan) -> ReleaseLoss:
    """Return the loss that a publisher charges: of what is claimed, where less is proved."""
    claim = Claim(plan.spec.cost, plan.proved)
    return plan.loss if claim.verdict is ClaimVerdict.HOLDS else ReleaseLoss.of(plan.spec.cost)


def planned_ledger(plan: AnyPlan, budget: Guarantee, requested: int) -> Ledger:
    """Return what the ledger of the data set will hold: as many releases as it grants, of some.

    By its own rule, and for the noise of one plan; nothing is spent.

    Args:
        plan: Of each release.
        budget: Of the data set.
        requested: How many releases are wanted.
    """
    ledger = Ledger(budget.epsilon, budget.delta, neighbours=budget.neighbours, model=budget.model)
    cost, loss = plan.spec.cost, charged_loss(plan)
    for number in range(requested):
        if ledger.can_spend("users", cost, loss=loss):
            ledger.spend("users", f"release-{number}", cost, plan.NAME, loss=loss)
    return ledger


def data_set_message(
    schema: DataSchema, budget: Guarantee, *, is_experiment: bool
) -> DataSetMessage:
    """Return what a publisher has to know of a data set. Pipelines play audits of their own."""
    terms = DataSetBudget(epsilon=budget.epsilon, delta=budget.delta, neighbours=budget.neighbours)
    return DataSetMessage(
        declaration=data_schema_fields(schema),
        budget=terms,
        audit=False,
        experiment=is_experiment,
    )
