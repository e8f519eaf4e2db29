"""The requests of docs/publishing.md are served, several times over, from the default budgets."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from noisefloor.accounting import Ledger
from noisefloor.errors import BudgetExceeded
from noisefloor.roles.model_publisher import MemoryArtefactStore, ModelPublisher, ReleaseRequest
from noisefloor.roles.publication_methods import methods_of
from noisefloor.tables import Records, Schema
from noisefloor.tables.public_schemas import PUBLIC_SCHEMAS
from noisefloor.tables.schema import Categories, schema_of
from noisefloor.wire.messages.publication import PublicationMessage
from noisefloor_services import publisher
from noisefloor_services.http import error_handlers
from noisefloor_services.publisher import app
from noisefloor_services.settings import Settings

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "publishing.md").read_text()
BLOCKS: list[dict[str, Any]] = [
    json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
]
(DECLARED,) = [block for block in BLOCKS if "record" in block]
(REFUSAL,) = [block for block in BLOCKS if "error" in block]
REQUESTS = [
    app._request(PublicationMessage.model_validate(block))
    for block in BLOCKS
    if "publication_id" in block
]


def one_row(schema: Schema) -> Records:
    """Return the first value of every column: what is charged does not look at records."""
    first = {
        name: column.values[0] if isinstance(column, Categories) else column.edges[0]
        for name, column in schema.columns.items()
    }
    kinds = {name: object if isinstance(value, str) else None for name, value in first.items()}
    table = {name: np.array([value], dtype=kinds[name]) for name, value in first.items()}
    return Records.of(table, schema, "table")


SCHEMAS = {"visits": schema_of(DECLARED), "adult": PUBLIC_SCHEMAS["adult"]}
RECORDS = {name: one_row(schema) for name, schema in SCHEMAS.items()}
METHODS = methods_of(RECORDS)


def a_publisher(**more: float) -> ModelPublisher:
    terms = publisher.terms(replace(Settings(), **more))  # type: ignore[arg-type]  # floats
    budget = terms.budget
    ledger = Ledger(budget.epsilon, budget.delta, neighbours=terms.neighbours, model=terms.model)
    return ModelPublisher(ledger, MemoryArtefactStore(), METHODS.values(), data_sets=RECORDS)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: one.publication_id)
def test_a_documented_request_is_paid_for_ten_times(
    request_: ReleaseRequest,
) -> None:
    publisher = a_publisher()
    for number in range(10):
        publisher.charge(replace(request_, publication_id=f"again-{number}"))


def test_the_documented_refusal_is_the_one_that_is_given() -> None:
    publisher = a_publisher()
    (model,) = [one for one in REQUESTS if one.cost.delta]
    with pytest.raises(BudgetExceeded) as refusal:
        for number in range(100):
            publisher.charge(replace(model, publication_id=f"p-{number}"))
    body = json.loads(bytes(error_handlers._known(refusal.value).body))
    assert body.pop("detail").startswith("Nothing was spent: epsilon ran out: 1 asked for")
    assert body == REFUSAL
