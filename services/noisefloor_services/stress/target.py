"""What is put under load: services of ours on this machine, which say so themselves."""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from noisefloor.errors import BadParameter
from noisefloor_services.stress.sampler import LagSample

_TIMEOUT_S = 5.0
_OURS = frozenset(("lacks", "durability", "promise"))
"""What the answer of our ``/readyz`` has."""

Json = dict[str, Any]  # what json reads


def check_ready(port: int, name: str) -> None:
    """Raise BadParameter unless a service of ours is ready at a port of the loopback address.

    A server of anybody else is never put under load.
    """
    rule = f"a port at which our {name} answers /readyz"
    try:
        status, found = _get(port, "/readyz", {})
    except (OSError, http.client.HTTPException, ValueError):
        raise BadParameter("target", port, rule) from None
    if not _OURS <= found.keys():
        raise BadParameter("target", port, rule)
    if status != 200:
        raise BadParameter("target", port, f"ready: {' '.join(found['lacks'])}")


@dataclass(frozen=True, slots=True)
class CountingSide:
    """The aggregator's account of the collection that the load goes to.

    Attributes:
        port: Of the aggregator, on the loopback address.
        collection: The name of the collection.
        token: A bearer token of the role read.
    """

    port: int
    collection: str
    token: str

    def account(self) -> Json | None:
        """Return the frames of the collection by what became of them; None if nobody tells."""
        path = f"/collections/{self.collection}/conservation"
        try:
            status, found = _get(self.port, path, {"Authorization": f"Bearer {self.token}"})
        except (OSError, http.client.HTTPException, ValueError):
            return None
        return found if status == 200 else None

    def lag(self) -> LagSample | None:
        """Return how much waits; None if nobody tells."""
        found = self.account()
        return None if found is None else LagSample(found["accepted"], found["pending"])


def _get(port: int, path: str, headers: Mapping[str, str]) -> tuple[int, Json]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path, headers=dict(headers))
        answer = connection.getresponse()
        found = json.loads(answer.read())
    finally:
        connection.close()
    if not isinstance(found, dict):
        raise ValueError
    return answer.status, found
