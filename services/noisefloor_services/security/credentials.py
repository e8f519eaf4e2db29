"""Bearer tokens with roles: read from the environment or a file, kept as hashes.

A token is as good as a key: at least 32 characters that cannot be guessed. In memory there are
keyed hashes only, under a key that each process draws, so that neither a dump nor a traceback
holds a token. A presented token is compared with every hash there is, in constant time each.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from noisefloor.errors import NoisefloorError

LEAST_TOKEN_SIGNS = 32
MOST_TOKEN_SIGNS = 512
MOST_CREDENTIALS = 1000

_TOKEN = re.compile(rf"[A-Za-z0-9._~+/=-]{{{LEAST_TOKEN_SIGNS},{MOST_TOKEN_SIGNS}}}", re.ASCII)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}", re.ASCII)


class Role(Enum):
    """What a credential may do; none includes another."""

    ADMIN = "admin"
    LEDGER = "ledger"
    PUBLISH = "publish"
    READ = "read"


class BadCredentials(NoisefloorError):
    """The list of credentials breaks a rule; the text names the line, never a token."""


@dataclass(frozen=True, slots=True)
class Credential:
    """Who presented a token, by the name in the list, and what that may do."""

    name: str
    roles: frozenset[Role]


class Credentials:
    """Every token that is accepted, as keyed hashes.

    Args:
        lines: One credential each: name, roles with commas between, token; blanks between. Empty
            lines and those that begin with # are left out.
    """

    __slots__ = ("_hashes", "_key")

    def __init__(self, lines: Iterable[str]) -> None:
        self._key = secrets.token_bytes(32)
        self._hashes: list[tuple[bytes, Credential]] = []
        for number, line in enumerate(lines, start=1):
            if line.strip() and not line.lstrip().startswith("#"):
                self._add(number, line.split())
        names = {credential.name for _, credential in self._hashes}
        if len(names) < len(self._hashes) or len({made for made, _ in self._hashes}) < len(names):
            raise BadCredentials("Credentials: a name or a token stands there twice.")
        if len(names) > MOST_CREDENTIALS:
            raise BadCredentials(f"Credentials: at most {MOST_CREDENTIALS}.")

    def __len__(self) -> int:
        return len(self._hashes)

    def __repr__(self) -> str:
        return f"Credentials(<{len(self)} credentials>)"

    def find(self, token: str) -> Credential | None:
        """Return whose token it is, or None; the time does not depend on how near a guess was."""
        presented = self._hash(token)
        found = None
        for known, credential in self._hashes:  # to the end: no place in the list is quicker
            if hmac.compare_digest(known, presented):
                found = credential
        return found

    def check_absent(self, arguments: Sequence[str]) -> None:
        """Refuse a command line that holds a token: every user of the machine can read it."""
        words = (word for argument in arguments for word in re.split(r"[\s=,;]+", argument))
        if any(self.find(word) for word in (*arguments, *words)):
            raise BadCredentials("A token stands on the command line: use a file or a variable.")

    def _add(self, number: int, parts: list[str]) -> None:
        if len(parts) != 3:
            _refuse(number, "expected a name, roles and a token")
        name, roles, token = parts
        if not _NAME.fullmatch(name):
            _refuse(number, f"the name has to match {_NAME.pattern}")
        if not _TOKEN.fullmatch(token):
            _refuse(number, f"the token has to match {_TOKEN.pattern}")
        try:
            granted = frozenset(Role(role) for role in roles.split(","))
        except ValueError:
            _refuse(number, f"the roles are {', '.join(role.value for role in Role)}")
        self._hashes.append((self._hash(token), Credential(name, granted)))

    def _hash(self, token: str) -> bytes:
        # Tokens are long and random, so a quick hash is enough. Overlong ones are cut, not hashed
        # at leisure: none that long is in the list.
        presented = token[: MOST_TOKEN_SIGNS + 1].encode(errors="replace")
        return hashlib.blake2b(presented, key=self._key, digest_size=32).digest()


def new_token() -> str:
    """Return a random token: 256 bits of the operating system."""
    return secrets.token_urlsafe(32)


def _refuse(number: int, rule: str) -> NoReturn:
    raise BadCredentials(f"Credentials, line {number}: {rule}.")
