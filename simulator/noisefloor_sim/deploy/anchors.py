"""Where the anchor of a topology's ledger is: outside of the folder that backups restore.

The anchor says how much was spent at least (``docs/publishing.md``). In the state folder it would
be set back together with the ledger, and nobody would notice. The folder notes where it is, so
that a restored or moved folder finds the same one.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from noisefloor_sim.deploy.errors import BadState
from noisefloor_sim.deploy.paths import DeploymentPaths, write_secret

VARIABLE = "NOISEFLOOR_LEDGER_ANCHOR"


def anchor_of(
    paths: DeploymentPaths,
    redis: str,
    given: Path | None,
    environment: Mapping[str, str] = os.environ,
) -> Path | None:
    """Return the anchor of the ledger at an address; None if there is no place for one.

    What is given comes first, then the variable, what the folder has noted, and the default.
    """
    named = given or environment.get(VARIABLE) or noted(paths).get(redis)
    if named:
        return Path(named).resolve()
    folder = default_folder(environment)
    if folder is None:
        return None
    digest = hashlib.blake2b(f"{paths.folder}\n{redis}".encode(), digest_size=8).hexdigest()
    return folder / f"{paths.folder.name.lstrip('.')}-{digest}"


def default_folder(environment: Mapping[str, str]) -> Path | None:
    """Return the folder of anchors of this user, made if need be; None if it cannot be."""
    state = environment.get("XDG_STATE_HOME") or ""
    home = environment.get("HOME") or ""
    if not Path(state).is_absolute() and not Path(home).is_absolute():
        return None
    base = Path(state) if Path(state).is_absolute() else Path(home) / ".local" / "state"
    folder = base / "noisefloor" / "anchors"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def noted(paths: DeploymentPaths) -> dict[str, str]:
    """Return where anchors are, by the address of the ledger, as earlier starts noted it."""
    try:
        found = json.loads(paths.anchors.read_text(encoding="utf-8"))
        return {str(redis): str(path) for redis, path in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError):
        raise BadState(f"{paths.anchors}: cannot be read; it says where anchors are.") from None


def note(paths: DeploymentPaths, redis: str, anchor: Path) -> None:
    """Write down where the anchor is."""
    write_secret(paths.anchors, json.dumps({**noted(paths), redis: str(anchor)}) + "\n")


def anchor_warning(paths: DeploymentPaths, anchor: Path | None) -> str:
    """Say what an anchor does not protect from, where it does not; nothing if all is well."""
    if anchor is None:
        return (
            "no anchor: there is no home folder for it. A state folder that is restored from a "
            "backup gives budget that was spent; name a file outside of it by --anchor."
        )
    if anchor.is_relative_to(paths.folder):
        return (
            f"{anchor}: the anchor is inside the state folder and is restored together with it, "
            "so that spent budget comes back unnoticed; name a file outside of it by --anchor."
        )
    return ""
