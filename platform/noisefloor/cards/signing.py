"""Ed25519 keys in files: the secret one for the publisher, the public one for recipients.

Both files are one line of text: what it is, the key in base64, and the publisher's name. A secret
key is read from a file that only its owner can read, and from nowhere else: an environment is
shown by process listings, crash reports and container inspection, and is inherited by children.
"""

import base64
import binascii
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from noisefloor.errors import BadKey, BadParameter

KEY_BYTES = 32
SIGNATURE_BYTES = 64

_SECRET, _PUBLIC = "noisefloor-signing-key-1", "noisefloor-key-1"
_MOST_FILE_BYTES = 1 << 16
_NAME = re.compile(r"[!-~]([ -~]{0,98}[!-~])?", re.ASCII)
_LINE = re.compile(r"(\S+) (\S+) (.*)", re.ASCII)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class PublicKey:
    """What a recipient needs to check a publisher's cards.

    Attributes:
        content: The key, 32 bytes.
        name: The publisher's, as the key file says it.
    """

    content: bytes
    name: str

    def __post_init__(self) -> None:
        if len(self.content) != KEY_BYTES:
            raise BadParameter("content", "<key>", f"{KEY_BYTES} bytes")
        check_name(self.name)

    @property
    def id(self) -> str:
        """The beginning of the key's hash, by which a card names it."""
        return hashlib.sha256(self.content).hexdigest()[:32]

    @property
    def line(self) -> str:
        """The key as a line of a file."""
        return _line(_PUBLIC, self.content, self.name)

    @classmethod
    def parse(cls, line: str) -> "PublicKey":
        """Read what ``line`` wrote, or raise BadKey."""
        return cls(*_parsed(line, _PUBLIC, "Public key"))

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Tell whether this key's owner signed the message."""
        from cryptography.exceptions import InvalidSignature  # lazy: most programs check no card
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.content).verify(signature, message)
        except (InvalidSignature, ValueError):  # ValueError: no point of the curve
            return False
        return True


@dataclass(frozen=True, slots=True)
class SigningKey:
    """What a publisher signs with; it is never shown.

    Attributes:
        seed: The secret, 32 bytes.
        name: The publisher's, which is on every card.
    """

    seed: bytes = field(repr=False)
    name: str

    def __post_init__(self) -> None:
        if len(self.seed) != KEY_BYTES:
            raise BadParameter("seed", "<secret>", f"{KEY_BYTES} bytes")
        check_name(self.name)

    @classmethod
    def create(cls, path: Path, name: str) -> "SigningKey":
        """Make a key: its file, which only its owner can read, and ``PATH.pub`` beside it.

        Raises:
            BadKey: There is a file already; a key is never written over.
        """
        key = cls(secrets.token_bytes(KEY_BYTES), name)
        public = public_path(path)
        for one in (path, public):
            if os.path.lexists(one):
                raise BadKey(f"{one}: is there already; a key is never written over.")
        _write(path, _line(_SECRET, key.seed, name), 0o600)
        _write(public, key.public.line, 0o644)
        return key

    @classmethod
    def read(cls, path: Path) -> "SigningKey":
        """Read a key from a file that nobody but its owner can read, or raise BadKey."""
        return cls(*_parsed(_private_text(path), _SECRET, f"{path}"))

    @property
    def public(self) -> PublicKey:
        """The key for recipients."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        key = Ed25519PrivateKey.from_private_bytes(self.seed)
        return PublicKey(key.public_key().public_bytes_raw(), self.name)

    def sign(self, message: bytes) -> bytes:
        """Sign; the same message gets the same signature."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.seed).sign(message)


TrustedKeys: TypeAlias = str | Path | Iterable[PublicKey]
"""Keys that a recipient trusts, or the file that holds them."""


def read_keys(path: str | Path) -> tuple[PublicKey, ...]:
    """Read a file of public keys, one a line; blank lines and lines with # are passed over."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(_MOST_FILE_BYTES + 1).decode("ascii")
    except (OSError, UnicodeDecodeError):
        raise BadKey(f"{path}: cannot be read as a file of public keys.") from None
    lines = [line for line in map(str.strip, text.splitlines()) if line and line[0] != "#"]
    if not lines or len(text) > _MOST_FILE_BYTES:
        rule = f"at least one, and at most {_MOST_FILE_BYTES} bytes"
        raise BadKey(f"{path}: expected lines that begin with {_PUBLIC}, {rule}.")
    return tuple(PublicKey(*_parsed(line, _PUBLIC, f"{path}")) for line in lines)


def trusted_keys(keys: TrustedKeys) -> dict[str, PublicKey]:
    """Return the keys by their ids."""
    listed = read_keys(keys) if isinstance(keys, str | Path) else keys
    return {key.id: key for key in listed}


def public_path(path: Path) -> Path:
    """Return where the public key of a key file is."""
    return path.with_name(f"{path.name}.pub")


def check_name(name: str) -> str:
    """Return the name of a publisher, or say which rule it breaks."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadParameter(
            "name", "<text>", "1 to 100 printable signs of ASCII, no blank at an end"
        )
    return name


def _line(kind: str, content: bytes, name: str) -> str:
    return f"{kind} {base64.b64encode(content).decode('ascii')} {name}\n"


def _parsed(text: str, kind: str, where: str) -> tuple[bytes, str]:
    found = _LINE.fullmatch(text.strip())
    try:
        if found is None or found[1] != kind:
            raise ValueError
        content = base64.b64decode(found[2], validate=True)
        if len(content) != KEY_BYTES or base64.b64encode(content).decode("ascii") != found[2]:
            raise ValueError
        return content, check_name(found[3])
    except (ValueError, binascii.Error):
        rule = f"expected one line '{kind} KEY NAME', with a key of {KEY_BYTES} bytes in base64"
        raise BadKey(f"{where}: {rule}.") from None


def _private_text(path: Path) -> str:
    """Return the text of a regular file that nobody but its owner can read."""
    try:
        # Not followed, and checked on what was opened: no link and no exchange in between.
        place = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if os.path.islink(path):
            raise BadKey(f"{path}: is a link; name the key file itself.") from None
        raise BadKey(f"{path}: cannot be read ({error.strerror}).") from None
    try:
        state = os.fstat(place)
        if not stat.S_ISREG(state.st_mode):
            raise BadKey(f"{path}: is no regular file; name the key file itself.")
        if state.st_mode & _OTHERS:
            raise BadKey(f"{path}: others than its owner may read or change it: chmod 600.")
        return os.read(place, _MOST_FILE_BYTES).decode("ascii")
    except UnicodeDecodeError:
        raise BadKey(f"{path}: is no signing key; expected a line of ASCII.") from None
    finally:
        os.close(place)


def _write(path: Path, line: str, mode: int) -> None:
    """Write a new file, on disk before this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        place = os.open(path, flags, mode)
    except OSError as error:
        raise BadKey(f"{path}: cannot be written ({error.strerror}).") from None
    with os.fdopen(place, "wb") as file:
        file.write(line.encode("ascii"))
        file.flush()
        os.fsync(place)
