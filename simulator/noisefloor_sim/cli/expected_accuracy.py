"""What accuracy to expect of a request, from public terms alone: for dry runs."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from noisefloor.errors import BadParameter
from noisefloor.privacy import Neighbours
from noisefloor.publication import HISTOGRAM, CellError, Histogram, cell_error
from noisefloor.publication.methods import (
    MODEL_METHODS,
    ModelSpec,
    StandInAccuracy,
    SyntheticTablePlan,
    stand_in_accuracy,
    table_errors,
)
from noisefloor.roles import ReleaseRequest
from noisefloor.tables import Schema, TextSchema
from noisefloor_sim.cli.published_data import PublishedData


@dataclass(frozen=True, slots=True)
class ExpectedAccuracy:
    """What to expect.

    Attributes:
        lines: For people.
        fields: For programs.
    """

    lines: tuple[str, ...]
    fields: dict[str, Any]  # Any: JSON


def expected_accuracy(
    request: ReleaseRequest, data: PublishedData, tell: Callable[[int, int], None]
) -> ExpectedAccuracy:
    """Return what to expect of a request; no record is looked at.

    Args:
        request: The request, which was found to be a possible one.
        data: Its schema is used, and its number of rows where the relation makes that public.
        tell: Gets how many trainings are done, of how many.
    """
    schema = data.schema
    if schema is None:
        line = f"not known: the schema of {data.name} is not on this machine"
        return ExpectedAccuracy((line,), {"kind": "unknown"})
    if isinstance(schema, TextSchema):
        line = "not known: nothing stands in for texts"
        return ExpectedAccuracy((line,), {"kind": "unknown"})
    if request.method == HISTOGRAM:
        return _of_counts(request, schema)
    if request.method not in MODEL_METHODS:
        raise BadParameter("method", request.method, f"one of {HISTOGRAM}, {_listed()}")
    is_public = request.cost.neighbours is Neighbours.RECORD_SUBSTITUTE
    size = data.records.count if is_public else None
    spec = ModelSpec.read(schema, request.cost, dict(request.parameters), size)
    if request.method == SyntheticTablePlan.NAME:
        errors = table_errors(SyntheticTablePlan.of(spec))
        lines = [f"a count of the tables {name!r}: {one}" for name, one in errors.items()]
        return ExpectedAccuracy(tuple(lines), _cells(errors))
    return _of_model(stand_in_accuracy(MODEL_METHODS[request.method], spec, tell))


def _of_counts(request: ReleaseRequest, schema: Schema) -> ExpectedAccuracy:
    plan = Histogram.of(schema, request.parameters, request.cost)
    error = cell_error(plan.noise, float(plan.noise.facts["standard_deviation"]) ** 2)
    line = f"a count: {error}; exact, from the noise of this plan"
    return ExpectedAccuracy((line,), _cells({"counts": error}))


def _cells(errors: dict[str, CellError]) -> dict[str, Any]:  # Any: JSON
    return {"kind": "counts", "errors": {name: asdict(one) for name, one in errors.items()}}


def _of_model(found: StandInAccuracy) -> ExpectedAccuracy:
    lines = [str(found)]
    if found.declared is None:
        lines.append("no size was declared (--set size=N): stand-in records are as many as may be")
    elif found.records < found.declared:
        lines.append(
            f"of the {found.declared:,} records {found.records:,} are tried here, to bound the "
            "time: with all of them noise matters less"
        )
    return ExpectedAccuracy(tuple(lines), {"kind": "stand-in records", **asdict(found)})


def _listed() -> str:
    return ", ".join(sorted(MODEL_METHODS))
