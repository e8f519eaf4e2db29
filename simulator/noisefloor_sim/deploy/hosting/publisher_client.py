"""A publisher service as its clients see it: requests in, artefacts and chains out.

Refusals of the service become the errors that the role itself would raise: what ran out of a
budget is named, and so is the role that a token lacks.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from noisefloor import errors
from noisefloor.accounting import LedgerCopy, LedgerTerms
from noisefloor.errors import BadParameter
from noisefloor.publication import MEDIA_TYPE
from noisefloor.roles import Artefact, ReleaseRequest
from noisefloor.tables import DataRecords, encode_data
from noisefloor.wire.messages import (
    BudgetBalance,
    DataSetMessage,
    PublicationCost,
    PublicationMessage,
    PublicationOutcome,
)
from noisefloor_sim.deploy.deployment import Deployment
from noisefloor_sim.deploy.errors import BadState
from noisefloor_sim.deploy.paths import ROLES
from noisefloor_sim.deploy.service_client import ServiceClient, ServiceResponse, bearer

PATIENCE_S = 15.0
"""How long to ask again where the service cannot promise anything."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.5
_JSON = {"Content-Type": "application/json"}
_BYTES = {"Content-Type": "application/octet-stream"}
_REFUSALS = (400, 401, 403, 404, 409, 410, 413, 415, 422)


class PublisherClient:
    """Calls one publisher.

    Args:
        url: Of the publisher, ``http://host:port``.
        tokens: By role; never shown.
    """

    def __init__(self, url: str, tokens: Mapping[str, str]) -> None:
        self.url = url
        self._tokens = dict(tokens)
        self._client = ServiceClient(url, patience_s=PATIENCE_S)

    @classmethod
    def of(cls, topology: Deployment) -> "PublisherClient":
        """Call the publisher of a running topology with the tokens of its folder."""
        tokens = {role: topology.token(role) for role in ROLES}
        return cls(topology.url("model-publisher"), tokens)

    def close(self) -> None:
        """Give the connection back."""
        self._client.close()

    def data_sets(self) -> list[str]:
        """Return the names of the data sets that are published from."""
        listed = json.loads(self._call("ledger", "GET", "/ledger").body)
        return [BudgetBalance.model_validate(one).subject for one in listed]

    def ledger(self, name: str) -> LedgerCopy:
        """Return the ledger of a data set, every link checked here; BrokenChain otherwise."""
        found = json.loads(self._call("ledger", "GET", f"/ledger/{name}/chain").body)
        try:
            terms = LedgerTerms.read(found["terms"])
        except (ValueError, TypeError, KeyError, BadParameter):
            raise errors.UnlikeTerms(
                f"{self.url}: the terms of the ledger of {name} cannot be read by this version."
            ) from None
        return LedgerCopy(terms, name, [one.encode() for one in found["records"]])

    def register(self, name: str, message: DataSetMessage) -> None:
        """Register a data set with its schema and its budget; the same again is no change."""
        body = message.model_dump_json().encode()
        self._call("admin", "PUT", f"/data-sets/{name}", body, _JSON)

    def upload(self, name: str, records: DataRecords) -> None:
        """Replace the rows of a registered data set."""
        body, version = encode_data(records), time.time_ns() // 1_000_000
        path = f"/data-sets/{name}/records/{version}"
        answer = self._call("admin", "PUT", path, body, _BYTES, known=(404, 413))
        if answer.status == 404:
            raise errors.LedgerAbsent(
                f"{self.url}: {name} is not known there. Register it with a budget, once, by: "
                f"noisefloor ledger budget {name}.csv --epsilon E --delta D"
            )
        if answer.status == 413:
            raise errors.ServicesRefused(
                f"{self.url} takes no upload of {len(body)} bytes: start the services with a "
                "larger NOISEFLOOR_BODY_BYTES."
            )

    def send(self, request: ReleaseRequest, *, is_dry: bool = False) -> PublicationOutcome:
        """Let a request be charged, or find out what it would cost."""
        body = _message(request, is_dry=is_dry).model_dump_json().encode()
        try:
            answer = self._call("publish", "POST", "/publications", body, _JSON)
        except errors.BudgetExceeded as refused:
            raise errors.BudgetExceeded(request.data_set, refused.short) from None
        return PublicationOutcome.model_validate_json(answer.body)

    def wait_stored(self, request: ReleaseRequest, tell: Callable[[str], None]) -> None:
        """Wait until a publication is stored, however long it takes.

        Args:
            request: The request, which is sent again if the service was started anew.
            tell: Gets the state.
        """
        pause_s = _FIRST_PAUSE_S
        while True:
            state = self._state(request)
            tell(state)
            if state == "stored":
                return
            if state == "failed":
                raise errors.PublicationFailed(
                    "The publication was paid for and failed. Nothing is drawn again; a new one "
                    "needs another --id."
                )
            if state == "charged":  # the service was started again, and its queue is empty
                self.send(request)
            time.sleep(pause_s)
            pause_s = min(_LONGEST_PAUSE_S, 1.5 * pause_s)

    def artefact(self, publication_id: str, name: str) -> Artefact | None:
        """Return a publication with its card, or None; the file is the one of its card."""
        path = f"/publications/{publication_id}"
        file = self._call("read", "GET", f"{path}?data_set={name}", known=(404,))
        if file.status == 404:
            return None
        card = json.loads(self._call("read", "GET", f"{path}/card?data_set={name}").body)
        if card.get("content_sha256") != hashlib.sha256(file.body).hexdigest():
            raise errors.BadSnapshot(f"{self.url}: the card is of another file than was sent.")
        return Artefact(file.body, MEDIA_TYPE, card)

    def _state(self, request: ReleaseRequest) -> str:
        path = f"/publications/{request.publication_id}/state?data_set={request.data_set}"
        return str(json.loads(self._call("read", "GET", path).body)["state"])

    def _call(
        self,
        role: str,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        known: tuple[int, ...] = (),
    ) -> ServiceResponse:
        header = bearer(self._tokens[role]) | dict(headers or {})
        try:
            answer = self._client.call(method, path, body, header, known=_REFUSALS)
        except errors.ServicesUnavailable as error:
            raise errors.ServicesUnavailable(
                f"{error} Try again later: the same command is charged once."
            ) from None
        if answer.status < 400 or answer.status in known:
            return answer
        raise _refusal(self.url, path, answer)


def _message(request: ReleaseRequest, *, is_dry: bool) -> PublicationMessage:
    """Write a request as the service takes it, or raise RequestInvalid with field and rule."""
    cost = request.cost
    try:
        return PublicationMessage(
            publication_id=request.publication_id,
            data_set=request.data_set,
            method=request.method,
            cost=PublicationCost(
                epsilon=cost.epsilon, delta=cost.delta, neighbours=cost.neighbours
            ),
            parameters=dict(request.parameters),
            dry_run=is_dry,
        )
    except ValidationError as error:
        # Places and rules alone: a message of the library repeats what was given.
        listed = [f"{'.'.join(map(str, one['loc']))}: {one['type']}" for one in error.errors()]
        raise errors.RequestInvalid(f"The publisher takes no such request: {listed[0]}.") from None


def _refusal(url: str, path: str, answer: ServiceResponse) -> errors.NoisefloorError:
    """Return the error of a refusal, in the service's own words."""
    try:
        refusal: dict[str, Any] = json.loads(answer.body)  # Any: JSON
        detail = str(refusal.get("detail") or refusal.get("error"))
    except (ValueError, AttributeError):
        refusal, detail = {}, "no reason given"
    if refusal.get("error") == "budget-exceeded":
        short = [
            errors.Shortage(one["quantity"], float(one["asked"]), one["left"])
            for one in refusal["short"]
        ]
        return errors.BudgetExceeded("the data set", short)
    if answer.status == 410:
        return errors.PublicationFailed(f"{url}: {detail}")
    if answer.status in (400, 415, 422):
        return errors.RequestInvalid(f"{url}: {_faults(refusal) or detail}")
    return errors.ServicesRefused(f"{url} refused {path.partition('?')[0]}: {detail}")


def _faults(refusal: Mapping[str, Any]) -> str:  # Any: JSON
    """Return the fields of a message that break a rule, in one line."""
    listed = refusal.get("detail")
    if not isinstance(listed, list):
        return ""
    return "; ".join(f"{one.get('where')} breaks the rule {one.get('rule')}" for one in listed)


def read_tokens(path: Path) -> dict[str, str]:
    """Read a token for each role from a file: one token, or lines of name, roles and token.

    Where no line has a role, the first token is sent: the service then says which role it lacks.
    """
    try:
        lines = [line.split() for line in path.read_text(encoding="ascii").splitlines()]
    except (OSError, UnicodeDecodeError):
        raise BadState(f"{path}: the token cannot be read.") from None
    lines = [line for line in lines if line and not line[0].startswith("#")]
    if not lines or any(len(line) not in (1, 3) for line in lines):
        raise BadState(f"{path}: expected one token, or lines of name, roles and token.")
    by_role = {role: line[2] for line in lines if len(line) == 3 for role in line[1].split(",")}
    return {role: by_role.get(role, lines[0][-1]) for role in ROLES}
