"""Calls to one service over one connection that is kept.

What services refuse for now (429, 503) and what got no answer is sent again, the same bytes: that
is safe, since frames count once and closing is repeatable. What they refuse for good is an error.

It also says where running services are, and with which tokens they are called.
"""

import http.client
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from noisefloor.errors import BadParameter, ServicesRefused, ServicesUnavailable


@dataclass(frozen=True, slots=True)
class ServiceAddresses:
    """Where the services of a running topology are, and the tokens of a run.

    Attributes:
        ad_server: Its address, ``http://host:port``.
        aggregator: Likewise.
        token: Of a credential with the roles read and admin; never shown.
        admin_token: Of a credential with the role admin, if that is another; never shown.
        publisher: The address of the model publisher; empty if the run has none.
        publish_token: Of a credential with the role publish, likewise.
        ledger_token: Of a credential with the role ledger, likewise.
    """

    ad_server: str
    aggregator: str
    token: str = field(repr=False)
    admin_token: str = field(default="", repr=False)
    publisher: str = ""
    publish_token: str = field(default="", repr=False)
    ledger_token: str = field(default="", repr=False)


def bearer(token: str) -> dict[str, str]:
    """Return the header of a token."""
    return {"Authorization": f"Bearer {token}"}


PATIENCE_S = 60.0
_TIMEOUT_S = 30.0
_PAUSE_S = 0.05
_NOT_NOW = (429, 503)


@dataclass(frozen=True, slots=True)
class ServiceResponse:
    """What a service answered."""

    status: int
    body: bytes


class ServiceClient:
    """Calls one service.

    Args:
        url: ``http://host:port``.
        prefix: Before every path.
        patience_s: How long to try again before giving up.
    """

    def __init__(self, url: str, prefix: str = "", *, patience_s: float = PATIENCE_S) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadParameter("url", url, "to begin with http:// or https://, and to name a host")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else _Http
        self._connection = kind(parts.hostname, parts.port, timeout=_TIMEOUT_S)
        self._where = f"{parts.hostname}:{parts.port}"
        self._prefix = prefix
        self._patience_s = patience_s

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        known: tuple[int, ...] = (),
    ) -> ServiceResponse:
        """Send a request until it is answered for good.

        Args:
            method: Of HTTP.
            path: Below the prefix.
            body: The same at each try.
            headers: Likewise.
            known: Refusals that the caller wants to see.
        """
        deadline, pause_s = time.monotonic() + self._patience_s, _PAUSE_S
        why = "no answer"
        while True:
            try:
                self._connection.request(method, self._prefix + path, body, dict(headers or {}))
                got = self._connection.getresponse()
                answer, wait = (
                    ServiceResponse(got.status, got.read()),
                    got.getheader("Retry-After"),
                )
                if answer.status not in _NOT_NOW:
                    return self._settled(answer, method, path, known)
                why = f"{answer.status}: {_detail(answer)}"
                pause_s = float(wait) if wait and wait.isdigit() else pause_s
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                why, pause_s = type(error).__name__, min(1.0, 2 * pause_s)
            if time.monotonic() + pause_s > deadline:
                raise ServicesUnavailable(
                    f"The service at {self._where} does not take part: {why}."
                )
            time.sleep(pause_s)

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()

    def _settled(
        self, answer: ServiceResponse, method: str, path: str, known: tuple[int, ...]
    ) -> ServiceResponse:
        if answer.status < 400 or answer.status in known:
            return answer
        reason = f"{answer.status}, {_detail(answer)}"
        raise ServicesRefused(f"The service at {self._where} refused {method} {path}: {reason}")


class _Http(http.client.HTTPConnection):
    """A plain connection; the name says that nothing is encrypted, as loopback allows."""


def _detail(answer: ServiceResponse) -> str:
    """Return what a refusal says in words, if it says anything."""
    try:
        return str(json.loads(answer.body)["detail"])
    except (ValueError, KeyError, TypeError):
        return "no reason given"
