"""The client over real sockets: every request has one outcome; nothing here is timed."""

import threading
import time
from collections import Counter

import pytest

from noisefloor_services.stress.client import LoadTarget, run_share
from noisefloor_services.stress.core import AnswerClass, LoadCore
from stub_service import Script, serving

COUNT = 60


def sent(
    script: Script, *, connections: int = 8, timeout_s: float = 20.0, until_us: int = 10**9
) -> tuple[LoadCore, Counter[bytes]]:
    """Send some requests that are all due at once; return what became of them."""
    with serving(script) as (port, service):
        start_us = time.monotonic_ns() // 1000
        core, most_open = run_share(
            LoadTarget((port,), connections, timeout_s),
            [0] * COUNT,
            request,
            start_us=start_us,
            retry_until_us=until_us,
        )
    assert 1 <= most_open <= connections
    return core, service.seen


def request(place: int) -> bytes:
    """Return a request whose body is its batch id."""
    head = b"POST /frames HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 32\r\n\r\n"
    return head + b"%032x" % place


def classes(core: LoadCore) -> Counter[AnswerClass]:
    return Counter(AnswerClass(one) for one in core.classes)


@pytest.mark.parametrize("connections", [1, 3, COUNT + 5])
def test_every_request_is_sent_once_however_few_connections_there_are(connections: int) -> None:
    core, seen = sent(lambda number, one: (202, None), connections=connections)
    assert classes(core) == {AnswerClass.ACCEPTED: COUNT}
    assert seen == Counter(b"%032x" % place for place in range(COUNT))
    assert all(done >= begun for begun, done in zip(core.sent_us, core.done_us, strict=True))


def test_a_refused_request_is_sent_again_with_the_same_bytes() -> None:
    refused: set[bytes] = set()

    def refuse_some_once(number: int, one: bytes) -> tuple[int, float | None]:
        if int(one, 16) % 3 == 0 and one not in refused:
            refused.add(one)
            return 429, 0.05
        return 202, None

    core, seen = sent(refuse_some_once)
    assert classes(core) == {AnswerClass.ACCEPTED: 40, AnswerClass.REFUSED_WITH_RETRY: 20}
    assert core.repeats == {AnswerClass.ACCEPTED: 20}
    assert all(core.taken)
    assert sorted(Counter(seen.values()).items()) == [(1, 40), (2, 20)]


def test_answers_are_counted_by_class() -> None:
    script = {0: (202, None), 1: (503, None), 2: (410, None), 3: (0, None)}
    core, seen = sent(lambda number, one: script[int(one, 16) % 4])
    expected = (
        AnswerClass.ACCEPTED,
        AnswerClass.REFUSED_WITHOUT_RETRY,
        AnswerClass.REFUSED_FOR_GOOD,
        AnswerClass.LOST,
    )
    assert classes(core) == dict.fromkeys(expected, COUNT // 4)
    assert seen.total() == COUNT
    assert not core.repeats


def test_a_service_that_is_not_there_loses_every_request() -> None:
    with serving() as (port, _):
        pass
    core, _ = run_share(
        LoadTarget((port,), 4, 5.0), [0] * 5, request, start_us=0, retry_until_us=0
    )
    assert classes(core) == {AnswerClass.LOST: 5}


def test_an_answer_that_does_not_come_is_waited_for_no_longer_than_was_said() -> None:
    is_over = threading.Event()

    def hang(number: int, one: bytes) -> tuple[int, float | None]:
        if number == 0:
            is_over.wait(60)
        return 202, None

    core, _ = sent(hang, connections=COUNT, timeout_s=0.1)
    is_over.set()
    late = [at for at, one in enumerate(core.classes) if one == AnswerClass.TIMED_OUT]
    assert late
    assert all(core.done_us[at] - core.sent_us[at] >= 100_000 for at in late)
    assert set(classes(core)) <= {AnswerClass.TIMED_OUT, AnswerClass.ACCEPTED}
