"""Who may do what: a table of routes, and no for everything that is not in it.

The table is keyed by method and path, with placeholders as FastAPI writes them. A route that
somebody adds without a rule is denied to everybody, and ``missing`` names it to a test.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from starlette.routing import compile_path

from noisefloor.errors import BadParameter
from noisefloor_services.security import Credential, Role

METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")


class AnonymousAccess(Enum):
    """Routes that ask nobody who they are."""

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

        A path with signs that cannot be printed matches none: routers overlook a last line end.
        """
        if not path.isprintable():
            return []
        found = [
            one.rule for one in self._patterns if one.method == method and one.matcher.match(path)
        ]
        exact = self._exact.get((method, path))
        return found if exact is None else [exact, *found]

    def is_open(self, method: str, path: str) -> bool:
        """Tell whether nobody is asked who they are; then nobody should look, either."""
        rules = self.rules_for(method, path)
        return bool(rules) and all(isinstance(rule, AnonymousAccess) for rule in rules)

    def judge(self, method: str, path: str, caller: Credential | None) -> AccessDecision:
        """Say what becomes of a request. No rule: denied, whoever asks."""
        if self.is_open(method, path):
            return AccessDecision.ADMITTED
        if caller is None:
            return AccessDecision.UNKNOWN_CALLER
        rules = self.rules_for(method, path)
        held = [isinstance(rule, AnonymousAccess) or rule in caller.roles for rule in rules]
        return AccessDecision.ADMITTED if held and all(held) else AccessDecision.WRONG_ROLE

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
        parts = openapi.setdefault("components", {}).setdefault("securitySchemes", {})
        parts["bearer"] = {"type": "http", "scheme": "bearer"}
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
