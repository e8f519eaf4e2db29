"""One HTTP connection of the load client: it never blocks, and has one request under way."""

import select
import socket

from noisefloor_services.stress.core import Sending

_MOST_READ = 1 << 16
_READS = select.EPOLLIN | select.EPOLLRDHUP
_BOTH = _READS | select.EPOLLOUT


class ConnectionLost(Exception):
    """The other side ended the connection, or what it sent is no answer."""


class LoadConnection:
    """A connection to the service under load.

    Args:
        port: On the loopback address.
        epoll: That watches it.
    """

    __slots__ = ("_buffered", "_epoll", "_socket", "_unsent", "number", "sending")

    def __init__(self, port: int, epoll: select.epoll) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.connect_ex(("127.0.0.1", port))
        self._epoll = epoll
        self._buffered = self._unsent = b""
        self.number = self._socket.fileno()
        self.sending: Sending | None = None
        epoll.register(self.number, _READS)

    def send(self, request: bytes, sending: Sending) -> None:
        """Send a request as far as that goes without waiting; the rest goes by ``flush``.

        Raises:
            ConnectionLost: The other side has ended the connection.
        """
        self.sending = sending
        self._unsent = request
        self.flush()

    def flush(self) -> None:
        """Send what could not be sent before."""
        if not self._unsent:
            return
        try:
            done = self._socket.send(self._unsent)
        except BlockingIOError:
            done = 0
        except OSError:
            raise ConnectionLost from None
        self._unsent = self._unsent[done:]
        if self._unsent or not done:
            self._epoll.modify(self.number, _BOTH)

    def sent_all(self) -> None:
        """Wait for answers alone again, once everything is sent."""
        if not self._unsent:
            self._epoll.modify(self.number, _READS)

    def receive(self) -> tuple[int, float | None] | None:
        """Read what has come; return status and Retry-After once an answer is whole.

        Raises:
            ConnectionLost: The connection has ended, or what came is no answer.
        """
        try:
            data = self._socket.recv(_MOST_READ)
        except BlockingIOError:
            return None
        except OSError:
            raise ConnectionLost from None
        if not data:
            raise ConnectionLost
        self._buffered = self._buffered + data if self._buffered else data
        return self._answer()

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def _answer(self) -> tuple[int, float | None] | None:
        end = self._buffered.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = self._buffered[: end + 2].lower()
        try:
            status = int(head[9:12])
            size = int(_field(head, b"\r\ncontent-length:") or 0)
            retry = _field(head, b"\r\nretry-after:")
            retry_s = None if retry is None else float(retry)
        except ValueError:
            raise ConnectionLost from None
        if len(self._buffered) < end + 4 + size:
            return None
        self._buffered = b""
        return status, retry_s


def _field(head: bytes, name: bytes) -> bytes | None:
    """Return a field of the head, None if it is not there."""
    at = head.find(name)
    if at < 0:
        return None
    return head[at + len(name) : head.find(b"\r\n", at + 2)].strip()
