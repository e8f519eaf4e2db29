"""The secrets of a topology in containers, made once: tokens, users of the stores, addresses.

Every service gets what it needs and nothing of the others: its own tokens, and the address of its
store with the password of its own user. A store gets its users, with passwords as hashes, and the
password of the one that looks after its health.
"""

import secrets
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from noisefloor.errors import NoisefloorError
from noisefloor_services.security.acl import store_users, write_acl_file
from noisefloor_services.security.credentials import Role, new_token

STORES = ("store", "ledger-store")
"""Names of their hosts."""

_PORT = 6379
_MONITOR = "monitor"
_ADDRESSES = {
    "ad-server": ("store", "ad-server"),
    "aggregator": ("store", "aggregator"),
    "model-publisher": ("ledger-store", "publisher"),
}
"""By service: its store, and its user there."""

_ROLES = {
    "ad-server": (Role.ADMIN, Role.READ),
    "aggregator": (Role.ADMIN, Role.READ),
    "model-publisher": (Role.PUBLISH, Role.LEDGER, Role.READ),
}
_FILE_MODE = 0o444
"""The folder keeps others out. A container sees one file, with the mode that it has outside, and
runs as another user than the one who made it."""


class SecretsExist(NoisefloorError):
    """There are secrets already, which are never written over."""


def make_secrets(
    folder: Path, *, namespace: str = "noisefloor", has_report_tokens: bool = False
) -> tuple[str, ...]:
    """Make a folder that only its owner can enter, with all secrets; return the files' names.

    Args:
        folder: Where; there may be nothing there yet.
        namespace: First part of every key in the stores.
        has_report_tokens: Whether the ad server spends one-use tokens of reports.
    """
    if folder.exists():
        raise SecretsExist(f"{folder} is there already: remove it, or name another folder.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Made beside it, and moved as a whole: there are all files, or none.
    fresh = Path(tempfile.mkdtemp(prefix=".secrets-", dir=folder.parent))
    try:
        passwords = {
            store: _write_users(fresh, store, namespace, has_report_tokens=has_report_tokens)
            for store in STORES
        }
        for service, (store, user) in _ADDRESSES.items():
            url = f"redis://{user}:{passwords[store][user]}@{store}:{_PORT}/0"
            _write(fresh / f"{service}.redis-url", url)
        for service, roles in _ROLES.items():
            lines = (f"{role.value} {role.value} {new_token()}" for role in roles)
            _write(fresh / f"{service}.tokens", "\n".join(lines))
        fresh.rename(folder)
    except BaseException:
        shutil.rmtree(fresh)
        raise
    return tuple(sorted(path.name for path in folder.iterdir()))


def _write_users(
    folder: Path, store: str, namespace: str, *, has_report_tokens: bool
) -> Mapping[str, str]:
    """Write the users of a store, and return their passwords."""
    listed = store_users(namespace, has_report_tokens=has_report_tokens)
    passwords = {user.name: secrets.token_urlsafe(32) for user in listed}
    path = folder / f"{store}.acl"
    write_acl_file(path, passwords, namespace=namespace, has_report_tokens=has_report_tokens)
    path.chmod(_FILE_MODE)
    _write(folder / f"{store}.{_MONITOR}", passwords[_MONITOR])
    return passwords


def _write(path: Path, text: str) -> None:
    path.write_text(text + "\n", encoding="ascii")
    path.chmod(_FILE_MODE)
