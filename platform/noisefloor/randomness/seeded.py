"""Reproducible streams, named by path."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from noisefloor.errors import BadParameter, ForkedStream, StreamReopened
from noisefloor.randomness.source import Source, Words

Generator = np.random.Generator
"""For the signatures of population models; only this module makes one."""


@dataclass(slots=True)
class _Run:
    """The paths that gave draws in one run."""

    opened: set[bytes] = field(default_factory=set)


_runs = [_Run()]
"""The runs that are open, innermost last; outside ``new_run`` the whole process is one run."""


@contextmanager
def new_run() -> Iterator[None]:
    """Start a run of its own: inside, every path may be opened once more.

    Two runs of the same scenario repeat draws on purpose; within one run that is a fault. All
    threads of the process are in the same run.
    """
    _runs.append(_Run())
    try:
        yield
    finally:
        _runs.pop()


class SeededSource(Source):
    """Reproducible streams, named by path: ``SeededSource(7, "cohort", 17, "clicks")``.

    The key is blake2b of the type-tagged, length-prefixed path, so no two paths share draws. The
    first draw opens the path; opening it again in the same run raises ``StreamReopened``. Pickling
    hands on the path and no state, so a spawned worker starts where the path starts; a source that
    crosses a fork refuses to draw.

    For simulation only: the generator is fast, not cryptographic.
    """

    __slots__ = ("_digest", "_path", "_pid", "_seed", "_stream")

    def __init__(self, seed: int, *path: str | int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise BadParameter("seed", seed, "to be an integer >= 0")
        self._seed = int(seed)
        self._path = path
        self._digest = _digest(b"path", _encoded((self._seed, *path)))
        self._pid = os.getpid()
        self._stream: _Stream | None = None

    def __repr__(self) -> str:
        return f"SeededSource{(self._seed, *self._path)!r}"

    def __reduce__(self) -> tuple[type, tuple[str | int, ...]]:
        return SeededSource, (self._seed, *self._path)

    def child(self, *path: str | int) -> "SeededSource":
        """Name the stream below this one; nothing is opened yet."""
        return SeededSource(self._seed, *self._path, *path)

    def words(self, count: int) -> Words:
        """Return ``count`` words of this path's stream."""
        return self._opened().words(count)

    def stage(self, *name: str | int) -> Source:
        """Open the stream of one step of a release.

        A mechanism draws each of its steps from a stage, and a stage opens once: so a source
        serves one call of ``randomise``, and handing it to a second one is an error.
        """
        return self._opened().stage(*name)

    def generator(self) -> np.random.Generator:
        """Return a numpy generator, for population models only.

        It has a key of its own and may be had again: a cohort is regenerated at each wake.
        """
        return np.random.Generator(_generator_bits(_digest(b"population", self._digest)))

    def _spare(self, *name: str | int) -> Source:
        return self._opened()._spare(*name)

    def _opened(self) -> "_Stream":
        """Return the stream, opened in this run and in the process that named it."""
        if os.getpid() != self._pid:
            raise ForkedStream(
                f"{self!r} was made before a fork: spawn workers and pass them the path."
            )
        if self._stream is None:
            opened = _runs[-1].opened
            if self._digest in opened:
                raise StreamReopened(
                    f"{self!r} was already opened in this run: the same draws would come twice."
                )
            opened.add(self._digest)
            self._stream = _Stream(self._digest)
        return self._stream


class _Stream(Source):
    """Draws known by a digest: a path's own, or those of one step of a release."""

    __slots__ = ("_bits", "_digest", "_opened", "_pid", "_spares")

    def __init__(self, digest: bytes) -> None:
        self._digest = digest
        self._pid = os.getpid()
        self._bits: np.random.SFC64 | None = None
        self._opened: set[tuple[str | int, ...]] = set()
        self._spares: dict[tuple[str | int, ...], _Stream] = {}

    def __reduce__(self) -> tuple[type, tuple[str | int, ...]]:
        raise ForkedStream("A stage belongs to one release in one process: pass the path.")

    def words(self, count: int) -> Words:
        self._check_process()
        if self._bits is None:
            self._bits = _generator_bits(self._digest)
        return self._bits.random_raw(count)

    def child(self, *path: str | int) -> Source:
        raise StreamReopened("A stage is a step of one release: it has no releases below it.")

    def stage(self, *name: str | int) -> Source:
        self._check_process()
        digest = _digest(b"stage", self._digest + _encoded(name))
        if name in self._opened:
            raise StreamReopened(
                f"The stage {name!r} already gave its draws: give each release its own path."
            )
        self._opened.add(name)
        return _Stream(digest)

    def _spare(self, *name: str | int) -> Source:
        if name not in self._spares:
            self._spares[name] = _Stream(_digest(b"spare", self._digest + _encoded(name)))
        return self._spares[name]

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise ForkedStream("A stage was made before a fork: pass workers the path.")


def _encoded(path: tuple[str | int, ...]) -> bytes:
    """Write a path so that no two paths read alike: type tag, length, content."""
    parts = bytearray()
    for element in path:
        if isinstance(element, bool) or not isinstance(element, str | int | np.integer):
            raise BadParameter("path", element, "to hold strings and integers only")
        tag = b"s" if isinstance(element, str) else b"i"
        content = str(element).encode()
        parts += tag + len(content).to_bytes(8, "big") + content
    return bytes(parts)


def _digest(domain: bytes, content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=32, person=domain.ljust(16, b"\0")).digest()


class _Blank(ISeedSequence):
    """A seed that is written over: hashing a real one takes longer than all the rest."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        """Return zeros of the type that is requested."""
        return np.zeros(n_words, dtype=dtype)


_BLANK = _Blank()


def _generator_bits(digest: bytes) -> np.random.SFC64:
    """Start SFC64 from the digest, and run it until the state is mixed."""
    bits = np.random.SFC64(_BLANK)  # type: ignore[arg-type] # any ISeedSequence will do
    # numpy's counter word starts at 1; the other three are the key.
    state = np.frombuffer(digest[:24] + (1).to_bytes(8, "little"), dtype="<u8").copy()
    bits.state = {
        "bit_generator": "SFC64",
        "state": {"state": state},
        "has_uint32": 0,
        "uinteger": 0,
    }
    bits.random_raw(16)
    return bits
