"""Our side of each workload: one call for all users, on the arrays that a user would have."""

import importlib.metadata
import platform
from collections.abc import Callable
from typing import Any

import numpy as np
from bench.compare import SECURE
from bench.worker import Job, serve
from numpy.typing import NDArray

import noisefloor.mechanisms as nf
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SecureSource, SeededSource, Source

SEED = 20240607
USERS = 1_000_000
FRAME_ROWS = 1 << 16
"""The most rows a frame may have: what a device or a batcher handles at once."""

EPSILON = 1.0

Values = NDArray[Any]
Release = Callable[[Source], object]
Setup = Callable[[int], Release]


def _integers(users: int, size: int) -> Values:
    return np.random.default_rng(SEED).integers(0, size, users, dtype=np.int64)


def _reals(users: int, low: float, width: int | None = None) -> Values:
    shape = users if width is None else (users, width)
    return np.random.default_rng(SEED).uniform(low, 1.0, shape)


def _plain(mechanism: Callable[[], Any], values: Callable[[int], Values]) -> Setup:
    """Make the workload that randomises the values and nothing else."""

    def setup(users: int) -> Release:
        built, given = mechanism(), values(users)
        return lambda source: built.randomise(given, source)

    return setup


def _unary_client(users: int) -> Release:
    mechanism, values = nf.UnaryEncoding.optimised(100, EPSILON), _integers(users, 100)
    return lambda source: mechanism.randomise_values(values, source)


def _in_frames(randomise: Callable[[Values, Source], Values], values: Values) -> Release:
    """Make the workload that works through the users a frame's worth at a time."""

    def release(source: Source) -> None:
        for start in range(0, len(values), FRAME_ROWS):
            randomise(values[start : start + FRAME_ROWS], source.child(start))

    return release


def _unary_frames(users: int) -> Release:
    mechanism = nf.UnaryEncoding.optimised(100, EPSILON)
    return _in_frames(mechanism.randomise_values, _integers(users, 100))


def _symmetric_frames(users: int) -> Release:
    mechanism = nf.UnaryEncoding.symmetric(100, EPSILON / 2, neighbours=Neighbours.BIT)
    rows = np.eye(100, dtype=np.bool_)[_integers(users, 100)]
    return _in_frames(mechanism.randomise, rows)


def _aggregate(mechanism: Any, values: Values) -> Release:
    """Make the workload of the server: tally and estimate of reports made beforehand."""
    reports = mechanism.randomise(values, SeededSource(SEED, repr(mechanism), "reports"))
    return lambda _: mechanism.estimate(mechanism.tally(reports), len(reports))


def _unary_aggregate(users: int) -> Release:
    mechanism = nf.UnaryEncoding.optimised(100, EPSILON)
    return _aggregate(mechanism, mechanism.encode(_integers(users, 100)))


def _hashing_aggregate(users: int) -> Release:
    return _aggregate(nf.LocalHashing(100, EPSILON), _integers(users // 10, 100))


def _end_to_end(
    mechanism: Any, randomise: Callable[[Values, Source], Values], values: Values
) -> Release:
    def release(source: Source) -> object:
        reports = randomise(values, source)
        return mechanism.estimate(mechanism.tally(reports), len(reports))

    return release


def _unary_end_to_end(users: int) -> Release:
    mechanism = nf.UnaryEncoding.optimised(100, EPSILON)
    return _end_to_end(mechanism, mechanism.randomise_values, _integers(users, 100))


def _kary_end_to_end(users: int) -> Release:
    mechanism = nf.KaryResponse(100, EPSILON)
    return _end_to_end(mechanism, mechanism.randomise, _integers(users, 100))


def _memoised_client(users: int) -> Release:
    # L-SUE counts epsilon for a moved one, that is two bits; ours counts it for one.
    mechanism, encode = nf.MemoisedResponse(1.0, 0.5), nf.UnaryEncoding.optimised(5, 1.0).encode
    values = _integers(users, 5)
    return lambda source: mechanism.randomise(encode(values).reshape(-1), source)


def _memoised_end_to_end(users: int) -> Release:
    client, mechanism = _memoised_client(users), nf.MemoisedResponse(1.0, 0.5)
    count = nf.UnaryEncoding.optimised(5, 1.0).tally

    def release(source: Source) -> object:
        reports = client(source)
        assert isinstance(reports, np.ndarray)  # noqa: S101  narrows a type
        return mechanism.estimate(count(reports.reshape(-1, 5)), users)

    return release


def _scores(mechanism: Callable[[], Any]) -> Setup:
    return _plain(mechanism, lambda users: _reals(users, 0.0, 16))


SETUPS: dict[str, Setup] = {
    "OUE client, 100 bits": _unary_frames,
    "OUE client, one array": _unary_client,
    "bit vector, 100 bits, symmetric": _symmetric_frames,
    "OUE aggregate, 100 bits": _unary_aggregate,
    "OUE end to end, 100 bits": _unary_end_to_end,
    "k-ary client, k=16": _plain(
        lambda: nf.KaryResponse(16, EPSILON), lambda users: _integers(users, 16)
    ),
    "k-ary end to end, k=100": _kary_end_to_end,
    "OLH client, 100 values": _plain(
        lambda: nf.LocalHashing(100, EPSILON), lambda users: _integers(users, 100)
    ),
    "OLH aggregate, 100 values": _hashing_aggregate,
    "L-SUE client, 5 bits": _memoised_client,
    "L-SUE end to end, 5 bits": _memoised_end_to_end,
    "subset selection, k=16": _plain(
        lambda: nf.SubsetSelection(16, EPSILON), lambda users: _integers(users, 16)
    ),
    "binary response": _plain(
        lambda: nf.BinaryResponse(EPSILON), lambda users: _integers(users, 2).astype(np.bool_)
    ),
    "discrete Laplace, scale 1000": _plain(
        lambda: nf.DiscreteLaplace(EPSILON, 0, 1000), lambda users: _integers(users, 1001)
    ),
    "discrete Gaussian": _plain(
        lambda: nf.DiscreteGaussian(EPSILON, 1e-6, 0, 1000), lambda users: _integers(users, 1001)
    ),
    "piecewise": _plain(lambda: nf.Piecewise(EPSILON), lambda users: _reals(users, -1.0)),
    "hybrid": _plain(lambda: nf.Hybrid(EPSILON), lambda users: _reals(users, -1.0)),
    "one-bit mean": _plain(lambda: nf.OneBitMean(EPSILON), lambda users: _reals(users, -1.0)),
    "square wave": _plain(lambda: nf.SquareWave(EPSILON), lambda users: _reals(users, 0.0)),
    "sampled bit, 16 dimensions": _plain(
        lambda: nf.SampledBit(16, EPSILON), lambda users: _reals(users, -1.0, 16)
    ),
    "argmax response, 16 scores": _scores(lambda: nf.ArgmaxResponse(16, EPSILON)),
    "noisy max Laplace, 16 scores": _scores(lambda: nf.NoisyMax.laplace(16, EPSILON)),
    "noisy max exponential, 16 scores": _scores(lambda: nf.NoisyMax.exponential(16, EPSILON)),
    "permute and flip, 16 scores": _scores(lambda: nf.PermuteAndFlip(16, EPSILON)),
    "exponential, 16 scores": _scores(lambda: nf.ExponentialMechanism(16, EPSILON)),
}


def _job(name: str, secure: bool) -> Callable[[bool], Job]:
    def prepare(quick: bool) -> Job:
        users = USERS // 10 if quick else USERS
        release = SETUPS[name](users)
        reports = users // 10 if SETUPS[name] is _hashing_aggregate else users

        def run(key: str) -> object:
            return release(SecureSource() if secure else SeededSource(SEED, key))

        return Job(run, reports)

    return prepare


def main() -> None:
    """Serve the seeded workloads and their twins on OS entropy."""
    seeded = {name: _job(name, secure=False) for name in SETUPS}
    secure = {name + SECURE: _job(name, secure=True) for name in SETUPS}
    about = {"python": platform.python_version()}
    for package in ("noisefloor", "numpy", "scipy"):
        try:
            about[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            about[package] = "not installed, from source"
    serve(seeded | secure, about)


if __name__ == "__main__":
    main()
