"""Requests as bytes, with a hole for the batch id where they have one, in a file.

The file is made before the load by whoever has the frames: a line a request, each a JSON object.
Requests of one class stand together, in the order of the classes.
"""

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from noisefloor.errors import BadParameter

MARK = "00112233445566778899aabbccddeeff"
"""What stands for the batch id in the body of a template."""


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """One request, all but its batch id.

    Attributes:
        kind: The class of requests that it belongs to: ``frames``, ``reports``, ``requests``.
        rows: Reports in it.
        before: The bytes before the batch id; all of them where there is none.
        behind: The bytes behind it; empty where there is none.
    """

    kind: str
    rows: int
    before: bytes
    behind: bytes = b""

    def written(self, batch_id: bytes) -> bytes:
        """Return the request with a batch id."""
        return b"".join((self.before, batch_id, self.behind)) if self.behind else self.before


def request_template(
    kind: str, rows: int, path: str, media_type: str, body: bytes
) -> RequestTemplate:
    """Write a request around a body; ``MARK`` in the body is where the batch id goes."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {media_type}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    before, _, behind = body.partition(MARK.encode())
    return RequestTemplate(kind, rows, head.encode() + before, behind)


def read_templates(path: Path, kinds: Sequence[str]) -> tuple[RequestTemplate, ...]:
    """Read the requests of a file, class by class.

    Raises:
        BadParameter: The file cannot be read, or has requests of another class.
    """
    try:
        lines = path.read_text(encoding="ascii").splitlines()
        rows = [json.loads(line) for line in lines]
        found = [
            request_template(
                row["class"], row["rows"], row["path"], row["type"], base64.b64decode(row["body"])
            )
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError):
        raise BadParameter("requests", str(path), "a file of requests") from None
    if not {one.kind for one in found} <= set(kinds):
        raise BadParameter("requests", str(path), f"of the classes {', '.join(kinds)}")
    return tuple(sorted(found, key=lambda one: kinds.index(one.kind)))


def counted(templates: Iterable[RequestTemplate], kinds: Sequence[str]) -> tuple[int, ...]:
    """Return how many requests there are of each class."""
    listed = [one.kind for one in templates]
    return tuple(listed.count(kind) for kind in kinds)
