"""Bearer tokens of a topology: one a role, drawn once, in a file that is its owner's alone."""

import secrets
from pathlib import Path

from noisefloor.errors import BadParameter
from noisefloor_sim.topology.errors import BadState
from noisefloor_sim.topology.places import write_secret

ROLES = ("admin", "ledger", "publish", "read")


def keep_tokens(path: Path) -> None:
    """Write a token for each role, unless that was done before: name, role, token a line."""
    if not path.exists():
        lines = (f"{role} {role} {secrets.token_urlsafe(32)}\n" for role in ROLES)
        write_secret(path, "".join(lines))


def read_token(path: Path, role: str) -> str:
    """Return the token of a role."""
    if role not in ROLES:
        raise BadParameter("role", role, f"one of {', '.join(ROLES)}")
    try:
        lines = [line.split() for line in path.read_text(encoding="ascii").splitlines()]
    except (OSError, UnicodeDecodeError):
        raise BadState(f"{path}: the tokens cannot be read.") from None
    found = [line[2] for line in lines if len(line) == 3 and role in line[1].split(",")]
    if not found:
        raise BadState(f"{path}: no token has the role {role}.")
    return found[0]
