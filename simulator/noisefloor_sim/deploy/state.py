"""The file that says what runs: names, numbers and ports of processes, and no secret."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from noisefloor_sim.deploy.errors import BadState
from noisefloor_sim.deploy.paths import DeploymentPaths, write_secret
from noisefloor_sim.deploy.process import Process

EMBEDDED = "embedded"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class DeploymentState:
    """What was started.

    Attributes:
        redis: ``embedded``, or the address of the server that is used, without its password.
        durability: ``disk`` or ``memory``: what an acknowledgement promises.
        first_epoch: The oldest epoch that reports were taken for at the start.
        processes: In the order in which they were started.
        anchor: The file that says what was spent at least; empty if there is none.
        settings: Of the services, by their variables without the prefix.
    """

    redis: str
    durability: str
    first_epoch: int = 0
    processes: tuple[Process, ...] = ()
    anchor: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    def having(self, process: Process) -> "DeploymentState":
        """Return the state with a process, in place of what is known of it so far."""
        by_name = {one.name: one for one in self.processes} | {process.name: process}
        return replace(self, processes=tuple(by_name.values()))


def write(paths: DeploymentPaths, state: DeploymentState) -> None:
    """Write the state down, in one step."""
    text = json.dumps({"version": _VERSION, **asdict(state)}, indent=1)
    write_secret(paths.state, text + "\n")


def _process(document: dict[str, Any]) -> Process:  # Any: JSON
    return Process(
        **{
            **document,
            "unkept": tuple(document["unkept"]),
            "words": tuple(document.get("words", ())),
        }
    )


def read(paths: DeploymentPaths) -> DeploymentState | None:
    """Return the state that was written, None if there is none."""
    try:
        document = json.loads(paths.state.read_text(encoding="utf-8"))
        if document.pop("version") != _VERSION:
            raise ValueError
        listed = [_process(one) for one in document.pop("processes")]
        return DeploymentState(**document, processes=tuple(listed))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise BadState(
            f"{paths.state}: cannot be read. The processes' numbers are in {paths.folder}/run: "
            "end what still runs, then remove the file."
        ) from None
