"""What is published from, and what is asked for: read from the command line, before anything else.

A budget belongs to a name. That of a file is its own name without folder and ending, in lower
case: two files of one name share a budget, which errs on the side of privacy.
"""

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from noisefloor.accounting import LedgerTerms
from noisefloor.canonical_json import canonical_json
from noisefloor.errors import BadParameter, UnknownDataSet
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.roles import ReleaseRequest
from noisefloor.tables import DataRecords, DataSchema, is_table_file, load_data, load_data_schema

RELATIONS = (Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE)

MOST_EPSILON = 1e6
"""Of a cost and of a budget, as services take them."""

_NAME = re.compile(r"[a-z0-9-]{1,64}", re.ASCII)


@dataclass(frozen=True)
class PublishedData:
    """What is published from, as it was named.

    Attributes:
        named: A name, or a path.
    """

    named: str

    @property
    def is_file(self) -> bool:
        """Whether it is a file of the user's."""
        return is_table_file(self.named)

    @property
    def name(self) -> str:
        """The name that its budget belongs to: of a file, without folder and ending."""
        stem = Path(self.named).name.partition(".")[0] if self.is_file else self.named
        name = re.sub(r"[^a-z0-9-]+", "-", stem.lower()).strip("-") if self.is_file else stem
        if not _NAME.fullmatch(name):
            rule = "a file, or a name of lower-case letters, digits and hyphens, at most 64"
            raise BadParameter("data", self.named, rule)
        return name

    def check_file(self) -> None:
        """Raise BadTable if a file is missing, or its schema, or that breaks a rule."""
        if self.is_file:
            load_data_schema(self.named)

    @cached_property
    def records(self) -> DataRecords:
        """The rows, every one of them within the schema."""
        return load_data(self.named)

    @cached_property
    def schema(self) -> DataSchema | None:
        """What is public of them; None where it is known to the publisher only."""
        if self.is_file:
            return load_data_schema(self.named)
        try:
            return load_data_schema(self.named)
        except (BadParameter, UnknownDataSet):
            return None


def relation_of(text: str) -> Neighbours:
    """Return a relation by its name."""
    for one in RELATIONS:
        if one.value == text:
            return one
    rule = f"one of {', '.join(one.value for one in RELATIONS)}"
    raise BadParameter("neighbours", text, rule)


def budget_terms(epsilon: float, delta: float, relation: Neighbours) -> LedgerTerms:
    """Return the terms of a budget as it is written, or raise BadParameter."""
    _check_cost(epsilon, delta)
    return LedgerTerms.of(epsilon, delta, neighbours=relation, model=TrustModel.CENTRAL)


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """What the command line says of a publication.

    Attributes:
        method: How it is made.
        epsilon: What it may cost.
        delta: Likewise.
        settings: Parameters of the method, ``name=value`` each.
        label: The column that is predicted, if it is named.
        publication_id: Names the publication; made of the request if it is left out.
    """

    method: str
    epsilon: float
    delta: float
    settings: Sequence[str] = ()
    label: str | None = None
    publication_id: str | None = None

    def request(self, name: str, relation: Neighbours) -> ReleaseRequest:
        """Return the request; the same words give the same id, so that a retry is a retry.

        Args:
            name: Of the data set.
            relation: Of its budget.
        """
        _check_cost(self.epsilon, self.delta)
        cost = Guarantee(self.epsilon, relation, delta=self.delta, model=TrustModel.CENTRAL)
        parameters = dict(_setting(one) for one in self.settings)
        if self.label is not None:
            parameters["label"] = self.label
        return ReleaseRequest(
            self.publication_id or self._made_id(name, relation, parameters),
            name,
            self.method,
            cost,
            parameters,
        )

    def _made_id(
        self, name: str, relation: Neighbours, parameters: dict[str, str | int | float | bool]
    ) -> str:
        asked = [name, self.method, self.epsilon, self.delta, relation.value, parameters]
        digest = hashlib.sha256(canonical_json(asked, allow_nan=False)).hexdigest()[:8]
        return f"{name[:30]}-{self.method[:20]}-{digest}"


def _check_cost(epsilon: float, delta: float) -> None:
    if not 0 < epsilon <= MOST_EPSILON:  # a NaN is in no interval
        raise BadParameter("epsilon", epsilon, f"> 0, and at most {MOST_EPSILON:g}")
    if not 0 <= delta < 1:
        raise BadParameter("delta", delta, "in [0, 1)")


def _setting(text: str) -> tuple[str, str | int | float | bool]:
    """Read ``name=value``: a whole number, a number, true or false, or a text."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise BadParameter("set", text, "NAME=VALUE")
    if value in ("true", "false"):
        return name, value == "true"
    for read in (int, float):
        try:
            number = read(value)
        except ValueError:
            continue
        if math.isfinite(number):
            return name, number
    return name, value
