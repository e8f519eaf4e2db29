"""The guard before every route: token, role, rate. As ASGI, so that nothing gets past it.

A dependency of FastAPI runs for its own routes only; this runs for mounted applications, for the
description of the interface, and for paths that nobody thought of.
"""

from collections.abc import Awaitable, Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from noisefloor_services.http.policy import AccessDecision, Policy
from noisefloor_services.http.refusals import header, refuse
from noisefloor_services.security import Credential, Credentials, RateLimit, retry_after

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
        usual: Methods and paths that most requests have. What the policy says of these is asked
            once, at the start.
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
            asked = (scope["method"], scope["path"])
            if asked in self._open or self._policy.is_open(*asked):
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
            detail = "The token lacks the role, or no rule admits anybody here."
            await refuse(send, 403, "wrong-role", detail)
            return
        scope["state"]["credential"] = caller.name if caller else None
        await self._app(scope, receive, send)

    def _caller(self, scope: Scope) -> Credential | None:
        """Return whose token was presented; two headers, or another scheme, are nobody's."""
        presented = header(scope["headers"], b"authorization")
        if len(presented) != 1 or presented[0][: len(_PREFIX)].lower() != _PREFIX:
            return None
        return self._credentials.find(presented[0][len(_PREFIX) :].strip().decode("latin-1"))


async def _closed(scope: Scope, send: Send) -> None:
    """Serve nothing but requests."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
