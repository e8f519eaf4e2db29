"""Whatever any operation is sent, it answers as its description says, and never with a 5xx.

``pytest tests/services/test_interfaces.py --examples 1000`` sends that many to each operation as
whoever it is for, and a tenth of them as somebody else; the suite sends a few.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks

from hostile_frames import GOOD, KINDS, SeededDraws, changed
from live_apps import TOKENS, credentials, prepared
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.randomness import SeededSource, Source, new_run
from noisefloor.roles.collection_config import CollectionConfig, example_collection
from noisefloor.roles.model_publisher import PublicationMethod, ReleaseRequest
from noisefloor_services import ad_server, aggregator, publisher
from noisefloor_services.http.bodies import FRAME_TYPE
from noisefloor_services.http.service import DESCRIPTION, Service
from noisefloor_services.security.credentials import Role, new_token
from noisefloor_services.settings import Settings
from noisefloor_services.store.embedded import EmbeddedServer
from served import served

FEW = 5
WITH_TOKENS = "ad-server with report tokens"
COLLECTION = CollectionConfig(example_collection(5).catalogue, {**KINDS})
COST = Guarantee(0.25, Neighbours.RECORD_ADD_REMOVE, model=TrustModel.CENTRAL)
CHECKS: list[CheckFunction] = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
KNOWN: Mapping[str, list[Any]] = {  # Any: JSON
    "kind": sorted(COLLECTION.kinds),
    "epoch": [0, 1, 2, 31],
    "index": [0, 4],
    "report": [[0, 1] * 5 + [1], [1] * 6, 299, -5, 0, {"age": 3, "note": "abc"}],
    "publication_id": [f"p-{number}" for number in range(60)],
    "subject": ["films"],
    "data_set": ["films"],
    "method": ["mean"],
    "cost": [{"epsilon": 0.25, "neighbours": Neighbours.RECORD_ADD_REMOVE.value}],
    "parameters": [{}],
    "name": ["films", "visits", "games"],
    "version": [1, 2],
    "declaration": [{"record": "one", "columns": {"buys": {"categories": ["no", "yes"]}}}],
    "budget": [{"epsilon": 1.0, "neighbours": Neighbours.RECORD_ADD_REMOVE.value}],
}
"""What there is, so that not every request ends at a name that nobody knows."""


def release(_: ReleaseRequest, source: Source) -> bytes:
    return source.words(8).tobytes()


METHODS = {"mean": PublicationMethod("mean", "application/octet-stream", lambda _: COST, release)}


def made(name: str, settings: Settings) -> Service:
    if name == aggregator.NAME:
        return aggregator.create(settings, COLLECTION)
    if name == publisher.NAME:
        return publisher.create(settings, METHODS, data_sets=["films"])
    return ad_server.create(settings, COLLECTION)


def settings_of(name: str, url: str = "redis://127.0.0.1:1/0") -> Settings:
    free = {"rate": 1e6, "burst": 10**6, "report_tokens": name == WITH_TOKENS}
    return Settings(redis_url=url, credentials=credentials(), **free)  # type: ignore[arg-type]


def listed() -> Iterator[tuple[str, str]]:
    """Yield every operation of every service, as its description lists it."""
    for name in (ad_server.NAME, WITH_TOKENS, aggregator.NAME, publisher.NAME):
        for path, item in made(name, settings_of(name)).api.openapi()["paths"].items():
            for method in item:
                if name != WITH_TOKENS or method == "post":
                    yield name, f"{method.upper()} {path}"


@dataclass
class Topology:
    """The services as they run, and what they answered."""

    urls: dict[str, str] = field(default_factory=dict)
    schemas: dict[str, schemathesis.BaseSchema] = field(default_factory=dict)
    report_tokens: list[str] = field(default_factory=list)
    session: requests.Session = field(default_factory=requests.Session)
    operations: set[str] = field(default_factory=set)
    statuses: Counter[int] = field(default_factory=Counter)

    def operation(self, name: str, label: str) -> Any:  # Any: generic in the library's own types
        """Return an operation of a service's description, which is read once."""
        if name not in self.schemas:
            described = httpx.get(self.urls[name] + DESCRIPTION).json()
            self.schemas[name] = schemathesis.openapi.from_dict(described)
        found = self.schemas[name].find_operation_by_label(label)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def topology(
    note: Callable[[str], None], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Topology]:
    found, started_s = Topology(), time.monotonic()
    with ExitStack() as stack:
        valkey = stack.enter_context(EmbeddedServer(tmp_path_factory.mktemp("valkey")))
        publisher.create_ledger(settings_of(publisher.NAME, valkey.url))
        prepared(settings_of(ad_server.NAME, valkey.url), COLLECTION)
        for name in dict.fromkeys(name for name, _ in listed()):
            found.urls[name] = stack.enter_context(
                served(made(name, settings_of(name, valkey.url)))
            )
        found.report_tokens += _report_tokens(found.urls[WITH_TOKENS])
        stack.callback(found.session.close)
        yield found
    sent = f"{found.statuses.total()} requests to {len(found.operations)} operations"
    note(f"{sent} in {time.monotonic() - started_s:.0f} s: {sorted(found.statuses.items())}")


def _report_tokens(url: str) -> list[str]:
    headers = {"Authorization": f"Bearer {TOKENS[Role.ADMIN]}"}
    options = {"json": {"count": 100}, "headers": headers}
    made: list[str] = httpx.post(f"{url}/tokens/0", **options).json()  # type: ignore[arg-type]
    return made


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """Return a frame, good or changed; the seed alone is hypothesis', which keeps it quick."""
    with new_run():
        seed = draw(st.integers(0, 2**32))
        return changed(SeededDraws(SeededSource(seed))) if seed % 4 else GOOD[seed % len(GOOD)]


schemathesis.openapi.media_type(FRAME_TYPE, frames())


@st.composite
def cases(draw: st.DrawFn, operation: Any, report_tokens: list[str]) -> Any:  # Any: as above
    """Return a request by the rules, with some names that exist, or one against the rules."""
    mode = draw(st.sampled_from([GenerationMode.POSITIVE] * 2 + [GenerationMode.NEGATIVE]))
    case = draw(operation.as_strategy(generation_mode=mode))
    if mode is GenerationMode.POSITIVE:
        for part in (case.path_parameters, case.body):
            if isinstance(part, dict):
                for name in sorted(KNOWN.keys() & part.keys()):
                    if draw(st.booleans()):
                        part[name] = draw(st.sampled_from(KNOWN[name]))
        if draw(st.booleans()) and report_tokens:
            case.headers["Report-Token"] = draw(st.sampled_from(report_tokens))
    return case


SIGNS = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20)
EXTRA = st.fixed_dictionaries(
    {},
    optional={
        name: SIGNS for name in ("User-Agent", "Cookie", "Accept", "X-Forwarded-For", "Range")
    },
)
QUERIES = st.dictionaries(SIGNS, st.text(max_size=20), max_size=2)


def callers(role: str | None, *, is_meant: bool) -> list[str | None]:
    """Return the tokens that an operation admits, or all others."""
    known = {one.value: token for one, token in TOKENS.items()}
    if is_meant:
        return [known.pop(role) if role else None]
    return [new_token(), *([None] if role else ()), *(known[one] for one in known if one != role)]


@pytest.mark.parametrize("is_meant", [True, False], ids=["meant", "others"])
@pytest.mark.parametrize(("name", "label"), list(listed()))
def test_answers_are_as_described_and_none_is_a_5xx(
    topology: Topology, pytestconfig: pytest.Config, name: str, label: str, is_meant: bool
) -> None:
    operation = topology.operation(name, label)
    role = operation.definition.raw.get("x-role")
    tokens = callers(role, is_meant=is_meant)
    topology.operations.add(f"{name} {label}")
    examples = pytestconfig.getoption("--examples") or FEW

    @settings(
        max_examples=examples if is_meant else max(FEW, examples // 10),
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(cases(operation, topology.report_tokens), st.sampled_from(tokens), EXTRA, QUERIES)
    def check(case: Any, token: str | None, extra: dict[str, str], query: dict[str, str]) -> None:
        headers = {**extra, **({"Authorization": f"Bearer {token}"} if token else {})}
        url = topology.urls[name]
        answer = case.call(url, topology.session, headers=headers, params=query)
        topology.statuses[answer.status_code] += 1
        if role and not is_meant:
            assert answer.status_code in (401, 403)
        case.validate_response(answer, CHECKS)

    check()


def test_every_service_answered_well_and_badly(topology: Topology) -> None:
    if len(topology.operations) == len(list(listed())):
        assert {200, 202, 401, 403, 404, 422} <= set(topology.statuses)


@pytest.mark.parametrize("responses", [{"200": {}}, {"401": {"content": {"text/plain": {}}}}])
def test_a_description_that_is_not_true_is_found(
    topology: Topology, responses: dict[str, Any]
) -> None:
    url = topology.urls[aggregator.NAME]
    described: dict[str, Any] = httpx.get(url + DESCRIPTION).json()
    for is_true in (True, False):
        if not is_true:
            described["paths"]["/conservation"]["get"]["responses"] = responses
        case = schemathesis.openapi.from_dict(described)["/conservation"]["GET"].Case()
        answer = case.call(url)
        assert answer.status_code == 401
        if is_true:
            case.validate_response(answer, CHECKS)
        else:
            with pytest.raises(FailureGroup):
                case.validate_response(answer, CHECKS)
