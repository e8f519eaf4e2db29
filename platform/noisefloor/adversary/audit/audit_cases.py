"""The audit cases: every mechanism as ``noisefloor audit`` shows it, the faulty ones last."""

import difflib
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from noisefloor import mechanisms
from noisefloor.adversary.audit.auditor import AuditCase
from noisefloor.collection.encoding import JointResponse, PrintedUnified, UnifiedResponse
from noisefloor.errors import UnknownMechanism
from noisefloor.privacy import Neighbours

_USER = Neighbours.USER
_GAUSSIAN_DELTA = 0.01
"""At a usual delta of 1e-5 the event that tells most is too rare for any sample of this size."""


def _one_hot(size: int, place: int) -> NDArray[np.bool_]:
    return np.asarray(np.arange(size) == place)


def _lead(size: int, place: int, high: float = 1.0) -> NDArray[np.float64]:
    return np.where(_one_hot(size, place), high, 0.0)


def _trail(size: int, place: int, high: float = 1.0) -> NDArray[np.float64]:
    return np.where(_one_hot(size, place), 0.0, high)


@cache
def all_audit_cases() -> tuple[AuditCase, ...]:
    """Return every case; names are unique."""
    return (*_frequencies(), *_means(), *_choices(), *_records(), *_faults())


def _frequencies() -> list[AuditCase]:
    ones, none = np.ones(4, dtype=np.bool_), np.zeros(4, dtype=np.bool_)
    symmetric = mechanisms.UnaryEncoding.symmetric
    return [
        AuditCase("binary-response", mechanisms.BinaryResponse, 1.0, _USER, (True, False)),
        AuditCase("kary-response", lambda e: mechanisms.KaryResponse(16, e), 1.0, _USER, (0, 15)),
        AuditCase("unary-symmetric", lambda e: symmetric(4, e), 1.0, _USER, (ones, none)),
        AuditCase(
            "unary-symmetric-bit",
            lambda e: symmetric(4, e, neighbours=Neighbours.BIT),
            1.0,
            Neighbours.BIT,
            (_one_hot(4, 0), none),
            note="the same bits, guarded one by one",
        ),
        AuditCase(
            "unary-optimised",
            lambda e: mechanisms.UnaryEncoding.optimised(8, e),
            1.0,
            _USER,
            (_one_hot(8, 0), _one_hot(8, 7)),
        ),
        AuditCase("local-hashing", lambda e: mechanisms.LocalHashing(64, e), 1.0, _USER, (0, 63)),
        AuditCase(
            "subset-selection", lambda e: mechanisms.SubsetSelection(8, e), 1.0, _USER, (0, 7)
        ),
        AuditCase(
            "memoised-response",
            lambda e: mechanisms.MemoisedResponse(2 * e, e),
            1.0,
            _USER,
            (True, False),
            note="one report; a permanent answer at twice the epsilon stands behind it",
        ),
    ]


def _means() -> list[AuditCase]:
    sigma = mechanisms.DiscreteGaussian(1.0, _GAUSSIAN_DELTA, 0, 10).noise.sigma
    thin = mechanisms.GaussianTable(0.75 * sigma).epsilon(_GAUSSIAN_DELTA, 10)
    halves = 2.0 ** -np.arange(6)  # no two sums of its signed parts are equal
    halves /= np.linalg.norm(halves)
    turned = halves * [1, -1, 1, -1, 1, -1]
    return [
        AuditCase(
            "discrete-laplace",
            lambda e: mechanisms.DiscreteLaplace(e, 0, 100),
            1.0,
            _USER,
            (100, 0),
        ),
        AuditCase(
            "discrete-gaussian",
            lambda e: mechanisms.DiscreteGaussian(e, _GAUSSIAN_DELTA, 0, 10),
            1.0,
            _USER,
            (10, 0),
            delta=_GAUSSIAN_DELTA,
            planted=thin,
            note=f"at delta {_GAUSSIAN_DELTA}, where a sample of this size can see it",
        ),
        AuditCase("piecewise", mechanisms.Piecewise, 1.0, _USER, (1.0, -1.0)),
        AuditCase("hybrid", mechanisms.Hybrid, 1.0, _USER, (1.0, -1.0)),
        AuditCase("square-wave", mechanisms.SquareWave, 1.0, _USER, (1.0, 0.0)),
        AuditCase("one-bit-mean", mechanisms.OneBitMean, 1.0, _USER, (1.0, -1.0)),
        AuditCase(
            "sampled-bit",
            lambda e: mechanisms.SampledBit(4, e),
            1.0,
            _USER,
            (np.ones(4), -np.ones(4)),
        ),
        AuditCase(
            "leaning-signs",
            lambda e: mechanisms.DirectionSigns(6, e),
            1.0,
            _USER,
            (halves, -halves),
        ),
        AuditCase(
            "leaning-axis", lambda e: mechanisms.AxisSigns(6, e), 1.0, _USER, (halves, turned)
        ),
    ]


def _choices() -> list[AuditCase]:
    pair = (_lead(5, 0), _trail(5, 0))
    return [
        AuditCase(
            "noisy-max-laplace", lambda e: mechanisms.NoisyMax.laplace(5, e), 1.0, _USER, pair
        ),
        AuditCase(
            "noisy-max-exponential",
            lambda e: mechanisms.NoisyMax.exponential(5, e),
            1.0,
            _USER,
            pair,
        ),
        AuditCase("permute-and-flip", lambda e: mechanisms.PermuteAndFlip(5, e), 1.0, _USER, pair),
        AuditCase(
            "exponential-mechanism",
            lambda e: mechanisms.ExponentialMechanism(5, e),
            1.0,
            _USER,
            pair,
        ),
        AuditCase(
            "argmax-response",
            lambda e: mechanisms.ArgmaxResponse(5, e),
            1.0,
            _USER,
            (_lead(5, 0), _lead(5, 4)),
        ),
        AuditCase(
            "top-set-response",
            lambda e: mechanisms.TopSetResponse(5, e, top=2),
            1.0,
            _USER,
            (_lead(5, 0) + _lead(5, 1), _lead(5, 3) + _lead(5, 4)),
        ),
    ]


def _records() -> list[AuditCase]:
    lowest, highest = (0, 0, 0), (3, 3, 1)
    return [
        AuditCase(
            "unified-response",
            lambda e: UnifiedResponse((4, 4, 2), e),
            1.0,
            _USER,
            (lowest, highest),
            note="two attributes of 4 classes and a label, a third of eps each",
        ),
        AuditCase(
            "joint-response",
            lambda e: JointResponse((2, 3, 4), 2, e),
            2.0,
            _USER,
            (np.array([0, 0, 0, 0]), np.array([1, 2, 3, 1])),
            note="two of three attributes and the label, answered as one symbol",
        ),
    ]


def _faults() -> list[AuditCase]:
    ones, none = np.ones(8, dtype=np.bool_), np.zeros(8, dtype=np.bool_)
    lowest, highest = (0, 0, 0), (4, 4, 4)
    return [
        AuditCase(
            "paper-noisy-max",
            lambda e: mechanisms.printed_noisy_max(10, e, high=2.0),
            1.0,
            _USER,
            (_lead(10, 0, 2.0), _trail(10, 0, 2.0)),
            faulty=True,
            note="Lap(1/eps) on scores in [0, 2]: the cost tends to 2 R eps = 4",
        ),
        AuditCase(
            "paper-response",
            lambda e: mechanisms.PrintedResponse(4, e),
            1.0,
            _USER,
            (0, 3),
            faulty=True,
            note="lies from L + 1 symbols: eps + ln(L / (L - 1))",
        ),
        AuditCase(
            "paper-binning",
            lambda e: mechanisms.PrintedBinning(4, e),
            1.0,
            _USER,
            (-1.0, 1.0),
            faulty=True,
            note="the minimum has a class of its own: no guarantee",
        ),
        AuditCase(
            "paper-record",
            lambda e: PrintedUnified((4, 4, 4), e),
            1.0,
            _USER,
            (lowest, highest),
            faulty=True,
            note="minima and every negative label are class 0, which nobody else reports",
        ),
        AuditCase(
            "paper-record-symbols",
            lambda e: PrintedUnified((4, 4, 4), e, "symbols"),
            1.0,
            _USER,
            (lowest, highest),
            faulty=True,
            note="lies from 0 to L, class 0 among them: eps + 3 ln(L / (L - 1))",
        ),
        AuditCase(
            "paper-clicks",
            lambda e: mechanisms.printed_clicks(8, e),
            0.5,
            _USER,
            (ones, none),
            faulty=True,
            note="eps for each of 8 bits, called eps for the vector: 8 eps",
        ),
    ]


def select_cases(names: Sequence[str]) -> tuple[AuditCase, ...]:
    """Return the named cases in the order of the line-up, or all if none is named."""
    known = {case.name: case for case in all_audit_cases()}
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise UnknownMechanism(
                f"No mechanism is called {name!r}.{hint} Known: {', '.join(known)}."
            )
    return tuple(case for case in all_audit_cases() if not names or case.name in names)
