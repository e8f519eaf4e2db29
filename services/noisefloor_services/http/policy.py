"""Who may call which route: a table of rules, and the guard that enforces it before every route.

The table is keyed by method and path, with placeholders as FastAPI writes them. A route without a
rule is always denied, and ``missing`` names it to a test. The guard is ASGI middleware, not
a FastAPI dependency: a dependency runs for its own routes only, the middleware also runs for
mounted applications, for the OpenAPI description and for paths without a route.
"""

import re
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from noisefloor.errors import BadParameter
from noisefloor_services.http.bodies import header, refuse
from noisefloor_services.security import Credential, Credentials, RateLimit, Role, retry_after

METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")


class AnonymousAccess(Enum):
    """Routes that need no token."""

    DEVICE = "device"  # reports and ad requests: they carry no identity, on purpose
    PUBLIC = "public"  # health and the description of the interface


Rule: TypeAlias = Role | AnonymousAccess


class AccessDecision(Enum):
    """What becomes of a request; the value is HTTP's number for it."""

    ADMITTED = 200
    UNKNOWN_CALLER = 401
    WRONG_ROLE = 403


@dataclass(frozen=True, slots=True)
class _Pattern:
    method: str
    path: str
    matcher: re.Pattern[str]
    rule: Rule


class Policy:
    """Rules by route.

    Args:
        rules: From ``"GET /statistics/{epoch}"`` to the role that it takes, or to an
            ``AnonymousAccess``.
    """

    __slots__ = ("_exact", "_patterns", "_rules")

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules: dict[tuple[str, str], Rule] = {}
        self._exact: dict[tuple[str, str], Rule] = {}
        self._patterns: list[_Pattern] = []
        for route, rule in rules.items():
            method, _, path = route.partition(" ")
            if method not in METHODS or not path.startswith("/"):
                raise BadParameter("route", route, "a method, a blank and a path")
            self._rules[method, path] = rule
            if "{" in path:
                self._patterns.append(_Pattern(method, path, compile_path(path)[0], rule))
            else:
                self._exact[method, path] = rule

    def rules_for(self, method: str, path: str) -> list[Rule]:
        """Return every rule that matches; where two routes could serve, both have to admit.

        A path with unprintable characters matches none: Starlette's patterns end with ``$``, which
        also matches before a final line feed.
        """
        if not path.isprintable():
            return []
        found = [
            one.rule for one in self._patterns if one.method == method and one.matcher.match(path)
        ]
        exact = self._exact.get((method, path))
        return found if exact is None else [exact, *found]

    def is_open(self, method: str, path: str) -> bool:
        """Tell whether a route needs no token; then a token that is sent is not looked at."""
        rules = self.rules_for(method, path)
        return bool(rules) and all(isinstance(rule, AnonymousAccess) for rule in rules)

    def judge(self, method: str, path: str, caller: Credential | None) -> AccessDecision:
        """Decide on a request. Without a rule it is denied."""
        if self.is_open(method, path):
            return AccessDecision.ADMITTED
        if caller is None:
            return AccessDecision.UNKNOWN_CALLER
        rules = self.rules_for(method, path)
        admitted = [isinstance(rule, AnonymousAccess) or rule in caller.roles for rule in rules]
        return AccessDecision.ADMITTED if admitted and all(admitted) else AccessDecision.WRONG_ROLE

    def missing_roles(self, method: str, path: str, caller: Credential | None) -> list[Role]:
        """Return the roles that a route takes and a caller lacks."""
        granted = frozenset[Role]() if caller is None else caller.roles
        rules = self.rules_for(method, path)
        return [rule for rule in rules if isinstance(rule, Role) and rule not in granted]

    def missing(self, openapi: Mapping[str, Any]) -> list[str]:  # Any: JSON
        """Name the operations of a description that have no rule."""
        return sorted(
            f"{method} {path}"
            for method, path in _operations(openapi)
            if (method, path) not in self._rules
        )

    def superfluous(self, openapi: Mapping[str, Any]) -> list[str]:  # Any: JSON
        """Name the rules for which the description has no operation."""
        described = set(_operations(openapi))
        return sorted(
            f"{method} {path}" for method, path in self._rules if (method, path) not in described
        )

    def describe(self, openapi: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
        """Write into a description which token each operation takes, and what it answers without.

        The description is changed and returned. An operation without a rule is shown as denied.
        """
        schemes = openapi.setdefault("components", {}).setdefault("securitySchemes", {})
        schemes["bearer"] = {"type": "http", "scheme": "bearer"}
        for method, path in _operations(openapi):
            operation = openapi["paths"][path][method.lower()]
            rule = self._rules.get((method, path))
            if isinstance(rule, AnonymousAccess):
                operation["security"] = []
                continue
            role = rule.value if rule else "none: no rule, always denied"
            operation["security"] = [{"bearer": []}]
            operation["x-role"] = role
            answers = operation.setdefault("responses", {})
            answers.setdefault("401", {"description": "No token, or one that is not known."})
            answers.setdefault("403", {"description": f"The token lacks the role: {role}."})
            answers.setdefault("429", {"description": "Too many requests with this token."})
        return openapi


def _operations(openapi: Mapping[str, Any]) -> Iterable[tuple[str, str]]:  # Any: JSON
    for path, item in openapi.get("paths", {}).items():
        for method in item:
            if method.upper() in METHODS:
                yield method.upper(), path


_PREFIX = b"bearer "


class Guard:
    """Admits a request to the application, or answers 401, 403 or 429.

    The name of the caller's credential is left in the scope's state, as ``credential``. On open
    routes it is None: a token that comes with a report is not looked at.

    Args:
        app: What is guarded.
        policy: Who may do what.
        credentials: Whose tokens are known.
        limit: For requests with a token, by the name of the credential; None for no limit.
        usual: Methods and paths that most requests have; their rules are looked up once, at the
            start.
    """

    __slots__ = ("_app", "_credentials", "_limit", "_open", "_policy")

    def __init__(
        self,
        app: ASGIApp,
        policy: Policy,
        credentials: Credentials,
        *,
        limit: RateLimit | None = None,
        usual: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._app = app
        self._policy = policy
        self._credentials = credentials
        self._limit = limit
        self._open = frozenset(one for one in usual if policy.is_open(*one))

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one connection."""
        if scope["type"] == "http":
            scope.setdefault("state", {})["credential"] = None
            route = (scope["method"], scope["path"])
            if route in self._open or self._policy.is_open(*route):
                return self._app(scope, receive, send)
            return self._http(scope, receive, send)
        if scope["type"] == "lifespan":
            return self._app(scope, receive, send)
        return _closed(scope, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = self._caller(scope)
        verdict = self._policy.judge(scope["method"], scope["path"], caller)
        if verdict is AccessDecision.UNKNOWN_CALLER:
            detail = "This takes a bearer token that is known here, or it is not there at all."
            challenge = {"WWW-Authenticate": "Bearer"}
            await refuse(send, 401, "unknown-caller", detail, headers=challenge)
            return
        if caller is not None and self._limit is not None:
            wait_s = self._limit.wait_s(caller.name)
            if wait_s:
                headers = {"Retry-After": retry_after(wait_s)}
                detail = "Too many requests with this token."
                await refuse(send, 429, "too-many-requests", detail, headers=headers)
                return
        if verdict is AccessDecision.WRONG_ROLE:
            await self._deny(scope, send, caller)
            return
        scope["state"]["credential"] = caller.name if caller else None
        await self._app(scope, receive, send)

    async def _deny(self, scope: Scope, send: Send, caller: Credential | None) -> None:
        """Answer 403, and name the roles that the token lacks."""
        missing = self._policy.missing_roles(scope["method"], scope["path"], caller)
        if not missing:
            await refuse(send, 403, "wrong-role", "No rule admits anybody here.")
            return
        names = ", ".join(role.value for role in missing)
        detail = f"The token lacks the role {names}: use one that has it."
        await refuse(send, 403, "wrong-role", detail, role=names)

    def _caller(self, scope: Scope) -> Credential | None:
        """Return the credential of the token; none for two headers or another scheme."""
        presented = header(scope["headers"], b"authorization")
        if len(presented) != 1 or presented[0][: len(_PREFIX)].lower() != _PREFIX:
            return None
        return self._credentials.find(presented[0][len(_PREFIX) :].strip().decode("latin-1"))


async def _closed(scope: Scope, send: Send) -> None:
    """Serve nothing but requests."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
