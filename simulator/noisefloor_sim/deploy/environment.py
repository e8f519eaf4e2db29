"""The environment of each process: each gets its own password and no other."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from noisefloor_sim.deploy.errors import BadState
from noisefloor_sim.deploy.paths import DeploymentPaths

_OURS = (
    *("HOST", "PORT", "REDIS_URL", "REDIS_URL_FILE", "DURABILITY", "TOKENS", "TOKENS_FILE"),
    *("DATA_FOLDER", "LEDGER_ANCHOR"),
)
PREFIX = "NOISEFLOOR_"


@dataclass(frozen=True, slots=True)
class ProcessEnvironment:
    """Makes the environments of a topology's processes.

    Attributes:
        paths: Where its files lie.
        settings: Settings of the services, by their variables without the prefix; they win over
            those of our own environment.
        redis_url: The server that is used instead of embedded ones; it may hold a password.
    """

    paths: DeploymentPaths
    settings: Mapping[str, str]
    redis_url: str | None = field(repr=False)

    def store(self, name: str, durability: str) -> dict[str, str]:
        """Return the environment of a store."""
        folder = str(self.paths.data(name))
        return self._with(DURABILITY=durability, DATA_FOLDER=folder)

    def service(self, durability: str, store: str, user: str, port: int) -> dict[str, str]:
        """Return the environment of a service.

        Args:
            durability: What an acknowledgement promises.
            store: The store that it uses.
            user: Its user there.
            port: Where the store listens.
        """
        return self._with(
            HOST="127.0.0.1",
            PORT="0",
            DURABILITY=durability,
            TOKENS_FILE=str(self.paths.tokens),
            REDIS_URL=self.redis_url or store_url(self.paths.data(store), user, port),
        )

    def _with(self, **variables: str) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in {PREFIX + ours for ours in _OURS}
        }
        given = {PREFIX + name.upper(): value for name, value in self.settings.items()}
        ours = {PREFIX + name: value for name, value in variables.items()}
        # Several processes share the machine: threads of linear algebra would only get in the way.
        return {**kept, "OPENBLAS_NUM_THREADS": "1", **given, **ours}


def store_url(folder: Path, user: str, port: int) -> str:
    """Return the address of an embedded store for one of its users; it holds the password."""
    try:
        lines = (folder / "passwords").read_text(encoding="ascii").splitlines()
        password = dict(line.split(" ", 1) for line in lines)[user]
    except (OSError, ValueError, KeyError):
        raise BadState(f"{folder}: the passwords of the store cannot be read.") from None
    return f"redis://{user}:{password}@127.0.0.1:{port}/0"
