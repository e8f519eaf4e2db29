"""What ``noisefloor statistics`` does, behind the command line: close an epoch, read its batch."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noisefloor.errors import BadParameter
from noisefloor_sim.deploy import (
    Deployment,
    NotRunning,
    ServiceClient,
    ServiceResponse,
    bearer,
    running,
)

NOTHING_RUNS = 2
PATIENCE_S = 20.0
"""How long to try again: closing waits for frames that were taken and are not counted yet."""

_REFUSED = tuple(range(400, 500))
_MOST_TOKEN_BYTES = 4096
_SHOWN = ("mechanism", "epsilon", "delta", "neighbours", "sensitivity", "rows", "threshold")
_MOST_SHOWN = 20
"""Cells or rows that are printed; --json and --out have all."""


@dataclass(frozen=True, slots=True)
class AggregatorAccess:
    """Which aggregator is called, and with whose token.

    Attributes:
        folder: Of services on this machine.
        address: Of an aggregator elsewhere, instead.
        token_file: Holds the token for that address.
        collection: The name of a collection beside the first; empty for the first.
    """

    folder: Path
    address: str | None = None
    token_file: Path | None = None
    collection: str = ""

    @contextmanager
    def opened(self, role: str) -> Iterator[tuple[ServiceClient, dict[str, str]]]:
        """Open a connection, and return it with the header of a token."""
        prefix = f"/collections/{self.collection}" if self.collection else ""
        if self.address is None:
            if self.token_file is not None:
                raise BadParameter("token-file", "<file>", "together with --address")
            topology: Deployment = running(self.folder)
            url, token = topology.url("aggregator"), topology.token(role)
        else:
            url, token = self.address, self._token()
        with closing(ServiceClient(url, prefix, patience_s=PATIENCE_S)) as client:
            yield client, bearer(token)

    def _token(self) -> str:
        """Return the one token of the file, which nobody else may read."""
        if self.token_file is None:
            raise BadParameter("address", "<url>", "together with --token-file")
        try:
            state = self.token_file.stat()
            if state.st_mode & 0o077:
                rule = "a file that nobody else may read: chmod go-rwx"
                raise BadParameter("token-file", str(self.token_file), rule)
            if state.st_size > _MOST_TOKEN_BYTES:
                raise BadParameter("token-file", str(self.token_file), "a file of one token")
            words = self.token_file.read_text(encoding="ascii").split()
        except (OSError, UnicodeDecodeError):
            rule = "a file that can be read as ASCII"
            raise BadParameter("token-file", str(self.token_file), rule) from None
        if len(words) != 1:
            raise BadParameter("token-file", str(self.token_file), "a file of one token")
        return words[0]


def close(access: AggregatorAccess, kind: str, epoch: int, *, as_json: bool) -> int:
    """Close an epoch, once or again, and say whether it can be read."""
    answer = _called(access, "admin", "POST", f"/epochs/{kind}/{epoch}/close", b"")
    if answer is None:
        return NOTHING_RUNS
    if answer.status >= 400:
        return _refused(answer)
    status = json.loads(answer.body)
    if as_json:
        print(json.dumps(status, indent=2))
    elif status["is_readable"]:
        print(f"{kind} {epoch}: closed with {status['rows']:,} reports; it can be read")
    else:
        print(
            f"{kind} {epoch}: closed, and nothing can be read of it: it was retired, or it has "
            f"fewer reports than the minimum of {status['minimum']:,}. Read a later epoch, or "
            "close epochs less often"
        )
    return 0


def read(
    access: AggregatorAccess, kind: str, epoch: int, *, as_json: bool, out: Path | None
) -> int:
    """Read the batch of a closed epoch: print it, or write the answer's own bytes to a file."""
    if out is not None and not out.absolute().parent.is_dir():
        raise BadParameter("out", str(out), "in a folder that exists")
    answer = _called(access, "read", "GET", f"/statistics/{kind}/{epoch}", None)
    if answer is None:
        return NOTHING_RUNS
    if answer.status >= 400:
        return _refused(answer)
    if out is not None:
        _write(out, answer.body)
    shown = _read_answer(kind, epoch, answer.body)
    if as_json:
        print(json.dumps(shown, indent=2))
    elif out is not None:
        print(f"{kind} {epoch}: {shown['parameters']['rows']:,} reports in {out}")
    else:
        _print(kind, epoch, shown)
    return 0


def _called(
    access: AggregatorAccess, role: str, method: str, path: str, body: bytes | None
) -> ServiceResponse | None:
    """Return the aggregator's answer; None if nothing runs, which is said."""
    try:
        with access.opened(role) as (client, headers):
            return client.call(method, path, body, headers, known=_REFUSED)
    except NotRunning as error:
        sys.stderr.write(f"noisefloor: {error}\n")
        return None


def _refused(answer: ServiceResponse) -> int:
    """Say in one line what was refused, and return the exit code."""
    try:
        detail = json.loads(answer.body)["detail"]
    except (ValueError, KeyError, TypeError):
        detail = "no reason was given."
    if not isinstance(detail, str):  # faults of the input: where, and which rule
        detail = "; ".join(f"{one['where']}: {one['rule']}" for one in detail)
    sys.stderr.write(f"noisefloor: the aggregator refused ({answer.status}): {detail}\n")
    return 2 if answer.status == 422 else 1


def _read_answer(kind: str, epoch: int, body: bytes) -> dict[str, Any]:  # Any: JSON
    """Return an answer as plain data: sums as they came, collected rows by column."""
    if body[:1] == b"{":
        found: dict[str, Any] = json.loads(body)
        return found
    import pyarrow as pa  # lazy: sums need none of it

    from noisefloor.roles import read_parameters

    with pa.ipc.open_stream(body) as reader:
        batch = reader.read_next_batch()
    columns = {
        name: [one.hex() if isinstance(one, bytes) else one for one in values]
        for name, values in batch.to_pydict().items()
    }
    parameters = read_parameters(batch.schema)
    return {"kind": kind, "epoch": epoch, "parameters": parameters, "columns": columns}


def _print(kind: str, epoch: int, shown: dict[str, Any]) -> None:  # Any: JSON
    parameters = shown["parameters"]
    print(f"{kind} {epoch}")
    for name in _SHOWN:
        value = parameters[name]
        print(f"  {name}: {'not stated' if value is None else value}")
    if parameters["reason"]:
        print(f"  because {parameters['reason']}")
    listed = shown["columns"] if "columns" in shown else {"cells": shown["cells"]}
    for name, values in listed.items():
        more = f" ... ({len(values):,} in all: --json)" if len(values) > _MOST_SHOWN else ""
        print(f"  {name}: {' '.join(map(str, values[:_MOST_SHOWN]))}{more}")


def _write(out: Path, content: bytes) -> None:
    """Write a file in one step; half of one is never left."""
    fresh = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        fresh.write_bytes(content)
        fresh.replace(out)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise BadParameter("out", str(out), "a file that can be written") from None
