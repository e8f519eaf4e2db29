"""The one door for random bits.

A ``Source`` hands out vectorised integers, exact Bernoulli draws, unbiased choices and draws of a
finite law. ``SeededSource`` names its streams by path, for simulation: the same path gives the
same coins, whatever else runs. ``SecureSource`` reads the operating system's entropy, unbuffered,
for everything that protects a real person.

How coins stay in place: draws are made for users in order, and whatever depends on chance
(ties, rejections) comes from a stream of its own. So adding users at the end moves nobody.
"""

import hashlib
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter, ForkedStream, NoisefloorError, StreamReopened
from noisefloor.laws import ONE, STRADDLES, FiniteLaw

Generator = np.random.Generator
"""For the signatures of population models; only this module makes one."""

Words = NDArray[np.uint64]
Bits = NDArray[np.bool_]

_HIGH = 1 if sys.byteorder == "little" else 0
"""Where the high half of a 64-bit word lies in memory."""

_MOST_RETRIES = 256
"""A rejection round fails with probability of about 1/2 at most: 256 in a row do not happen."""


class Source(ABC):
    """Random bits, and the exact draws that are made of them."""

    __slots__ = ()

    @abstractmethod
    def words(self, count: int) -> Words:
        """Return ``count`` uniform 64-bit words."""

    def child(self, *path: str | int) -> "Source":
        """Return the source of another release; one whose streams have no names returns itself."""
        return self

    @abstractmethod
    def stage(self, *name: str | int) -> "Source":
        """Open the stream of one step of a release; each name opens once."""

    @abstractmethod
    def _spare(self, *name: str | int) -> "Source":
        """Return the stream that serves ties or rejections, the same one at each call."""

    def bytes_of(self, count: int) -> NDArray[np.uint8]:
        """Return at least ``count`` uniform bytes, padded to whole words."""
        return self.words(-(-count // 8)).view(np.uint8)

    def halves_of(self, count: int) -> NDArray[np.uint32]:
        """Return at least ``count`` uniform 32-bit integers, padded to whole words."""
        return self.words(-(-count // 2)).view(np.uint32)

    def bernoulli(self, threshold: int, count: int, out: Bits | None = None) -> Bits:
        """Return ``count`` coins, each true with probability exactly ``threshold / 2**64``.

        Eight bits settle 255 coins of 256; the others take 56 more from a stream of ties. The
        coins are written to ``out`` if it is given.
        """
        hits = np.empty(count, dtype=np.bool_) if out is None else out
        if not 0 <= threshold <= ONE:
            raise BadParameter("threshold", threshold, "in [0, 2**64]")
        if threshold in (0, ONE):
            hits[...] = threshold == ONE
            return hits
        coarse, fine = threshold >> 56, threshold & ((1 << 56) - 1)
        drawn = self.bytes_of(count)[:count]
        np.less(drawn, coarse, out=hits)
        if fine:
            ties = np.flatnonzero(drawn == coarse)
            hits[ties] = self._spare("ties").words(ties.size) >> np.uint64(8) < np.uint64(fine)
        return hits

    def bernoulli_each(self, thresholds: Words) -> Bits:
        """Return one coin per threshold, true with probability exactly threshold / 2**64."""
        shape, flat = thresholds.shape, thresholds.reshape(-1)
        drawn = self.words(-(-flat.size // 4)).view(np.uint16)[: flat.size]
        coarse = (flat >> np.uint64(48)).astype(np.uint16)
        hits = drawn < coarse
        ties = np.flatnonzero(drawn == coarse)
        fine = flat[ties] & np.uint64((1 << 48) - 1)
        hits[ties] = self._spare("ties").words(ties.size) >> np.uint64(16) < fine
        return hits.reshape(shape)

    def draw(self, law: FiniteLaw, count: int) -> NDArray[np.signedinteger]:
        """Return ``count`` outcomes of a finite law, exactly by its integer weights."""
        drawn = self.words(-(-count // 4)).view(np.uint16)[:count]
        outcomes: NDArray[np.signedinteger] = law.guide.take(drawn)
        open_ = np.flatnonzero(outcomes == STRADDLES)
        rest = self._spare("ties").words(open_.size) >> np.uint64(16)
        full = (drawn[open_].astype(np.uint64) << np.uint64(48)) | rest
        outcomes[open_] = np.searchsorted(law.bounds, full, side="right")
        return outcomes

    def below(self, bound: int | NDArray[np.unsignedinteger], count: int) -> NDArray[np.uint32]:
        """Return ``count`` integers, each uniform below ``bound`` with no modulo bias.

        ``bound`` is one integer in [1, 2**32], or one per draw. Multiply and shift; the few low
        products that would be one too many are drawn again.
        """
        if isinstance(bound, np.ndarray):
            if bound.size and not (1 <= int(bound.min()) and int(bound.max()) <= 1 << 32):
                raise BadParameter("bound", "<array>", "in [1, 2**32]")
        else:
            if not 1 <= bound <= 1 << 32:
                raise BadParameter("bound", bound, "in [1, 2**32]")
            if bound & (bound - 1) == 0:
                shift = 33 - int(bound).bit_length()
                whole = self.halves_of(count)[:count]
                return np.zeros_like(whole) if shift == 32 else whole >> np.uint32(shift)
        bounds = bound.astype(np.uint64) if isinstance(bound, np.ndarray) else np.uint64(bound)
        surplus = np.uint64(1 << 32) % bounds
        chosen, low = _product(self.halves_of(count)[:count], bounds)
        rejected = np.flatnonzero(low < surplus)
        for retry in range(1, _MOST_RETRIES):
            if not rejected.size:
                return chosen
            some = bounds[rejected] if isinstance(bounds, np.ndarray) else bounds
            limit = surplus[rejected] if isinstance(surplus, np.ndarray) else surplus
            halves = self._spare("retry", retry).halves_of(rejected.size)[: rejected.size]
            chosen[rejected], low = _product(halves, some)
            rejected = rejected[low < limit]
        raise NoisefloorError(f"{_MOST_RETRIES} rejections in a row: the source is not random.")

    def below_wide(self, bounds: Words) -> Words:
        """Return one integer per bound, uniform below it, for bounds up to 2**63."""
        if bounds.size and not (1 <= int(bounds.min()) and int(bounds.max()) <= 1 << 63):
            raise BadParameter("bounds", "<array>", "in [1, 2**63]")
        # frexp may round a bound up to the next power of two: that only rejects more often.
        spare_bits = (64 - np.frexp(bounds.astype(np.float64))[1]).astype(np.uint64)
        chosen = self.words(bounds.size) >> spare_bits
        rejected = np.flatnonzero(chosen >= bounds)
        for retry in range(1, _MOST_RETRIES):
            if not rejected.size:
                return chosen
            again = self._spare("retry", retry).words(rejected.size) >> spare_bits[rejected]
            chosen[rejected] = again
            rejected = rejected[again >= bounds[rejected]]
        raise NoisefloorError(f"{_MOST_RETRIES} rejections in a row: the source is not random.")


def _product(
    halves: NDArray[np.uint32], bounds: Words | np.uint64
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the high and the low half of the 64-bit products, without shifting them apart."""
    product = (halves * bounds).view(np.uint32)
    return product[_HIGH::2].copy(), product[1 - _HIGH :: 2]


@dataclass(slots=True)
class _Run:
    """The paths that gave coins in one run."""

    opened: set[bytes] = field(default_factory=set)


_runs = [_Run()]
"""The runs that are open, innermost last; outside ``new_run`` the whole process is one run."""


@contextmanager
def new_run() -> Iterator[None]:
    """Start a run of its own: inside, every path may be opened once more.

    Two runs of the same scenario repeat coins on purpose; within one run that is a fault. All
    threads of the process are in the same run.
    """
    _runs.append(_Run())
    try:
        yield
    finally:
        _runs.pop()


class SeededSource(Source):
    """Reproducible streams, named by path: ``SeededSource(7, "cohort", 17, "clicks")``.

    The key is blake2b of the type-tagged, length-prefixed path, so no two paths share coins. The
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
                    f"{self!r} was already opened in this run: the same coins would come twice."
                )
            opened.add(self._digest)
            self._stream = _Stream(self._digest)
        return self._stream


class _Stream(Source):
    """Coins known by a digest: a path's own, or those of one step of a release."""

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
                f"The stage {name!r} already gave its coins: give each release its own path."
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


class SecureSource(Source):
    """Coins from the operating system, read when asked for and never kept.

    Nothing is buffered, so nothing is shared across a fork and nothing can be replayed.
    """

    __slots__ = ()

    def words(self, count: int) -> Words:
        """Return ``count`` words of OS entropy."""
        # A bytearray makes the array writable without a copy of its own.
        return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)

    def stage(self, *name: str | int) -> Source:
        """Return this source: OS entropy needs no names."""
        return self

    def _spare(self, *name: str | int) -> Source:
        return self


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


def _generator_bits(digest: bytes) -> np.random.SFC64:
    """Start SFC64 from the digest, and run it until the state is mixed."""
    bits = np.random.SFC64(0)
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
