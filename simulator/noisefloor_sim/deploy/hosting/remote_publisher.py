"""The publisher behind a socket: records are uploaded, charged for and released by the service.

The service draws its noise from the operating system: two runs get different bytes. What was
spent, what was refused, and what cards say of the plan is the same as in one process.
"""

import hashlib
import json
import time
from collections.abc import Mapping

from noisefloor import errors
from noisefloor.accounting import Ledger
from noisefloor.publication import MEDIA_TYPE
from noisefloor.randomness import SecureSource
from noisefloor.roles import Artefact, ReleaseRequest
from noisefloor.tables import DataRecords, encode_data
from noisefloor.wire.messages import DataSetMessage, PublicationCost, PublicationMessage
from noisefloor_sim.deploy import service_client

PATIENCE_S = 3600.0
"""How long a publication may take, with those that wait before it at the service."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.5
_JSON = {"Content-Type": "application/json"}
_BYTES = {"Content-Type": "application/octet-stream"}
_TOO_LARGE = 413


class RemotePublisher:
    """Publishes from a data set of its own at the publisher service.

    The data set's name is drawn, since names are used once: a run that is repeated takes another.

    Args:
        addresses: Of the services.
        data_set: Schema, budget, and whether it is an experiment.
    """

    def __init__(
        self, addresses: service_client.ServiceAddresses, data_set: DataSetMessage
    ) -> None:
        if not addresses.publisher:
            raise errors.ServicesRefused("There is no publisher among the services of this run.")
        self.data_set = f"run-{SecureSource().words(2).tobytes().hex()}"
        self._path = f"/data-sets/{self.data_set}"
        self._client = service_client.ServiceClient(addresses.publisher)
        self._admin = service_client.bearer(addresses.admin_token or addresses.token)
        self._publish, self._read, self._ledger = (
            service_client.bearer(token or addresses.token)
            for token in (addresses.publish_token, addresses.token, addresses.ledger_token)
        )
        self._version = 0
        body = data_set.model_dump_json().encode()
        try:
            self._client.call("PUT", self._path, body, self._admin | _JSON)
        except BaseException:
            self._client.close()
            raise

    def update(self, records: DataRecords) -> None:
        """Upload the records as the next version."""
        self._version += 1
        body, path = encode_data(records), f"{self._path}/records/{self._version}"
        answer = self._client.call("PUT", path, body, self._admin | _BYTES, known=(_TOO_LARGE,))
        if answer.status == _TOO_LARGE:
            raise errors.ServicesRefused(
                f"The publisher takes no upload of {len(body)} bytes: start the services with a "
                "larger NOISEFLOOR_BODY_BYTES."
            )

    def publish(self, request: ReleaseRequest) -> Artefact:
        """Send a request, wait until it is stored, and fetch it with its card."""
        self._send(request)
        self._wait_stored(request)
        content = self._fetched(request, "")
        card = json.loads(self._fetched(request, "/card"))
        if card["content_sha256"] != hashlib.sha256(content).hexdigest():
            raise errors.ServicesRefused("The publisher's card is of another file than it sent.")
        return Artefact(content, MEDIA_TYPE, card)

    def account(self) -> Ledger:
        """Return a ledger in memory with the entries that the service has."""
        path = f"/ledger/{self.data_set}/entries"
        return Ledger.restore(self._client.call("GET", path, None, self._ledger).body)

    def close(self) -> None:
        """Drop the data set; its ledger stays at the service."""
        self._client.call("DELETE", self._path, None, self._admin, known=(404,))
        self._client.close()

    def _send(self, request: ReleaseRequest) -> None:
        """Let a request be charged; a repeated one costs nothing more."""
        cost = request.cost
        message = PublicationMessage(
            publication_id=request.publication_id,
            data_set=request.data_set,
            method=request.method,
            cost=PublicationCost(
                epsilon=cost.epsilon, delta=cost.delta, neighbours=cost.neighbours
            ),
            parameters=dict(request.parameters),
        )
        headers, body = self._publish | _JSON, message.model_dump_json().encode()
        answer = self._client.call("POST", "/publications", body, headers, known=(409,))
        if answer.status == 409:
            raise _refusal(request, answer)

    def _wait_stored(self, request: ReleaseRequest) -> None:
        deadline, pause_s = time.monotonic() + PATIENCE_S, _FIRST_PAUSE_S
        while True:
            state = json.loads(self._fetched(request, "/state"))["state"]
            if state == "stored":
                return
            if state == "failed":
                raise errors.PublicationFailed(
                    "The publication was paid for, and its method failed."
                )
            if state == "charged":  # the service was started again, and its queue is empty
                self._send(request)
            if time.monotonic() > deadline:
                raise errors.ServicesUnavailable(
                    f"The publisher is not done: the state is {state}."
                )
            time.sleep(pause_s)
            pause_s = min(_LONGEST_PAUSE_S, 1.5 * pause_s)

    def _fetched(self, request: ReleaseRequest, end: str) -> bytes:
        path = f"/publications/{request.publication_id}{end}?data_set={self.data_set}"
        return self._client.call("GET", path, None, self._read).body


def takes_experiments(addresses: service_client.ServiceAddresses) -> bool:
    """Say whether the publisher service was started for experiments."""
    client = service_client.ServiceClient(addresses.publisher)
    try:
        headers: Mapping[str, str] = service_client.bearer(
            addresses.admin_token or addresses.token
        )
        answer = client.call("GET", "/data-sets", None, headers)
        return bool(json.loads(answer.body)["experiments"])
    finally:
        client.close()


def _refusal(
    request: ReleaseRequest, answer: service_client.ServiceResponse
) -> errors.NoisefloorError:
    """Return the error that the role would have raised in this process."""
    refusal = json.loads(answer.body)
    if refusal["error"] != "budget-exceeded":
        return errors.ServicesRefused(f"The publisher refused a publication: {refusal['detail']}")
    short = [
        errors.Shortage(one["quantity"], float(one["asked"]), one["left"])
        for one in refusal["short"]
    ]
    return errors.BudgetExceeded(request.data_set, short)
