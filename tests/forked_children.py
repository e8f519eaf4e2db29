"""Work in a forked child, and what comes back of it."""

import os
from collections.abc import Callable

import pytest

# From Python 3.12 on a fork warns if any library holds threads; these children only draw and exit.
FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def in_forked_child(work: Callable[[], bytes]) -> bytes:
    """Return what the work gives in a forked child; an error comes back as its name."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(sending, work())
        except BaseException as error:
            os.write(sending, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(sending)
    with os.fdopen(receiving, "rb") as pipe:
        given = pipe.read()
    os.waitpid(child, 0)
    return given
