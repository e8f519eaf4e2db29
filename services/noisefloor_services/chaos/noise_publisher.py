"""A model publisher with one method that draws noise and takes its time.

The service is the real one; only the method is ours. It waits between the charge and the release,
so that a kill at any moment finds some publication there.
"""

import argparse
import os
import time
from collections.abc import Sequence

from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.randomness import Source
from noisefloor.roles import PublicationMethod, ReleaseRequest
from noisefloor_services import publisher
from noisefloor_services.http import configure_logging, serve
from noisefloor_services.listening import bound
from noisefloor_services.security import check_environment
from noisefloor_services.settings import Settings

EPSILON = 0.001
METHOD = "noise"
BYTES = 64
_TAKES_S = 0.05


def release(_: ReleaseRequest, source: Source) -> bytes:
    """Draw, and take some time over it."""
    drawn = source.words(BYTES // 8).tobytes()
    time.sleep(_TAKES_S)
    return drawn


def method() -> PublicationMethod:
    """Return the one method."""
    cost = Guarantee(EPSILON, Neighbours.RECORD_ADD_REMOVE, model=TrustModel.CENTRAL)
    return PublicationMethod(METHOD, "application/octet-stream", lambda _: cost, release)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until a signal, with settings from the environment as every service."""
    parser = argparse.ArgumentParser(prog="noise-publisher")
    parser.add_argument("name", choices=(publisher.NAME,))
    parser.add_argument("--data-set", action="append", default=[])
    given = parser.parse_args(arguments)
    check_environment(os.environ)
    settings = Settings.read(os.environ)
    configure_logging(settings.log_level)
    methods = {METHOD: method()}
    made = publisher.create(settings, methods, data_sets=given.data_set, environment=os.environ)
    with bound(settings.host, settings.port) as listening:
        serve(made, settings, listening)


if __name__ == "__main__":
    main()
