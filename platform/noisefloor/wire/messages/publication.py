"""Requests to the model publisher and its answers, as JSON."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from noisefloor.privacy import Neighbours

Name = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,64}$")]
Text = Annotated[str, Field(max_length=1024)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=-(1 << 53), le=1 << 53)]


class PublicationCost(BaseModel):
    """What a publication may cost; this is what is charged. Nothing is coerced: `true` is no 1."""

    model_config = ConfigDict(extra="forbid", strict=True)

    epsilon: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
    delta: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.0
    # Strict would ask for the enum itself, which JSON does not have; its texts are exact anyway.
    neighbours: Annotated[Neighbours, Field(strict=False)]


class PublicationMessage(BaseModel):
    """What is to be published."""

    model_config = ConfigDict(extra="forbid", strict=True)

    publication_id: Name
    data_set: Name
    method: Name
    cost: PublicationCost
    parameters: Annotated[
        dict[Text, bool | Whole | Number | Text], Field(max_length=64, default_factory=dict)
    ]
    dry_run: bool = False


class PublicationPrice(BaseModel):
    """What a request would cost, and what would then be left; 0 for what is paid for already."""

    micro_epsilon: int
    delta: float
    left_micro_epsilon: int
    left_delta: float


class PublicationOutcome(BaseModel):
    """What became of a request; after a dry run nothing did.

    `state` is `stored` with a card, `waiting` or `running` for what takes long, and nothing after
    a dry run, which has a `price` instead.
    """

    publication_id: str
    dry_run: bool
    would_publish: bool
    detail: str
    card: dict[str, Any] | None = None  # Any: JSON
    state: str | None = None
    price: PublicationPrice | None = None


class PublicationStatus(BaseModel):
    """How far a publication is: `charged`, `waiting`, `running`, `failed` or `stored`."""

    publication_id: str
    state: str
    detail: str


class LedgerLine(BaseModel):
    """What one release took."""

    release: str
    count: int
    epsilon: float
    delta: float
    share: float


class LedgerChain(BaseModel):
    """The chained records of a data set, so that a client can check every link itself.

    `terms` is as `accounting.LedgerTerms.read` reads it, and each record as it is stored;
    `accounting.LedgerCopy` makes a ledger of them.
    """

    subject: str
    terms: str
    records: list[str]


class DataSetBudget(BaseModel):
    """What may be spent on a data set over all publications, and under which relation."""

    model_config = ConfigDict(extra="forbid", strict=True)

    epsilon: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
    delta: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0
    neighbours: Annotated[Neighbours, Field(strict=False)]  # see PublicationCost


class DataSetMessage(BaseModel):
    """A data set that is uploaded: its public schema, its budget, and what it is used for.

    `declaration` is what a schema file holds. Without `audit`, cards say that no auditor played.
    An `experiment` may publish what has no guarantee; a service takes it only if it was started
    for experiments.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    declaration: dict[str, Any]  # Any: JSON
    budget: DataSetBudget
    audit: bool = True
    experiment: bool = False


class DataSetList(BaseModel):
    """The uploaded data sets by name, and whether this service takes experiments."""

    data_sets: list[str]
    experiments: bool


class BudgetBalance(BaseModel):
    """A data set's budget: what was spent, and what is left."""

    subject: str
    spent_micro_epsilon: int
    left_micro_epsilon: int
    spent_delta: float
    left_delta: float


class BudgetStatement(BudgetBalance):
    """A data set's budget: what was spent, by what, and what is left."""

    what_spent_it: list[LedgerLine]
    why: str
