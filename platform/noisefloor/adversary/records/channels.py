"""Bayes' guess from symmetric responses: the truth with one probability, each lie with another.

What k-ary response makes of a symbol, and what a joint response leaves of one of its parts.

The distributions of reports of whole records, for many reports and many candidates at once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from noisefloor.adversary.audit import Indices, Prior, check_prior
from noisefloor.checks import Floats, check_count
from noisefloor.collection import encoding
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import KaryResponse, Reports
from noisefloor.randomness import Source

MOST_REPORTS = 128
"""Of one user, in a game: beyond, nearly everything is known."""


@dataclass(frozen=True, slots=True)
class Channel:
    """A symmetric response on symbols 0, 1, ...

    Attributes:
        size: How many symbols there are.
        keep: The probability of the truth.
        lie: The probability of each lie; given too, since 1 - keep has lost its digits near 1.
    """

    size: int
    keep: float
    lie: float

    def __post_init__(self) -> None:
        check_count(self.size, "size", least=2)
        if not 0 < self.lie < self.keep <= 1:
            raise BadParameter("lie", self.lie, f"above 0, and below keep={self.keep:g}")
        if not math.isclose(self.keep + (self.size - 1) * self.lie, 1.0, abs_tol=1e-9):
            raise BadParameter("keep", self.keep, "to make 1 with all lies")

    @classmethod
    def of(cls, response: KaryResponse) -> "Channel":
        """Return the channel of a k-ary response as rounded."""
        return cls(response.size, response.keep / ONE, float(response.lie / ONE))

    def guesses(self, prior: Prior = None) -> Indices:
        """Return the most probable truth behind each symbol; ties go to the symbol itself."""
        shares = check_prior(self.size, prior)
        symbols = np.arange(self.size)
        first, second = np.argsort(-shares, kind="stable")[:2]
        rival = np.where(symbols == first, second, first)
        return np.where(shares * self.keep >= shares[rival] * self.lie, symbols, rival)

    def hits(self, prior: Prior = None) -> Floats:
        """Return for each truth how often the guess names it."""
        guessed = self.guesses(prior)
        chances = np.where(guessed == np.arange(self.size), self.keep, self.lie)
        return np.bincount(guessed, chances, minlength=self.size).astype(np.float64)

    def success(self, prior: Prior = None, shares: Prior = None) -> float:
        """Return how often the guess is right.

        Formula: the sum over symbols y of max_x pi_x P(y | x); e^eps / (e^eps + L - 1) where all
        L are alike.

        Args:
            prior: What the adversary believes; without it, all symbols are alike.
            shares: How symbols are really spread, if not as believed.
        """
        spread = check_prior(self.size, prior if shares is None else shares)
        return float(self.hits(prior) @ spread)


def plurality(reports: Reports, size: int, source: Source) -> Indices:
    """Return the most frequent symbol of each row, ties tossed.

    Args:
        reports: Symbols, a row per user and a column per report.
        size: How many symbols there are.
        source: Of the tosses.
    """
    rows = np.repeat(np.arange(len(reports)) * size, reports.shape[1])
    codes = rows + np.asarray(reports, dtype=np.int64).reshape(-1)
    counts = np.bincount(codes, minlength=len(reports) * size).reshape(len(reports), size)
    tosses = source.stage("ties").words(counts.size).reshape(counts.shape)
    # Counts in the high bits, draws in the low ones: the largest is a random one of the best.
    keys = (counts.astype(np.uint64) << np.uint64(40)) | (tosses >> np.uint64(24))
    return np.asarray(keys.argmax(axis=1))


RecordResponse = encoding.UnifiedResponse | encoding.JointResponse
"""What answers for a whole record."""


def channels(mechanism: encoding.UnifiedResponse) -> list[Channel]:
    """Return what each value of a record goes through."""
    return [Channel.of(one) for one in mechanism.responses]


def sizes_of(mechanism: RecordResponse) -> tuple[int, ...]:
    """Return the classes of each value of a record, the label among them where there is one."""
    if isinstance(mechanism, encoding.UnifiedResponse):
        return mechanism.sizes
    return (*mechanism.sizes, *([mechanism.labels] * mechanism.labelled))


def check_place(place: int, width: int) -> int:
    """Return the place of one of n values; from the end if negative."""
    return check_count(place, "place", least=-width, most=width - 1) % width


def record_log_likelihoods(
    mechanism: RecordResponse, reports: Reports, rows: encoding.Codes
) -> Floats:
    """Return ln P(report | record), a row per report and a column per record."""
    candidates = encoding.check_codes(rows, sizes_of(mechanism))
    if isinstance(mechanism, encoding.UnifiedResponse):
        return _unified_logs(mechanism, encoding.check_codes(reports, mechanism.sizes), candidates)
    return _joint_logs(mechanism, mechanism.check_reports(reports), candidates)


def _unified_logs(
    mechanism: encoding.UnifiedResponse, reports: Reports, rows: encoding.Codes
) -> Floats:
    """Each value that is a candidate's own counts by ln(keep / lie)."""
    keeps = np.log([one.keep for one in channels(mechanism)])
    lies = np.log([one.lie for one in channels(mechanism)])
    reported = _marked(reports, mechanism.sizes) * np.repeat(keeps - lies, mechanism.sizes)
    return np.asarray(reported @ _marked(rows, mechanism.sizes).T + lies.sum())


def _joint_logs(
    mechanism: encoding.JointResponse, reports: Reports, rows: encoding.Codes
) -> Floats:
    """Only whether all parts of the tuple are a candidate's own counts."""
    sizes = sizes_of(mechanism)
    reported, chosen = np.asarray(reports, dtype=np.int64), mechanism.chosen
    places = np.full((len(reported), chosen + mechanism.labelled), len(mechanism.sizes))
    places[:, :chosen] = reported[:, :chosen]
    marks = np.zeros((len(reported), sum(sizes)))
    np.put_along_axis(marks, _starts(sizes)[places] + reported[:, chosen:], 1.0, axis=1)
    own = marks @ _marked(rows, sizes).T > places.shape[1] - 0.5
    spaces = [
        Channel.of(encoding.response_over(one, mechanism.epsilon)) for one in mechanism.spaces
    ]
    logs = np.log([(one.keep, one.lie) for one in spaces])[mechanism.groups_of(reported)]
    draws = math.log(math.comb(len(mechanism.sizes), chosen))
    return np.where(own, logs[:, :1], logs[:, 1:]) - draws


def _marked(rows: Reports, sizes: Sequence[int]) -> Floats:
    """Return rows with a one at each of their classes, one value after the other."""
    marks = np.zeros((len(rows), sum(sizes)))
    np.put_along_axis(marks, _starts(sizes) + np.asarray(rows, dtype=np.int64), 1.0, axis=1)
    return marks


def _starts(sizes: Sequence[int]) -> Reports:
    return np.cumsum([0, *sizes[:-1]])
