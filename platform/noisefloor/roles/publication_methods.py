"""Models as methods of the publisher: a request is planned, charged, released and described.

This is the list of every method of publication, for services and simulator. A method is declared
beside its mathematics; here it is bound to the data sets that it reads.
"""

import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, TypeAlias

from noisefloor.errors import BadParameter
from noisefloor.privacy import (
    Claim,
    ClaimVerdict,
    Guarantee,
    LowerBound,
    Neighbours,
    number_or_inf,
)
from noisefloor.publication import (
    HISTOGRAM,
    HISTOGRAM_HELP,
    MEDIA_TYPE,
    Histogram,
    ReleaseRun,
    ResidualObserver,
    check_writable,
)
from noisefloor.publication.methods import (
    ACCURACY_HELP,
    EXPERIMENT_METHODS,
    INTEGER_NOISE,
    MODEL_METHODS,
    TEXT_METHODS,
    Canary,
    CanaryBounds,
    CurveTest,
    ModelPlan,
    ModelSpec,
    Parameter,
    ReleaseClaim,
    TextPlan,
    TextSpec,
    plan_release,
)
from noisefloor.roles.artefact import claim_fields
from noisefloor.roles.model_publisher import PublicationMethod, ReleaseRequest
from noisefloor.tables import (
    DataRecords,
    Records,
    TextRecords,
    data_schema_digest,
)

Audit: TypeAlias = Callable[[Canary, float, str], CanaryBounds]
"""Plays a canary's game at a delta with a named stream; see ``adversary.models.canary_audit``."""

LOADING = (
    "file, card = (httpx.get(url + end, headers=token) for end in ('', '/card'))",
    "model = noisefloor.publication.load_model(file.content, card.content, 'publisher.pub')",
    "told = model.predict(table)  # a list of values for each column, by its name",
)
"""How a third party loads a model and gets its predictions."""

TABLE_LOADING = (
    LOADING[0],
    "tensors = noisefloor.publication.load_table(file.content, card.content, 'publisher.pub')",
    "rows = {name: tensors[name] for name in tensors if name.startswith('rows/')}",
)
TEXT_LOADING = (
    LOADING[0],
    "model = noisefloor.publication.fine_tuning.load_text_model("
    "file.content, card.content, 'publisher.pub', backbone=DIRECTORY)",
    "told = model.predict(texts)  # a list of texts; DIRECTORY holds the encoder of the card",
)
CORPUS_LOADING = (
    LOADING[0],
    "texts = noisefloor.publication.text.load_pseudo_texts("
    "file.content, card.content, schema, 'publisher.pub')",
    "told = texts.records()  # texts with labels; schema is that of the private texts",
)
HISTOGRAM_LOADING = (*TABLE_LOADING[:2], "counts = tensors['counts']")

DataSets: TypeAlias = Mapping[str, DataRecords]
ClassifierPlan: TypeAlias = ModelPlan | TextPlan

_MOST_PLANS = 64


def model_method(
    kind: type[ClassifierPlan],
    data_sets: DataSets,
    audit: Audit | None = None,
    residuals: ResidualObserver | None = None,
    run: ReleaseRun | None = None,
) -> PublicationMethod:
    """Make the method that publishes by one of ``publication.methods``.

    Args:
        kind: Plans the releases.
        data_sets: What is published from, by name.
        audit: Plays the games of canaries for cards, if there is an auditor.
        residuals: Gets what noise was added to. For simulations alone: ``methods_of``, which
            services call, has no argument for it.
        run: Where long releases show their progress and keep checkpoints.
    """
    plans = _Plans(kind, data_sets)

    def release(request: ReleaseRequest, source: Any) -> bytes:  # Any: a Source
        records = data_sets[request.data_set]
        return _released(plans.of(request), records, source, residuals, run or ReleaseRun())

    def check(request: ReleaseRequest) -> None:
        plan = plans.of(request)
        if run is not None and isinstance(plan, TextPlan):
            plan.check_run(run)

    def describe(request: ReleaseRequest, content: bytes) -> dict[str, Any]:  # Any: JSON
        said = model_card(plans.of(request), content, request.digest, audit)
        return {**said, "schema_sha256": data_schema_digest(data_sets[request.data_set].schema)}

    return PublicationMethod(
        kind.NAME,
        # Simulations hand over a planner in place of a class; it publishes tensors.
        getattr(kind, "MEDIA_TYPE", MEDIA_TYPE),
        proved=lambda request: plans.of(request).proved,
        loss=lambda request: plans.of(request).loss,
        release=release,
        describe=describe,
        check=check,
        is_long=True,
        help=_help(kind),
    )


def _help(kind: type[ClassifierPlan]) -> str:
    """Return the help of a method, with that of an accuracy where one can be paid for."""
    # Simulations hand over a planner in place of a class; plans of texts have no accuracy yet.
    has_accuracy: bool = getattr(kind, "IS_CLASSIFIER", False)
    return f"{kind.HELP} {ACCURACY_HELP}" if has_accuracy else kind.HELP


def _released(
    plan: ClassifierPlan,
    records: DataRecords,
    source: Any,  # Any: a Source
    residuals: ResidualObserver | None,
    run: ReleaseRun,
) -> bytes:
    if isinstance(plan, TextPlan):
        return plan.release(_texts(records), source, residuals, run)
    return plan.release(_table(records), source, residuals)


def _texts(records: DataRecords) -> TextRecords:
    """Return labelled texts, or say which methods a table of categories has."""
    if isinstance(records, TextRecords):
        return records
    known = ", ".join((HISTOGRAM, *MODEL_METHODS))
    raise BadParameter("method", "<text>", f"one of {known}: the data set has no texts")


def _table(records: DataRecords) -> Records:
    """Return a table of categories, or say which methods texts have."""
    if isinstance(records, Records):
        return records
    known = ", ".join(TEXT_METHODS)
    raise BadParameter("method", "<text>", f"one of {known}: the data set is of texts")


class _Plans:
    """Plans by request: a request is planned several times, and calibration takes seconds."""

    def __init__(self, kind: type[ClassifierPlan], data_sets: DataSets) -> None:
        self._kind, self._data_sets = kind, data_sets
        self._lock = threading.Lock()
        self._planned = lru_cache(_MOST_PLANS)(self._plan)

    def of(self, request: ReleaseRequest) -> ClassifierPlan:
        """Return the plan of a request, or raise BadParameter or MissingExtra."""
        check_writable()
        parameters = tuple(sorted(request.parameters.items()))
        # True and 1 are equal, and not the same parameter.
        kinds = tuple(type(value) for _, value in parameters)
        with self._lock:
            return self._planned(request.data_set, request.cost, parameters, kinds)

    def _plan(
        self,
        data_set: str,
        cost: Guarantee,
        parameters: tuple[tuple[str, Parameter], ...],
        _: tuple[type, ...],
    ) -> ClassifierPlan:
        records = self._data_sets[data_set]
        # Neighbours that swap a record have as many: then, and only then, the number is public.
        is_public = cost.neighbours is Neighbours.RECORD_SUBSTITUTE
        size = records.count if is_public else None
        # Simulations hand over a planner in place of a class: it plans for tables.
        if isinstance(self._kind, type) and issubclass(self._kind, TextPlan):
            texts = _texts(records)
            return self._kind.of(TextSpec.read(texts.schema, cost, dict(parameters), size))
        table = _table(records)
        return plan_release(self._kind, ModelSpec.read(table.schema, cost, dict(parameters), size))


def model_card(
    plan: ClassifierPlan, content: bytes, seed: str, audit: Audit | None = None
) -> dict[str, Any]:  # Any: JSON
    """Return what the card of a model says beside its guarantee.

    Everything follows from the plan, the published bytes, and a stream that both name.
    """
    digest = hashlib.sha256(content).hexdigest()
    found = _audited(plan.audited, f"{seed} {digest}", audit)
    described = plan.describe(content)
    rows = [replace(one, claim=_with_audit(one, found)) for one in plan.claims]
    is_model = "parameter_count" in described
    return {
        **described,
        "public_size": plan.spec.size,
        "privacy": [
            {
                "about": one.about,
                **claim_fields(one.claim),
                **({"note": one.note} if one.note else {}),
            }
            for one in rows
        ],
        "floats": plan.floats,
        "audit": _audit_fields(plan.audited, found, audit),
        "loading": list(_loading(plan, is_model=is_model)),
    }


def _loading(plan: ClassifierPlan, *, is_model: bool) -> tuple[str, ...]:
    if isinstance(plan, TextPlan):
        return TEXT_LOADING if plan.MEDIA_TYPE == MEDIA_TYPE else CORPUS_LOADING
    return LOADING if is_model else TABLE_LOADING


def _with_audit(row: ReleaseClaim, found: CanaryBounds | None) -> Claim:
    """Return the claim of a row with what was audited, if it is about all that is released."""
    if found is None or not row.is_whole:
        return row.claim
    return replace(row.claim, audited=found.audited, null=found.null, planted=found.planted)


def _audited(plan: ClassifierPlan, seed: str, audit: Audit | None) -> CanaryBounds | None:
    if audit is None or plan.canary is None:
        return None
    return audit(plan.canary, plan.proved.delta, seed)


def _audit_fields(
    plan: ClassifierPlan, found: CanaryBounds | None, audit: Audit | None
) -> dict[str, Any]:  # Any: JSON
    """Write what an audit found, beside a null and a planted fault: what it is worth."""
    if plan.canary is None or found is None:
        why = "this publisher has no auditor" if audit is None else "no game is known"
        return {"is_audited": False, "why": why}
    bound = found.audited
    claim = Claim(plan.spec.cost, plan.proved, bound, found.null, found.planted)
    verdict = claim.audit_verdict
    return {
        "is_audited": True,
        "epsilon_at_least": bound.epsilon,
        "delta": plan.proved.delta,
        "confidence": bound.confidence,
        "games_on_each_input": found.games,
        "held_out": bound.trials,
        "ceiling": bound.ceiling,
        "found": bound.reading,
        "null": {"inputs": "one input twice", **_bound_fields(found.null)},
        "planted": {
            "fault": f"noise of {found.planted_share:g} times the plan's",
            **_bound_fields(found.planted),
            "has_to_exceed": min(claim.claimed.epsilon, claim.proved.epsilon),
        },
        "verdict": verdict,
        "meaning": _MEANINGS.get(verdict, _CONTRADICTED),
        "canary": plan.canary.text,
        **({} if found.curve is None else {"trade_off": _curve_fields(found.curve)}),
        "data": "none: the game is played with the noise of the plan, and not with records",
    }


def _curve_fields(tested: CurveTest) -> dict[str, Any]:  # Any: JSON
    """Write the test against the curve of the declared noise, with the rates that it compared."""
    return {
        "null_hypothesis": (
            "The noise of a step is at least the declared one: at no false positive rate is the "
            "true one larger than Gaussian noise on a Poisson sample allows."
        ),
        "game": (
            f"{tested.records:,} such records together, in one step or not; epsilon_at_least is "
            "that of all steps, each with as much noise as was not refuted."
        ),
        "true_positive_rate": tested.true_rate,
        "false_positive_rate": tested.false_rate,
        "largest_true_positive_rate_as_declared": tested.allowed,
        "noise_over_declared_at_most": number_or_inf(tested.noise_at_most),
    }


def _bound_fields(bound: LowerBound) -> dict[str, Any]:  # Any: JSON
    return {"epsilon_at_least": bound.epsilon, "found": bound.reading}


_CONTRADICTED = "The audit contradicts what is proved or claimed."
_MEANINGS: Mapping[ClaimVerdict | None, str] = MappingProxyType(
    {
        ClaimVerdict.BLIND: (
            "The audit missed the planted fault, or raised a false alarm: nothing may be "
            "concluded from it. The guarantee rests on the proof alone."
        ),
        ClaimVerdict.UNDECIDED: "The audit found nothing. The guarantee rests on the proof alone.",
        ClaimVerdict.CONSISTENT: (
            "The audit found the planted fault, and nothing that contradicts the proof."
        ),
    }
)


def histogram_method(data_sets: DataSets) -> PublicationMethod:
    """Make the method that publishes noisy counts; see ``publication.histogram``."""

    def planned(request: ReleaseRequest) -> Histogram:
        check_writable()
        schema = _table(data_sets[request.data_set]).schema
        return Histogram.of(schema, request.parameters, request.cost)

    return PublicationMethod(
        HISTOGRAM,
        MEDIA_TYPE,
        proved=lambda request: planned(request).guarantee,
        loss=lambda request: planned(request).noise.loss,
        release=lambda request, source: planned(request).release(
            _table(data_sets[request.data_set]), source
        ),
        describe=lambda request, _: {
            **planned(request).facts,
            "floats": INTEGER_NOISE,
            "schema_sha256": data_schema_digest(data_sets[request.data_set].schema),
            "loading": list(HISTOGRAM_LOADING),
        },
        help=HISTOGRAM_HELP,
    )


def _histogram(data_sets: DataSets, _: Audit | None) -> PublicationMethod:
    return histogram_method(data_sets)


METHOD_BUILDERS: Mapping[str, Callable[[DataSets, Audit | None], PublicationMethod]] = (
    MappingProxyType(
        {
            HISTOGRAM: _histogram,
            **{name: partial(model_method, kind) for name, kind in MODEL_METHODS.items()},
            **{name: partial(model_method, kind) for name, kind in TEXT_METHODS.items()},
        }
    )
)
"""What makes each method, by its name."""


def methods_of(
    data_sets: DataSets,
    audit: Audit | None = None,
    *,
    is_experiment: bool = False,
    run: ReleaseRun | None = None,
) -> dict[str, PublicationMethod]:
    """Make every method for some data sets.

    Args:
        data_sets: What is published from, by name.
        audit: Plays the games of the cards; without one, cards say that no auditor played.
        is_experiment: Whether to add the methods that have no guarantee.
        run: Of one release of texts: where it shows its progress and keeps checkpoints.
    """
    methods = {name: build(data_sets, audit) for name, build in METHOD_BUILDERS.items()}
    if run is not None:
        for name, texts in TEXT_METHODS.items():
            methods[name] = model_method(texts, data_sets, audit, run=run)
    if is_experiment:
        for name, kind in EXPERIMENT_METHODS.items():
            methods[name] = model_method(kind, data_sets)
    return methods
