"""The scripts: each is one atomic step on one partition.

They are called by digest. A server that was restarted has lost its scripts and answers NOSCRIPT;
the caller loads them again and repeats the call, which had no effect.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

Word = str | bytes | int
Command = tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """One script and the digest by which the server knows it."""

    text: str
    digest: str

    def command(self, keys: Sequence[str], arguments: Sequence[Word]) -> Command:
        """Return the command that runs it."""
        return ("EVALSHA", self.digest, len(keys), *keys, *arguments)


_HEAD, _FREES = "#!lua", "#!lua flags=allow-oom"
"""Where memory is full, producers are refused. Workers are not: what they settle frees memory."""


def _read(*names: str, head: str = _FREES) -> Script:
    folder = files("noisefloor_services.store") / "lua"
    parts = [(folder / f"{name}.lua").read_text(encoding="utf-8") for name in names]
    text = "\n".join([head, *parts])
    # Redis names scripts by SHA-1; nothing is protected by it.
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


APPEND = _read("window", "append", head=_HEAD)
APPLY = _read("window", "cells", "apply")
BURY = _read("bury")
CLOSE = _read("window", "close")
RETIRE = _read("window", "retire")
CLAIM = _read("claim")
LEAVE = _read("leave")
ACCOUNT = _read("account")
REPLACE = _read("replace")
EMPTY = _read("empty")
FREEZE = _read("freeze")
REGISTER = _read("register", head=_HEAD)

ALL = (APPEND, APPLY, BURY, CLOSE, RETIRE, CLAIM, LEAVE, ACCOUNT, REPLACE, EMPTY, FREEZE, REGISTER)
