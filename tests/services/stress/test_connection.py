"""One connection of the load client: answers in parts, in any order of their fields, or none."""

import select
import socket
from collections.abc import Iterator

import pytest

from noisefloor_services.stress.connection import ConnectionLost, LoadConnection
from noisefloor_services.stress.core import Sending

Pair = tuple[LoadConnection, socket.socket, select.epoll]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Return a connection, and the other end of it."""
    with socket.create_server(("127.0.0.1", 0)) as server, select.epoll() as epoll:
        connection = LoadConnection(server.getsockname()[1], epoll)
        other, _ = server.accept()
        with other:
            yield connection, other, epoll
        connection.close()


def received(pair: Pair, data: bytes) -> object:
    connection, other, epoll = pair
    other.sendall(data)
    assert epoll.poll(5.0)
    return connection.receive()


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", (202, None)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", (200, None)),
        (b"HTTP/1.1 429 Later\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n", (429, 3.0)),
        (b"HTTP/1.1 503 Away\r\nContent-Length: 0\r\nretry-after:  1\r\n\r\n", (503, 1.0)),
        (b"HTTP/1.1 304 Same\r\nX: content-length\r\n\r\n", (304, None)),
    ],
)
def test_an_answer_is_read_whole_or_byte_by_byte(pair: Pair, answer: bytes, found: object) -> None:
    assert received(pair, answer) == found
    for at in range(len(answer) - 1):
        assert received(pair, answer[at : at + 1]) is None
    assert received(pair, answer[-1:]) == found


@pytest.mark.parametrize("answer", [b"nonsense\r\n\r\n", b"HTTP/1.1 2x2 \r\n\r\n"])
def test_what_is_no_answer_ends_the_connection(pair: Pair, answer: bytes) -> None:
    with pytest.raises(ConnectionLost):
        received(pair, answer)


def test_an_end_of_the_connection_is_noticed(pair: Pair) -> None:
    connection, other, epoll = pair
    other.close()
    assert epoll.poll(5.0)
    with pytest.raises(ConnectionLost):
        connection.receive()


def test_a_request_that_does_not_fit_at_once_is_sent_in_parts(pair: Pair) -> None:
    connection, other, epoll = pair
    request = bytes(range(256)) * (1 << 15)
    connection.send(request, Sending(0, 0, 0))
    taken = bytearray()
    while len(taken) < len(request):
        taken += other.recv(1 << 20)
        for _, event in epoll.poll(0.01):
            if event & select.EPOLLOUT:
                connection.flush()
                connection.sent_all()
    assert bytes(taken) == request
    assert received(pair, b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n") == (202, None)
