"""Poisoned statistics: fake devices that push one ad.

Nobody can tell a fake report from an honest one by its form. A fake that lies about its input and
runs the mechanism gains its share and no more, whatever epsilon is. A fake that writes its report
itself gains the more, the more noise the honest add: debiasing multiplies what it sends by
1 / (hold - lack). Shares are those of all devices; honest shares are those of the honest ones.
"""

from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.clicks import ClickReport, Form
from noisefloor.ads.delivered_click import DeliveredClick
from noisefloor.checks import Floats, check_bits, check_count, check_finite
from noisefloor.errors import BadParameter
from noisefloor.laws import ONE
from noisefloor.mechanisms.base import Reports
from noisefloor.mechanisms.randomised_response import BinaryResponse, KaryResponse
from noisefloor.mechanisms.subset_selection import SubsetSelection
from noisefloor.mechanisms.unary import UnaryEncoding
from noisefloor.randomness import Source


@dataclass(frozen=True, slots=True)
class Support:
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
        """Return the estimated share when so many of all reports support the ad."""
        return self.scale * (rate - self.lack) / (self.hold - self.lack)


@dataclass(frozen=True, slots=True)
class Poison:
    """What fake devices send, and what it is expected to do.

    Attributes:
        reports: One per fake, within the mechanism's domain.
        bias: Expected estimate of the target with the fakes, minus the honest share.
        input_bias: The same if the fakes only lie about their input.
    """

    reports: Reports
    bias: float
    input_bias: float


@singledispatch
def support_of(mechanism: object) -> Support:
    """Return how reports of a mechanism support an ad."""
    raise BadParameter("mechanism", type(mechanism).__name__, "one whose reports support an ad")


@support_of.register
def _(mechanism: BinaryResponse) -> Support:
    lie = mechanism.flip / ONE
    return Support(1 - lie, lie)


@support_of.register
def _(mechanism: KaryResponse) -> Support:
    return Support(mechanism.keep / ONE, float(mechanism.lie / ONE))


@support_of.register
def _(mechanism: UnaryEncoding) -> Support:
    return Support(mechanism.stay / ONE, mechanism.rise / ONE)


@support_of.register
def _(mechanism: SubsetSelection) -> Support:
    hold = mechanism.hold / ONE
    return Support(hold, (mechanism.subset - hold) / (mechanism.size - 1))


@support_of.register
def _(mechanism: ClickReport) -> Support:
    inner = support_of(mechanism.encoding)
    scale = mechanism.most_clicks if mechanism.form is Form.PAD_AND_SAMPLE else 1
    return Support(inner.hold, inner.lack, float(scale))


@support_of.register
def _(mechanism: DeliveredClick) -> Support:
    # A fake names the ad itself: it adds an impression along with its click.
    return support_of(mechanism.response)


def crafted_bias(support: Support, *, fakes: float, honest: float, rate: float = 1.0) -> float:
    """Return the bias when fakes support the target with chance ``rate``.

    Formula: ``beta (scale (rate - lack) / (hold - lack) - f)``, beta the share of fakes.
    """
    return _check_share(fakes) * (support.share(rate) - honest)


def input_bias(*, fakes: float, honest: float) -> float:
    """Return the bias when fakes hold the target and nothing else, and run the mechanism.

    Formula: ``beta (1 - f)``, whatever epsilon is.
    """
    return _check_share(fakes) * (1 - honest)


def push(mechanism: object, target: int, fakes: int, *, honest: int, share: float) -> Poison:
    """Write the reports that raise the estimate of one ad most.

    Sees:      nothing.
    Knows:     the mechanism, the target, the number of honest devices.
    Guesses:   nothing; wants the target's estimate up.
    Reference: Cao, Jia, Gong 2021 (maximal gain attack); formulas derived here from the
               estimator, see ``crafted_bias``.

    Args:
        mechanism: Whose reports are to be written.
        target: The ad.
        fakes: How many fake devices.
        honest: How many honest ones.
        share: The share of the honest who hold the ad, as the estimator expects it.
    """
    part = fakes / (check_count(fakes, "fakes", least=0) + check_count(honest, "honest", least=0))
    return Poison(
        craft(mechanism, target, fakes),
        crafted_bias(support_of(mechanism), fakes=part, honest=share),
        input_bias(fakes=part, honest=share),
    )


@singledispatch
def craft(mechanism: object, target: int, fakes: int) -> Reports:
    """Return reports that all support the target and as little else as the form allows."""
    raise BadParameter("mechanism", type(mechanism).__name__, "one whose reports can be crafted")


@craft.register
def _(mechanism: BinaryResponse, target: int, fakes: int) -> Reports:
    # The ad is settled by whom the report goes to; a click is all that there is to say.
    return np.ones(fakes, dtype=np.bool_)


@craft.register
def _(mechanism: DeliveredClick, target: int, fakes: int) -> Reports:
    check_count(target, "target", least=0, most=mechanism.ads - 1)
    return _symbols(2 * mechanism.ads, 2 * target + 1, fakes)


@craft.register
def _(mechanism: KaryResponse, target: int, fakes: int) -> Reports:
    return _symbols(mechanism.size, target, fakes)


@craft.register
def _(mechanism: UnaryEncoding, target: int, fakes: int) -> Reports:
    check_count(target, "target", least=0, most=mechanism.size - 1)
    return np.asarray(np.repeat((np.arange(mechanism.size) == target)[None], fakes, axis=0))


@craft.register
def _(mechanism: ClickReport, target: int, fakes: int) -> Reports:
    check_count(target, "target", least=0, most=mechanism.ads - 1)
    return craft(mechanism.encoding, target, fakes)


@craft.register
def _(mechanism: SubsetSelection, target: int, fakes: int) -> Reports:
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


def mimic(honest_like: Reports, target: int, source: Source) -> NDArray[np.bool_]:
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


def mimic_bias(encoding: UnaryEncoding, *, fakes: float, honest: float, held: int = 1) -> float:
    """Return the bias of ``mimic``: all but the fakes whose report has no one at all support it.

    Formula: ``beta ((1 - (1 - p)^held (1 - q)^(size - held) - q) / (p - q) - f)``.
    """
    support = support_of(encoding)
    none = (1 - support.hold) ** held * (1 - support.lack) ** (encoding.size - held)
    return crafted_bias(support, fakes=fakes, honest=honest, rate=1 - none)


def push_requests(
    chances: Floats, target: int, fakes: int, *, honest: int, share: float
) -> Poison:
    """Ask for the target outright, so that its impressions rise by the share of fakes.

    Sees:      nothing.
    Knows:     the catalogue.
    Guesses:   nothing; wants impressions for the target.
    Reference: ``request_bias``; impressions are counted as they are, epsilon does not matter.

    Args:
        chances: Of each ad, under the row of scores that a fake would feed to the mechanism
            if it only lied about its input.
        target: The ad.
        fakes: How many fake requests.
        honest: How many honest ones.
        share: Of the target among the honest.
    """
    part = fakes / (fakes + honest)
    return Poison(
        _symbols(len(chances), target, fakes),
        request_bias(1.0, fakes=part, honest=share),
        request_bias(float(chances[target]), fakes=part, honest=share),
    )


def request_bias(chance: float, *, fakes: float, honest: float) -> float:
    """Return how much the target's share of requests rises if fakes ask for it with a chance.

    Formula: ``beta (P - f)``.
    """
    return _check_share(fakes) * (chance - honest)


def _check_share(share: float) -> float:
    if not 0 <= check_finite(share, "fakes") <= 1:
        raise BadParameter("fakes", share, "in [0, 1]")
    return float(share)
