"""Denied by default: 401 without a token, 403 with the wrong role, and nothing slips past."""

import asyncio
import re

import pytest
from fastapi import APIRouter, FastAPI, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.types import Message

from live_apps import Caller
from noisefloor.errors import BadParameter
from noisefloor_services.http.policy import AccessDecision, AnonymousAccess, Guard, Policy, Rule
from noisefloor_services.security.credentials import (
    BadCredentials,
    Credential,
    Credentials,
    Role,
    new_token,
)
from noisefloor_services.security.rate_limit import RateLimit, retry_after

TOKENS = {role: new_token() for role in Role}
LINES = [f"{role.value}-tool {role.value} {token}" for role, token in TOKENS.items()]
RULES: dict[str, Rule] = {
    "GET /healthz": AnonymousAccess.PUBLIC,
    "POST /reports": AnonymousAccess.DEVICE,
    "POST /epochs/{epoch}/close": Role.ADMIN,
    "GET /ledger/{subject}": Role.LEDGER,
    "POST /publications": Role.PUBLISH,
    "GET /statistics/{kind}/{epoch}": Role.READ,
}


def an_app() -> FastAPI:
    app, router = FastAPI(), APIRouter()

    def answer(request: Request) -> dict[str, str | None]:
        return {"caller": request.state.credential}

    for route in RULES:
        method, path = route.split(" ")
        router.add_api_route(path, answer, methods=[method])
    app.include_router(router)
    return app


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def a_client(app: FastAPI, limit: RateLimit | None = None) -> Caller:
    return Caller(Guard(app, Policy(RULES), Credentials(LINES), limit=limit))


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def client() -> Caller:
    return a_client(an_app())


@pytest.mark.parametrize("route", sorted(RULES))
def test_every_route_takes_its_role_and_no_other(client: Caller, route: str) -> None:
    method, path = route.split(" ")
    path = re.sub(r"\{\w+\}", "7", path)
    needed = RULES[route]
    nobody = client(method, path)
    if isinstance(needed, AnonymousAccess):
        assert (nobody.status_code, nobody.json()) == (200, {"caller": None})
        known = client(method, path, headers=bearer(TOKENS[Role.ADMIN]))
        assert known.json() == {"caller": None}
        return
    assert nobody.status_code == 401
    assert nobody.headers["WWW-Authenticate"] == "Bearer"
    assert client(method, path, headers=bearer(new_token())).status_code == 401
    for role, token in TOKENS.items():
        answer = client(method, path, headers=bearer(token))
        assert answer.status_code == (200 if role is needed else 403)
    assert client(method, path, headers=bearer(TOKENS[needed])).json() == {
        "caller": f"{needed.value}-tool"
    }


def test_a_new_route_without_a_rule_is_denied_and_named() -> None:
    app, policy = an_app(), Policy(RULES)
    assert policy.missing(app.openapi()) == []
    assert policy.superfluous(app.openapi()) == []
    app.openapi_schema = None

    @app.delete("/new/{thing}")
    def new(thing: str) -> str:
        return thing

    app.router.routes.append(Mount("/files", routes=[Route("/x", PlainTextResponse("x"))]))
    assert policy.missing(app.openapi()) == ["DELETE /new/{thing}"]
    client = a_client(app)
    for method, path in (
        ("DELETE", "/new/x"),
        ("GET", "/files/x"),
        ("GET", "/docs"),
        ("GET", "/openapi.json"),
        ("GET", "/nothing"),
        ("PUT", "/healthz"),
        ("OPTIONS", "/healthz"),
        ("GET", "/healthz/"),
        ("GET", "/x//healthz"),
        ("GET", "/healthz%2f"),
    ):
        assert client(method, path, follow_redirects=False).status_code == 401, path
        for token in TOKENS.values():
            answer = client(method, path, headers=bearer(token))
            assert answer.status_code == 403, path


def test_a_websocket_is_closed() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError

    async def connect() -> None:
        guard = Guard(an_app(), Policy(RULES), Credentials(LINES))
        await guard({"type": "websocket", "path": "/healthz"}, receive, send)

    asyncio.run(connect())
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_what_is_usual_is_open_only_if_a_rule_says_so() -> None:
    usual = [("POST", "/reports"), ("POST", "/publications"), ("POST", "/epochs/7/close")]
    usual += [("POST", "/healthz"), ("GET", "/reports"), ("GET", "/nowhere")]
    client = Caller(Guard(an_app(), Policy(RULES), Credentials(LINES), usual=usual))
    assert client("POST", "/reports").json() == {"caller": None}
    assert client("POST", "/reports", headers=bearer(TOKENS[Role.ADMIN])).json() == {
        "caller": None
    }
    for method, path in usual[1:]:
        assert client(method, path).status_code == 401
        wrong = client(method, path, headers=bearer(TOKENS[Role.READ]))
        assert wrong.status_code == 403


def test_where_two_rules_match_both_have_to_admit() -> None:
    policy = Policy({"GET /a/{x}": AnonymousAccess.PUBLIC, "GET /a/secret": Role.ADMIN})
    admin = Credential("a", frozenset({Role.ADMIN}))
    assert policy.judge("GET", "/a/b", None) is AccessDecision.ADMITTED
    assert policy.judge("GET", "/a/secret", None) is AccessDecision.UNKNOWN_CALLER
    assert policy.judge("GET", "/a/secret", admin) is AccessDecision.ADMITTED
    with pytest.raises(BadParameter):
        Policy({"/a": AnonymousAccess.PUBLIC})


def test_a_line_end_does_not_make_a_closed_route_an_open_one() -> None:
    app = FastAPI()

    @app.get("/a/secret")
    def secret() -> str:
        return "secret"

    @app.get("/a/{x}")
    def plain(x: str) -> str:
        return x

    rules: dict[str, Rule] = {"GET /a/secret": Role.ADMIN, "GET /a/{x}": AnonymousAccess.PUBLIC}
    client = Caller(Guard(app, Policy(rules), Credentials(LINES)))
    assert client("GET", "/a/b").json() == "b"
    for path in (
        "/a/secret",
        "/a/secret%0A",
        "/a/secret%00",
        "/a/%0Asecret",
        "/a/secret%E2%80%A8",
    ):
        assert client("GET", path).status_code == 401, path


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic {}",
        "{}",
        "Bearer {}x",
        "Bearer x{}",
        "Bearer {} {}",
        "Bearer \xff{}",
    ],
)
def test_another_form_of_the_header_is_no_credential(client: Caller, value: str) -> None:
    token = TOKENS[Role.READ]
    header = value.replace("{}", token).encode("latin-1")
    answer = client("GET", "/statistics/clicks/1", headers={b"Authorization": header})
    assert answer.status_code == 401
    assert token not in answer.text


def test_two_headers_are_no_credential_and_the_scheme_has_no_case(client: Caller) -> None:
    token = TOKENS[Role.READ]
    pair = [("Authorization", f"Bearer {token}")] * 2
    assert client("GET", "/statistics/clicks/1", headers=pair).status_code == 401
    lower = {"Authorization": f"bearer {token}"}
    assert client("GET", "/statistics/clicks/1", headers=lower).status_code == 200


def test_each_credential_has_its_own_rate() -> None:
    clock = Clock()
    client = a_client(an_app(), RateLimit(2, 3, clock=clock))

    def ask(role: Role) -> int:
        return client("GET", "/ledger/films", headers=bearer(TOKENS[role])).status_code

    assert [ask(Role.LEDGER) for _ in range(4)] == [200, 200, 200, 429]
    limited = client("GET", "/ledger/films", headers=bearer(TOKENS[Role.LEDGER]))
    assert limited.headers["Retry-After"] == "1"
    assert ask(Role.READ) == 403
    assert [client("GET", "/healthz").status_code for _ in range(9)] == [200] * 9
    clock.now += 0.5
    assert [ask(Role.LEDGER) for _ in range(2)] == [200, 429]


def test_a_flood_of_keys_stays_within_its_memory_and_gains_nothing() -> None:
    clock = Clock()
    limit = RateLimit(1, 2, clock=clock, most_keys=10)
    assert sum(limit.wait_s(f"k{number}") == 0 for number in range(1000)) == 10 + 2
    assert len(limit) == 11
    clock.now += 1  # a request each was taken: one second fills them
    assert limit.wait_s("new") == 0
    assert len(limit) <= 11
    clock.now -= 50  # a clock that runs backwards gives nothing
    assert limit.wait_s("new") == 0
    assert limit.wait_s("new") > 0
    assert retry_after(0.01) == "1"
    assert retry_after(2.1) == "3"


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (float("nan"), 1), (1, 0)])
def test_a_limit_that_admits_nothing_is_refused(rate: float, burst: int) -> None:
    with pytest.raises(BadParameter):
        RateLimit(rate, burst, clock=Clock())


def test_a_description_says_which_token_an_operation_takes() -> None:
    described = Policy(RULES).describe(an_app().openapi())
    closing = described["paths"]["/epochs/{epoch}/close"]["post"]
    assert closing["security"] == [{"bearer": []}]
    assert closing["x-role"] == "admin"
    assert {"401", "403", "429"} <= set(closing["responses"])
    assert described["paths"]["/reports"]["post"]["security"] == []


def test_tokens_are_kept_as_hashes_only() -> None:
    credentials = Credentials(LINES)
    shown = repr(credentials) + repr(credentials._hashes) + repr(credentials._key)
    assert not any(token in shown for token in TOKENS.values())
    assert len(credentials) == 4
    assert credentials.find("\ud800") is None
    assert credentials.find("x" * 10**6) is None
    both = Credentials([f"a admin,read {TOKENS[Role.ADMIN]}", "", "# a comment"])
    found = both.find(TOKENS[Role.ADMIN])
    assert found == Credential("a", frozenset({Role.ADMIN, Role.READ}))


@pytest.mark.parametrize(
    "lines",
    [
        ["a admin"],
        ["a admin short"],
        [f"a king {'x' * 40}"],
        [f"A admin {'x' * 40}"],
        [f"a admin {'x' * 40}", f"a read {'y' * 40}"],
        [f"a admin {'x' * 40}", f"b read {'x' * 40}"],
        [f"a admin {'x' * 40} more"],
        [f"a admin {'x' * 40}\xe9"],
    ],
)
def test_a_list_that_breaks_a_rule_is_refused_without_a_token(lines: list[str]) -> None:
    with pytest.raises(BadCredentials) as caught:
        Credentials(lines)
    assert "xxx" not in str(caught.value)
    assert "short" not in str(caught.value)


def test_a_token_on_the_command_line_is_refused() -> None:
    credentials = Credentials(LINES)
    credentials.check_absent(["noisefloor", "up", "--port=1"])
    for argument in (TOKENS[Role.ADMIN], f"--token={TOKENS[Role.ADMIN]}", LINES[0]):
        with pytest.raises(BadCredentials) as caught:
            credentials.check_absent(["noisefloor", argument])
        assert TOKENS[Role.ADMIN] not in str(caught.value)
