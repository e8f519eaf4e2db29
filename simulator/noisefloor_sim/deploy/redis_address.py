"""Addresses of Redis servers: checked before anything is started, asked whether they answer.

An address may hold a password. It is never shown, and stands on no command line.
"""

import socket
import ssl
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from noisefloor.errors import BadParameter

TIMEOUT_S = 2.0
_PORT = 6379
_TROUBLES = {
    b"-NOAUTH": "it wants a password",
    b"-WRONGPASS": "it refuses the user or the password",
    b"-ERR AUTH": "it refuses the password",
    b"-LOADING": "it is still loading its data",
}


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """The address of a server in its parts.

    Attributes:
        scheme: ``redis``, ``rediss`` (TLS) or ``unix``.
        host: Name or address; for ``unix`` the socket's path.
        port: Its port.
        database: Its number, as text.
        login: User and password, or the password alone, or nothing.
    """

    scheme: str
    host: str
    port: int
    database: str
    login: tuple[str, ...]

    @classmethod
    def read(cls, url: str) -> "RedisAddress":
        """Take an address apart, or raise BadParameter, which does not show it."""
        try:
            parts = urlsplit(url)
            port = parts.port or _PORT
        except ValueError:
            raise _refused("to have a port in [1, 65535]") from None
        if parts.scheme not in ("redis", "rediss", "unix"):
            raise _refused("to begin with redis://, rediss:// or unix://")
        is_unix = parts.scheme == "unix"
        host = unquote(parts.path) if is_unix else parts.hostname
        if not host:
            raise _refused("to name a socket" if is_unix else "to name a host")
        database = parse_qs(parts.query).get("db", ["0"])[0] if is_unix else parts.path.strip("/")
        if database and not database.isdecimal():
            raise _refused("to name a database by its number")
        return cls(parts.scheme, host, port, database or "0", _login(parts))

    def __str__(self) -> str:
        if self.scheme == "unix":
            return f"unix://{self.host}?db={self.database}"
        return f"{self.scheme}://{self.host}:{self.port}/{self.database}"

    def trouble(self) -> str:
        """Say why the server cannot be used, or nothing if it answers."""
        try:
            with self._connected() as connection:
                commands = [("AUTH", *self.login)] if self.login else []
                for command in (*commands, ("PING",)):
                    connection.sendall(_packed(command))
                    answer = _line(connection)
                    if not answer.startswith(b"+"):
                        return _trouble(answer)
        except TimeoutError:
            return "it does not answer in time"
        except ssl.SSLError:
            return "it does not speak TLS as it should"
        except OSError:
            return "nobody listens there"
        return ""

    def _connected(self) -> socket.socket:
        if self.scheme == "unix":
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            made.settimeout(TIMEOUT_S)
            try:
                made.connect(self.host)
            except BaseException:
                made.close()
                raise
            return made
        made = socket.create_connection((self.host, self.port), TIMEOUT_S)
        if self.scheme == "rediss":
            return ssl.create_default_context().wrap_socket(made, server_hostname=self.host)
        return made


def _login(parts: SplitResult) -> tuple[str, ...]:
    if parts.password is None:
        return ()
    named = (unquote(parts.username),) if parts.username else ()
    return (*named, unquote(parts.password))


def _packed(words: tuple[str, ...]) -> bytes:
    """Write a command as the protocol wants it."""
    coded = [word.encode() for word in words]
    lines = (b"$%d\r\n%s\r\n" % (len(word), word) for word in coded)
    return b"".join((b"*%d\r\n" % len(coded), *lines))


def _line(connection: socket.socket) -> bytes:
    """Read one line, of at most some hundred bytes."""
    found = b""
    while not found.endswith(b"\r\n") and len(found) < 512:
        more = connection.recv(512)
        if not more:
            break
        found += more
    return found


def _trouble(answer: bytes) -> str:
    for start, text in _TROUBLES.items():
        if answer.startswith(start):
            return text
    return "it answers with an error" if answer.startswith(b"-") else "it does not speak Redis"


def _refused(rule: str) -> BadParameter:
    return BadParameter("redis", "<hidden>", rule)
