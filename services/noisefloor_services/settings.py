"""Settings of a service: read once from the environment into a frozen value.

Every variable begins with NOISEFLOOR_. An error names the variable and the rule and never the
value, which may be a secret. A name that is not known is refused: a misspelt limit is no limit.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from noisefloor.errors import NoisefloorError
from noisefloor.privacy import Neighbours
from noisefloor_services.security import BadCredentials, Credentials

PREFIX = "NOISEFLOOR_"
OF_OTHERS = frozenset(
    {
        "NOISEFLOOR_BACKBONE",
        "NOISEFLOOR_BUS",
        "NOISEFLOOR_DATA",
        "NOISEFLOOR_PROFILE",
        "NOISEFLOOR_LANGUAGE_MODEL",
        "NOISEFLOOR_PUBLIC_TEXTS",
    }
)
"""Variables of the rest of the project, which a service leaves alone."""

TOKENS, REDIS_URL = "NOISEFLOOR_TOKENS", "NOISEFLOOR_REDIS_URL"
SIGNING_KEY_FILE = "NOISEFLOOR_SIGNING_KEY_FILE"
_SECRETS = (TOKENS, REDIS_URL)
"""May stand in a file, which the same name with _FILE at its end names."""

_REFUSED = {
    "NOISEFLOOR_SIGNING_KEY": (
        "is refused: what stands in a variable is no secret. Name its file by "
        f"{SIGNING_KEY_FILE}, and make another key"
    )
}
"""What somebody may try, and has to be told why not."""

_MOST_FILE_BYTES = 1 << 20
_HOST = re.compile(r"[A-Za-z0-9.:-]{1,253}", re.ASCII)


class BadSetting(NoisefloorError):
    """A variable breaks its rule.

    Args:
        variable: Its name.
        rule: What it has to be, read after the name: ``has to be a port``.
    """

    def __init__(self, variable: str, rule: str) -> None:
        super().__init__(f"{variable} {rule}.")
        self.variable = variable
        self.rule = rule

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.variable, self.rule)


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text, re.ASCII) or not least <= int(text) <= most:
            raise ValueError(f"has to be a whole number in [{least}, {most}]")
        return int(text)

    return read


def _real(least: float, most: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        rule = f"has to be a number in [{least:g}, {most:g}]"
        if not re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,24})?(e-?[0-9]{1,2})?", text, re.ASCII):
            raise ValueError(rule)
        if not least <= float(text) <= most:
            raise ValueError(rule)
        return float(text)

    return read


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"has to be one of {', '.join(words)}")
        return text

    return read


def _redis_url(text: str) -> str:
    if urlsplit(text).scheme not in ("redis", "rediss", "unix") or len(text) > 2048:
        raise ValueError("has to be an address that begins with redis://, rediss:// or unix://")
    return text


def _host(text: str) -> str:
    if not _HOST.fullmatch(text):
        raise ValueError("has to be an address or a name of a host")
    return text


def _path(text: str) -> Path:
    if not Path(text).is_absolute():
        raise ValueError("has to be an absolute path")
    return Path(text)


def _switch(text: str) -> bool:
    return _one_of("off", "on")(text) == "on"


def _name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", text, re.ASCII):
        raise ValueError("has to be lower-case letters, digits and hyphens, at most 64")
    return text


def _neighbours(text: str) -> Neighbours:
    return Neighbours(_one_of(*(one.value for one in Neighbours))(text))


_READERS: dict[str, Callable[[str], Any]] = {  # Any: each reads its own type
    "host": _host,
    "port": _whole(0, 65535),
    "durability": _one_of("disk", "memory"),
    "partitions": _whole(1, 1024),
    "high_water": _whole(1, 10**9),
    "body_bytes": _whole(1024, 1 << 26),
    "body_time_s": _real(0.01, 600),
    "head_bytes": _whole(1024, 1 << 20),
    "head_time_s": _real(0.01, 600),
    "idle_time_s": _real(0.01, 600),
    "connections": _whole(1, 10**6),
    "rate": _real(0.01, 1e6),
    "burst": _whole(1, 10**6),
    "report_tokens": _switch,
    "minimum_batch": _whole(1, 1 << 31),
    "ledger": _name,
    "ledger_epsilon": _real(0, 1e9),
    "ledger_delta": _real(0, 1),
    "ledger_neighbours": _neighbours,
    "ledger_anchor": _path,
    "signing_key_file": _path,
    "experiments": _switch,
    "log_level": _one_of("INFO", "WARNING", "ERROR"),
    "data_folder": _path,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a service. Each field is a variable: ``port`` is NOISEFLOOR_PORT.

    Attributes:
        host: Where to listen; by default the loopback address.
        port: Where to listen; 0 for one that is free.
        redis_url: The Redis or Valkey server; it may hold a password and is never shown. It may
            stand in a file that NOISEFLOOR_REDIS_URL_FILE names instead.
        durability: ``disk``: acknowledged is on disk; ``memory``: acknowledged is with Redis.
        partitions: Of the streams.
        high_water: Frames that may wait in a stream before more are refused.
        body_bytes: Of a request body, at most.
        body_time_s: Within which a body has to be there.
        head_bytes: Of a request line and its headers, at most.
        head_time_s: Within which a request line and its headers have to be there.
        idle_time_s: How long a connection may be without a request.
        connections: At the same time, at most; some more only answer about health.
        rate: Requests a second and credential.
        burst: Requests at once and credential.
        report_tokens: Whether reports need one-use tokens.
        minimum_batch: Reports that an epoch has to have to be released. Collections may ask for
            more, and with ``experiments`` for less; 1 is no minimum.
        ledger: Name of the ledger.
        ledger_epsilon: Each data set's budget.
        ledger_delta: Each data set's budget of delta.
        ledger_neighbours: The ledger's relation.
        ledger_anchor: A file beside the Redis server that says what was spent at least; without
            one a server that is set back to an old backup is not noticed.
        signing_key_file: The key that signs cards, in a file that only its owner can read.
        experiments: Whether uploaded data sets may be experiments, which publish what has no
            guarantee; refused where data sets come from files. Collections may then have any
            minimum.
        log_level: From which level on things are logged.
        data_folder: Where an embedded server keeps its data.
        credentials: Whose tokens are accepted; from NOISEFLOOR_TOKENS (one credential a line) or
            from the file that NOISEFLOOR_TOKENS_FILE names.
    """

    host: str = "127.0.0.1"
    port: int = 0
    redis_url: str = field(default="redis://127.0.0.1:6379/0", repr=False)
    durability: str = "disk"
    partitions: int = 1
    high_water: int = 10_000
    body_bytes: int = 1 << 20
    body_time_s: float = 10.0
    head_bytes: int = 1 << 14
    head_time_s: float = 5.0
    idle_time_s: float = 10.0
    connections: int = 4096
    rate: float = 50.0
    burst: int = 100
    report_tokens: bool = False
    minimum_batch: int = 100
    ledger: str = "publications"
    ledger_epsilon: float = 10.0
    ledger_delta: float = 1e-5
    ledger_neighbours: Neighbours = Neighbours.RECORD_ADD_REMOVE
    ledger_anchor: Path | None = None
    signing_key_file: Path | None = None
    experiments: bool = False
    log_level: str = "INFO"
    data_folder: Path | None = None
    credentials: Credentials = field(default_factory=lambda: Credentials(()))

    @property
    def least_minimum(self) -> int:
        """The smallest minimum that a collection beside the first may ask for."""
        return 1 if self.experiments else self.minimum_batch

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "Settings":
        """Read every setting, or raise BadSetting with the variable and its rule."""
        readers = {PREFIX + name.upper(): name for name in _READERS}
        secrets = {name + ending for name in _SECRETS for ending in ("", "_FILE")}
        known = {*readers, *secrets, *OF_OTHERS}
        for variable in sorted(environment):
            if variable.startswith(PREFIX) and variable not in known:
                raise BadSetting(variable, _REFUSED.get(variable, "is not a setting"))
        given = {
            name: _value(variable, environment[variable], _READERS[name])
            for variable, name in readers.items()
            if variable in environment
        }
        return cls(**given | _address(environment), credentials=_credentials(environment))


def _value(name: str, text: str, read: Callable[[str], Any]) -> Any:  # Any: as in the table
    try:
        return read(text)
    except ValueError as error:
        raise BadSetting(name, str(error)) from None


def _credentials(environment: Mapping[str, str]) -> Credentials:
    """Read the tokens from the one place that holds them."""
    name, text = _secret(environment, TOKENS)
    try:
        return Credentials(re.split(r"[\n;]", text or ""))
    except BadCredentials as error:
        raise BadSetting(name, f"breaks a rule: {str(error).rstrip('.')}") from None


def _address(environment: Mapping[str, str]) -> dict[str, str]:
    """Read the server's address from the one place that holds it; nothing if none does."""
    name, text = _secret(environment, REDIS_URL)
    return {} if text is None else {"redis_url": _value(name, text.strip(), _redis_url)}


def _secret(environment: Mapping[str, str], name: str) -> tuple[str, str | None]:
    """Return the variable that holds a secret, or names the file that does, and the secret."""
    inline, file = environment.get(name), environment.get(f"{name}_FILE")
    if inline is not None and file is not None:
        raise BadSetting(name, f"and {name}_FILE exclude each other")
    if file is None:
        return name, inline
    return f"{name}_FILE", _secret_file(f"{name}_FILE", Path(file))


def _secret_file(name: str, path: Path) -> str:
    """Return the text of a file that only its owner can change."""
    try:
        state = path.stat()
        if state.st_mode & 0o022:
            raise BadSetting(name, "names a file that others may write: chmod go-w")
        if state.st_size > _MOST_FILE_BYTES:
            raise BadSetting(name, f"names a file of more than {_MOST_FILE_BYTES} bytes")
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise BadSetting(name, "names a file that cannot be read as ASCII") from None
