"""Where the files of a topology lie: everything is in one folder.

Bearer tokens of a topology: one a role, drawn once, in a file that is its owner's alone.
"""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from noisefloor.cards import SigningKey
from noisefloor.errors import BadParameter
from noisefloor_sim.deploy.errors import BadState, FolderBusy

LEAST_BYTES = 4 << 20
"""What has to be free on the disk for a start."""


@dataclass(frozen=True, slots=True)
class DeploymentPaths:
    """The files of the topology in a folder.

    Attributes:
        folder: An absolute path.
    """

    folder: Path

    @classmethod
    def of(cls, folder: Path) -> "DeploymentPaths":
        """Return the files of a folder, however it is named."""
        return cls(folder.resolve())

    @property
    def state(self) -> Path:
        """What runs; no secret is in it."""
        return self.folder / "topology.json"

    @property
    def tokens(self) -> Path:
        """A bearer token for each role; its owner's alone."""
        return self.folder / "tokens"

    @property
    def signing_key(self) -> Path:
        """The key that signs cards; its owner's alone. The public key is beside it."""
        return self.folder / "signing.key"

    @property
    def ledgers(self) -> Path:
        """Where ledgers were made, an address a line: none is ever made twice."""
        return self.folder / "ledgers"

    @property
    def anchors(self) -> Path:
        """Where the anchors of ledgers are, by address; they are not in the folder themselves."""
        return self.folder / "anchors.json"

    def data(self, name: str) -> Path:
        """Return the data folder of a store."""
        return self.folder / name

    def log(self, name: str) -> Path:
        """Return the log of a process."""
        return self.folder / "logs" / f"{name}.log"

    def pid(self, name: str) -> Path:
        """Return the file with a process's number."""
        return self.folder / "run" / f"{name}.pid"

    def exit_code(self, name: str) -> Path:
        """Return the file with the exit code of a process that has ended."""
        return self.folder / "run" / f"{name}.exit"

    def make(self) -> None:
        """Make the folders: nothing in them is for others, or for a repository."""
        try:
            is_new = not self.folder.exists()
            for folder in (self.folder, self.folder / "logs", self.folder / "run"):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if is_new:
                (self.folder / ".gitignore").write_text("*\n", encoding="ascii")
            _check_room(self.folder)
        except OSError as error:
            rule = f"a folder that can be written ({error.strerror})"
            raise BadParameter("folder", str(self.folder), rule) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep everybody else from starting or stopping anything here, or raise FolderBusy."""
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FolderBusy(
                    f"{self.folder}: somebody else starts or stops the services here just now."
                ) from None
            yield
        finally:
            os.close(handle)


def _check_room(folder: Path) -> None:
    """Write and drop some megabytes: on a full disk no process could so much as say why."""
    with TemporaryFile(dir=folder, buffering=0) as file:
        left = LEAST_BYTES
        while left:
            left -= file.write(bytes(left))


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner can read, in one step."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


ROLES = ("admin", "ledger", "publish", "read")


def write_tokens(path: Path) -> None:
    """Write a token for each role, unless that was done before: name, role, token a line."""
    if not path.exists():
        lines = (f"{role} {role} {secrets.token_urlsafe(32)}\n" for role in ROLES)
        write_secret(path, "".join(lines))


def make_signing_key(path: Path) -> None:
    """Make a key for cards, unless that was done before."""
    if not path.exists():
        SigningKey.create(path, "noisefloor up")


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
