"""The address of a service, bound before anything else is done: it may be in use."""

import socket

from noisefloor.errors import NoisefloorError

_SEND_BYTES = 1 << 18
"""Of an answer that the system keeps: it would keep megabytes for a client that reads slowly."""


class CannotListen(NoisefloorError):
    """The address is taken, or not ours to use."""


def bound(host: str, port: int) -> socket.socket:
    """Return a socket with an address of its own, not listening yet, or raise CannotListen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
        made.bind((host, port))
    except OSError as error:
        made.close()
        raise CannotListen(f"Cannot listen on {host}, port {port}: {error.strerror}.") from None
    made.setblocking(False)
    return made
