"""The file that says what runs: names, numbers and ports of processes, and no secret."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from noisefloor_sim.topology.errors import BadState
from noisefloor_sim.topology.places import Places, write_secret
from noisefloor_sim.topology.process import Process

EMBEDDED = "embedded"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class State:
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

    def having(self, process: Process) -> "State":
        """Return the state with a process, in place of what is known of it so far."""
        by_name = {one.name: one for one in self.processes} | {process.name: process}
        return replace(self, processes=tuple(by_name.values()))


def write(places: Places, state: State) -> None:
    """Write the state down, in one step."""
    text = json.dumps({"version": _VERSION, **asdict(state)}, indent=1)
    write_secret(places.state, text + "\n")


def _process(told: dict[str, Any]) -> Process:  # Any: JSON
    return Process(
        **{**told, "unkept": tuple(told["unkept"]), "words": tuple(told.get("words", ()))}
    )


def read(places: Places) -> State | None:
    """Return the state that was written, None if there is none."""
    try:
        told = json.loads(places.state.read_text(encoding="utf-8"))
        if told.pop("version") != _VERSION:
            raise ValueError
        listed = [_process(one) for one in told.pop("processes")]
        return State(**told, processes=tuple(listed))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise BadState(
            f"{places.state}: cannot be read. The processes' numbers are in {places.folder}/run: "
            "end what still runs, then remove the file."
        ) from None
