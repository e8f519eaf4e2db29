"""Poisoned statistics: fake devices that push one ad.

Nobody can tell a fake report from an honest one by its form. A fake that lies about its input and
runs the mechanism gains its share and no more, whatever epsilon is. A fake that writes its report
itself gains the more, the more noise the honest add: debiasing multiplies what it sends by
1 / (hold - lack). Shares are those of all devices; honest shares are those of the honest ones.

Poisoned training: fake devices that pull one ad's gradient in the V2 protocol.

A message names a coordinate and a bit, and stands for dimension * size at that coordinate, size
being coth(epsilon / 2). Who chooses the coordinate itself gains dimension times as much as who
draws it honestly; who also runs the bit honestly gains another factor size less.
All gains are in units of the clipped value, on the averaged gradient.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from noisefloor import mechanisms
from noisefloor.ads.clicks import ClickEncoding, ClickReport, DeliveredClick
from noisefloor.checks import check_bits, check_count, check_finite, check_integers
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.randomness import Source


@dataclass(frozen=True, slots=True)
class ReportSupport:
    """How a report about one ad is debiased: (rate - lack) / (hold - lack) * scale.

    Attributes:
        hold: The chance that a report supports the ad if its sender holds it.
        lack: The same if not.
        scale: What the share is multiplied by at last; more than 1 under sampling.
    """

    hold: float
    lack: float
    scale: float = 1.0

    def share(self, rate: float) -> float:
        """Return the estimated share when n of all reports support the ad."""
        return self.scale * (rate - self.lack) / (self.hold - self.lack)


@singledispatch
def support_of(mechanism: object) -> ReportSupport:
    """Return how reports of a mechanism support an ad."""
    raise BadParameter("mechanism", type(mechanism).__name__, "one whose reports support an ad")


@support_of.register
def _(mechanism: mechanisms.BinaryResponse) -> ReportSupport:
    lie = mechanism.flip / ONE
    return ReportSupport(1 - lie, lie)


@support_of.register
def _(mechanism: mechanisms.KaryResponse) -> ReportSupport:
    return ReportSupport(mechanism.keep / ONE, float(mechanism.lie / ONE))


@support_of.register
def _(mechanism: mechanisms.UnaryEncoding) -> ReportSupport:
    return ReportSupport(mechanism.stay / ONE, mechanism.rise / ONE)


@support_of.register
def _(mechanism: mechanisms.SubsetSelection) -> ReportSupport:
    hold = mechanism.hold / ONE
    return ReportSupport(hold, (mechanism.subset - hold) / (mechanism.size - 1))


@support_of.register
def _(mechanism: ClickReport) -> ReportSupport:
    inner = support_of(mechanism.encoding)
    scale = mechanism.most_clicks if mechanism.form is ClickEncoding.PAD_AND_SAMPLE else 1
    return ReportSupport(inner.hold, inner.lack, float(scale))


@support_of.register
def _(mechanism: DeliveredClick) -> ReportSupport:
    # A fake names the ad itself: it adds an impression along with its click.
    return support_of(mechanism.response)


def crafted_bias(
    support: ReportSupport, *, fakes: float, honest: float, rate: float = 1.0
) -> float:
    """Return the bias when fakes support the target with chance ``rate``.

    Formula: ``beta (scale (rate - lack) / (hold - lack) - f)``, beta the share of fakes.
    """
    return _check_share(fakes) * (support.share(rate) - honest)


def input_bias(*, fakes: float, honest: float) -> float:
    """Return the bias when fakes hold the target and nothing else, and run the mechanism.

    Formula: ``beta (1 - f)``, whatever epsilon is.
    """
    return _check_share(fakes) * (1 - honest)


@singledispatch
def crafted_reports(mechanism: object, target: int, fakes: int) -> mechanisms.Reports:
    """Return reports that all support the target and as little else as the form allows.

    Reference: Cao, Jia, Gong 2021 (maximal gain attack); the gain is ``crafted_bias``.
    """
    raise BadParameter("mechanism", type(mechanism).__name__, "one whose reports can be crafted")


@crafted_reports.register
def _(mechanism: mechanisms.BinaryResponse, target: int, fakes: int) -> mechanisms.Reports:
    # The ad is settled by whom the report goes to; a click is all that there is to say.
    return np.ones(fakes, dtype=np.bool_)


@crafted_reports.register
def _(mechanism: DeliveredClick, target: int, fakes: int) -> mechanisms.Reports:
    check_count(target, "target", least=0, most=mechanism.ads - 1)
    return _symbols(2 * mechanism.ads, 2 * target + 1, fakes)


@crafted_reports.register
def _(mechanism: mechanisms.KaryResponse, target: int, fakes: int) -> mechanisms.Reports:
    return _symbols(mechanism.size, target, fakes)


@crafted_reports.register
def _(mechanism: mechanisms.UnaryEncoding, target: int, fakes: int) -> mechanisms.Reports:
    check_count(target, "target", least=0, most=mechanism.size - 1)
    return np.asarray(np.repeat((np.arange(mechanism.size) == target)[None], fakes, axis=0))


@crafted_reports.register
def _(mechanism: ClickReport, target: int, fakes: int) -> mechanisms.Reports:
    check_count(target, "target", least=0, most=mechanism.ads - 1)
    return crafted_reports(mechanism.encoding, target, fakes)


@crafted_reports.register
def _(mechanism: mechanisms.SubsetSelection, target: int, fakes: int) -> mechanisms.Reports:
    check_count(target, "target", least=0, most=mechanism.size - 1)
    reports = np.zeros((fakes, mechanism.size), dtype=np.bool_)
    reports[:, target] = True
    others, kept = mechanism.size - 1, mechanism.subset - 1
    # The others take turns, so that none of them stands out.
    turn = (np.arange(fakes)[:, None] * kept + np.arange(kept)) % others
    np.put_along_axis(reports, (target + 1 + turn) % mechanism.size, True, axis=1)
    return reports


def _symbols(size: int, target: int, fakes: int) -> NDArray[np.unsignedinteger]:
    check_count(target, "target", least=0, most=size - 1)
    return np.full(fakes, target, dtype=np.min_scalar_type(size - 1))


def mimic(honest_like: mechanisms.Reports, target: int, source: Source) -> NDArray[np.bool_]:
    """Move a one of each row to the target: the number of ones per report stays as it was.

    Sees:      nothing.
    Knows:     the mechanism: ``honest_like`` are reports of it that the attacker drew.
    Guesses:   nothing; evades any detector that looks at how many ones a report has.
    Reference: our own; gain in ``mimic_bias``.
    """
    reports = check_bits(honest_like, width=np.shape(honest_like)[-1]).copy()
    lacking = np.flatnonzero(reports.any(axis=1) & ~reports[:, target])
    rows = reports[lacking]
    keys = np.where(rows, source.stage("which").words(rows.size).reshape(rows.shape) | 1, 0)
    rows[np.arange(len(rows)), keys.argmax(axis=1)] = False
    rows[:, target] = True
    reports[lacking] = rows
    return reports


def mimic_bias(
    encoding: mechanisms.UnaryEncoding, *, fakes: float, honest: float, ones: int = 1
) -> float:
    """Return the bias of ``mimic``: all but the fakes whose report has no one at all support it.

    Formula: ``beta ((1 - (1 - p)^ones (1 - q)^(size - ones) - q) / (p - q) - f)``.
    """
    support = support_of(encoding)
    none = (1 - support.hold) ** ones * (1 - support.lack) ** (encoding.size - ones)
    return crafted_bias(support, fakes=fakes, honest=honest, rate=1 - none)


def _check_share(share: float) -> float:
    if not 0 <= check_finite(share, "fakes") <= 1:
        raise BadParameter("fakes", share, "in [0, 1]")
    return float(share)


Messages = NDArray[np.uint32]


def concentrated_messages(
    mechanism: mechanisms.SampledBit,
    coordinates: Sequence[int],
    fakes: int,
    *,
    is_upwards: bool = True,
) -> Messages:
    """Write messages about the target's coordinates alone, in turn, all with the same bit.

    Sees:      nothing.
    Knows:     the mechanism and which coordinates are the target's.
    Guesses:   nothing; wants the averaged gradient at these coordinates as large as can be.
    Reference: our own; gain in ``crowd_bias``, detector: ``detectors.uniformity_test``.
    """
    places = _check_coordinates(mechanism, coordinates)
    chosen = places[np.arange(check_count(fakes, "fakes", least=0)) % len(places)]
    return (2 * chosen + int(is_upwards)).astype(np.uint32)


def spread_messages(
    mechanism: mechanisms.SampledBit,
    coordinates: Sequence[int],
    fakes: int,
    source: Source,
    *,
    is_upwards: bool = True,
) -> Messages:
    """Draw coordinates as the honest do, lie about the target's and draw a fair bit on the others.

    Sees:      nothing.
    Knows:     the mechanism and which coordinates are the target's.
    Guesses:   nothing; evades any detector that looks at how often each coordinate comes.
    Reference: our own; gain in ``spread_bias``, detector: ``detectors.bit_bias_test``.
    """
    places = _check_coordinates(mechanism, coordinates)
    chosen = mechanism.choose(fakes, source)
    bits = source.stage("coin").bernoulli(ONE // 2, fakes)
    bits[np.isin(chosen, places)] = is_upwards
    return np.asarray(2 * chosen + bits, dtype=np.uint32)


def crowd_bias(
    mechanism: mechanisms.SampledBit, *, fakes: float, honest: float = 0.0, coordinates: int = 1
) -> float:
    """Return the bias at each of the target's coordinates when only these are named.

    Formula: ``beta (dimension / coordinates * coth(epsilon / 2) - g)``.
    """
    gain = mechanism.dimension / coordinates * mechanism.one_bit.size
    return fakes * (gain - honest)


def spread_bias(mechanism: mechanisms.SampledBit, *, fakes: float, honest: float = 0.0) -> float:
    """Return the bias at each of the target's coordinates when coordinates are drawn honestly.

    Formula: ``beta (coth(epsilon / 2) - g)``.
    """
    return fakes * (mechanism.one_bit.size - honest)


def input_gradient_bias(*, fakes: float, honest: float = 0.0) -> float:
    """Return the bias when fakes only lie about their values.

    Formula: ``beta (1 - g)``, whatever epsilon and the number of coordinates are.
    """
    return fakes * (1 - honest)


def _check_coordinates(
    mechanism: mechanisms.SampledBit, coordinates: Sequence[int]
) -> NDArray[np.int64]:
    if not len(coordinates):
        raise BadParameter("coordinates", coordinates, "at least one")
    return check_integers(coordinates, 0, mechanism.dimension - 1).astype(np.int64)
