"""Values on their way between processes, as workers get and return them."""

from multiprocessing import Pipe
from typing import TypeVar

Value = TypeVar("Value")


def sent(value: Value) -> Value:
    """Return what another process would receive."""
    near, far = Pipe()
    with near, far:
        near.send(value)
        received: Value = far.recv()
    return received
