"""Collecting records under local differential privacy, to learn a classifier from them."""

from noisefloor.collection.claims import (
    PhaseClaim,
    collection_claim,
    paper_claims,
    selection_claim,
)
from noisefloor.collection.cross_validation import CollectionPlan, cross_validate, one_thread
from noisefloor.collection.paper_data import ionosphere, schema_of_data, wdbc

__all__ = [
    "CollectionPlan",
    "PhaseClaim",
    "collection_claim",
    "cross_validate",
    "ionosphere",
    "one_thread",
    "paper_claims",
    "schema_of_data",
    "selection_claim",
    "wdbc",
]
