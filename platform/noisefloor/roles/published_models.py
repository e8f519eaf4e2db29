"""Models as methods of the publisher: a request is planned, charged, released and described."""

import hashlib
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from noisefloor.privacy import Claim, Guarantee, LowerBound, Neighbours
from noisefloor.publication.model_methods import Canary, ModelPlan, Parameter, Wanted
from noisefloor.publication.records import Records
from noisefloor.publication.tensors import MEDIA_TYPE, check_writable
from noisefloor.roles.artefact import claim_fields
from noisefloor.roles.model_publisher import Method, Request

Audit: TypeAlias = Callable[[Canary, float, str], LowerBound]
"""Plays a canary's game at a delta, with coins that a text names; see ``adversary.plan_audit``."""

LOADING = (
    "file, card = (httpx.get(url + end, headers=token) for end in ('', '/card'))",
    "model = noisefloor.publication.load_model(file.content, card.json())",
    "told = model.predict(table)  # a list of values for each column, by its name",
)
"""How a third party loads a model and asks it."""

TABLE_LOADING = (
    LOADING[0],
    "tensors = noisefloor.publication.load(file.content, card.json())",
    "rows = {name: tensors[name] for name in tensors if name.startswith('rows/')}",
)

_KEPT_PLANS = 64


def model_method(
    kind: type[ModelPlan], data_sets: Mapping[str, Records], audit: Audit | None = None
) -> Method:
    """Make the method that publishes by one of ``publication.model_methods``.

    Args:
        kind: Plans the releases.
        data_sets: What is published from, by name.
        audit: Plays the games of canaries for cards, if there is anybody to do so.
    """
    plans = _Plans(kind, data_sets)

    def release(request: Request, source: Any) -> bytes:  # Any: a Source
        return plans.of(request).release(data_sets[request.data_set], source)

    def describe(request: Request, content: bytes) -> dict[str, Any]:  # Any: JSON
        return card_of(plans.of(request), content, request.digest, audit)

    return Method(
        kind.NAME,
        MEDIA_TYPE,
        proved=lambda request: plans.of(request).proved,
        release=release,
        describe=describe,
        is_long=True,
        help=kind.HELP,
    )


class _Plans:
    """The plans of requests, kept: calibrating noise takes seconds, and is asked for often."""

    def __init__(self, kind: type[ModelPlan], data_sets: Mapping[str, Records]) -> None:
        self._kind, self._data_sets = kind, data_sets
        self._lock = threading.Lock()
        self._planned = lru_cache(_KEPT_PLANS)(self._plan)

    def of(self, request: Request) -> ModelPlan:
        """Return the plan of a request, or raise BadParameter or MissingExtra."""
        check_writable()
        told = tuple(sorted(request.parameters.items()))
        # True and 1 are equal, and not the same parameter.
        kinds = tuple(type(value) for _, value in told)
        with self._lock:
            return self._planned(request.data_set, request.cost, told, kinds)

    def _plan(
        self,
        data_set: str,
        cost: Guarantee,
        told: tuple[tuple[str, Parameter], ...],
        _: tuple[type, ...],
    ) -> ModelPlan:
        records = self._data_sets[data_set]
        # Neighbours that swap a record have as many: then, and only then, the number is public.
        is_public = cost.neighbours is Neighbours.RECORD_SUBSTITUTE
        size = records.count if is_public else None
        return self._kind.of(Wanted.read(records.schema, cost, dict(told), size))


def card_of(
    plan: ModelPlan, content: bytes, seed: str, audit: Audit | None = None
) -> dict[str, Any]:  # Any: JSON
    """Return what the card of a model says beside its guarantee.

    Everything follows from the plan, the published bytes, and coins that the seed and they name.
    """
    digest = hashlib.sha256(content).hexdigest()
    bound = _audited(plan, f"{seed} {digest}", audit)
    described = plan.describe(content)
    is_model = "parameter_count" in described
    return {
        **described,
        "public_size": plan.wanted.size,
        "privacy": [
            {
                "about": one.about,
                **claim_fields(one.claim),
                **({"note": one.note} if one.note else {}),
            }
            for one in plan.claims
        ],
        "audit": _audit_fields(plan, bound, audit),
        "loading": list(LOADING if is_model else TABLE_LOADING),
    }


def _audited(plan: ModelPlan, seed: str, audit: Audit | None) -> LowerBound | None:
    if audit is None or plan.canary is None:
        return None
    return audit(plan.canary, plan.proved.delta, seed)


def _audit_fields(
    plan: ModelPlan, bound: LowerBound | None, audit: Audit | None
) -> dict[str, Any]:  # Any: JSON
    if plan.canary is None or bound is None:
        why = "this publisher has no auditor" if audit is None else "no game is known"
        return {"is_audited": False, "why": why}
    return {
        "is_audited": True,
        "epsilon_at_least": bound.epsilon,
        "delta": plan.proved.delta,
        "confidence": bound.confidence,
        "games_on_each_input": 2 * bound.trials,
        "held_out": bound.trials,
        "ceiling": bound.ceiling,
        "found": bound.reading,
        "verdict": Claim(plan.wanted.cost, plan.proved, bound).audit_verdict,
        "canary": plan.canary.text,
        "data": "none: the game is played with the noise of the plan, and not with records",
    }
