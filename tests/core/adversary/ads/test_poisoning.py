"""Poisoned statistics: crafted reports pass all checks, and gain what the formulas say."""

import numpy as np
import pytest

from noisefloor.ads.clicks.click_report import ClickEncoding, ClickReport, clicks_kind
from noisefloor.ads.clicks.delivered_click import DeliveredClick
from noisefloor.adversary.ads.poisoning import (
    crafted_bias,
    crafted_reports,
    input_bias,
    mimic,
    mimic_bias,
    support_of,
)
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import (
    BinaryResponse,
    DiscreteLaplace,
    KaryResponse,
    SubsetSelection,
    UnaryEncoding,
)
from noisefloor.mechanisms.base import Mechanism, Reports
from noisefloor.randomness import SeededSource
from noisefloor.wire.frames import decode_frame, encode_frame
from noisefloor.wire.kinds import Kind, symbol_kind

HONEST, FAKES, TARGET = 60_000, 12_000, 2
PART = FAKES / (HONEST + FAKES)
DEVIATIONS = 6.0
"""A normal variable is farther out with probability 2e-9, below FALSE_ALARM."""


def one_hot(symbols: Reports, size: int) -> Reports:
    return np.asarray(symbols[:, None] == np.arange(size))


def value_of(mechanism: Mechanism, symbols: Reports) -> Reports:
    """Return inputs of a mechanism for people who hold these symbols out of six."""
    if isinstance(mechanism, BinaryResponse):
        return np.asarray(symbols == TARGET)
    if isinstance(mechanism, UnaryEncoding | ClickReport):
        return one_hot(symbols, 6)
    if isinstance(mechanism, DeliveredClick):
        return np.asarray(2 * symbols + 1)
    return symbols


MECHANISMS: list[Mechanism] = [
    BinaryResponse(1.0),
    KaryResponse(6, 1.0),
    SubsetSelection(6, 1.0, subset=3),
    UnaryEncoding.symmetric(6, 2.0, most_ones=1),
    UnaryEncoding.optimised(6, 1.0),
    ClickReport(6, 1.0, ClickEncoding.ONE_CLICK),
    ClickReport(6, 1.0, ClickEncoding.PAD_AND_SAMPLE, most_clicks=2),
    ClickReport(6, 2.0, ClickEncoding.CAPPED, most_clicks=2),
    DeliveredClick(6, 1.0),
]


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_fakes_gain_what_the_formula_says(mechanism: Mechanism, seed: int) -> None:
    # 60,000 honest and 12,000 fakes; 6 standard errors. The twin: the weaker attack's gain.
    source = SeededSource(seed, "gain")
    symbols = source.child("symbols").below(6, HONEST).astype(np.int64)
    share = float((symbols == TARGET).mean())
    honest = mechanism.randomise(value_of(mechanism, symbols), source.child("honest"))
    bias = crafted_bias(support_of(mechanism), fakes=PART, honest=share)
    bias_of_inputs = input_bias(fakes=PART, honest=share)
    found = estimate_with(mechanism, honest, crafted_reports(mechanism, TARGET, FAKES))
    assert abs(found[0] - share - bias) < DEVIATIONS * found[1]
    assert abs(found[0] - share - bias_of_inputs) > DEVIATIONS * found[1]
    # Lying about the input alone gains the share of fakes, whatever epsilon is.
    lies = value_of(mechanism, np.full(FAKES, TARGET))
    weak = estimate_with(mechanism, honest, mechanism.randomise(lies, source.child("fakes")))
    assert abs(weak[0] - share - bias_of_inputs) < DEVIATIONS * weak[1]
    # No fakes, no gain.
    null = estimate_with(mechanism, honest, honest[:0])
    assert abs(null[0] - share) < DEVIATIONS * null[1]


def estimate_with(mechanism: Mechanism, honest: Reports, fakes: Reports) -> tuple[float, float]:
    """Return the target's estimate and its standard error over honest and fake reports."""
    assert fakes.dtype == honest.dtype and fakes.shape[1:] == honest.shape[1:]
    n = len(honest) + len(fakes)
    estimate = mechanism.estimate(mechanism.tally(honest) + mechanism.tally(fakes), n)
    place = 0 if isinstance(mechanism, BinaryResponse) else TARGET
    # Sampling a padded set adds a draw of its own: half as much again covers it.
    return float(estimate.value[place]), 1.5 * float(estimate.standard_error[place])


def test_less_epsilon_is_more_gain_for_crafted_reports_and_the_same_for_inputs() -> None:
    gains = [
        crafted_bias(support_of(UnaryEncoding.optimised(6, e)), fakes=0.05, honest=0.1)
        for e in (0.25, 1.0, 4.0, 30.0)
    ]
    assert gains == sorted(gains, reverse=True)
    # (1 - q) / (p - q) = 2 e / (e - 1) for the optimised encoding: at best two shares, not one.
    assert gains[0] == pytest.approx(0.05 * (2 / (1 - np.exp(-0.25)) - 0.1))
    assert gains[-1] == pytest.approx(0.05 * (2 - 0.1))
    assert input_bias(fakes=0.05, honest=0.1) == pytest.approx(0.045)


@pytest.mark.parametrize(
    ("mechanism", "kind"),
    [
        (ClickReport(6, 1.0, ClickEncoding.ONE_CLICK), clicks_kind(6)),
        (ClickReport(6, 1.0, ClickEncoding.PAD_AND_SAMPLE, most_clicks=2), clicks_kind(8)),
        (KaryResponse(6, 1.0), symbol_kind("symbols", 6)),
        (DeliveredClick(6, 1.0), symbol_kind("symbols", 12)),
    ],
    ids=["one-click", "pad-and-sample", "kary", "delivered"],
)
def test_crafted_reports_pass_as_frames(mechanism: Mechanism, kind: Kind, seed: int) -> None:
    reports = crafted_reports(mechanism, TARGET, 100)
    data = encode_frame(kind, 0, reports, SeededSource(seed, "frame"))
    frame = decode_frame(data, {kind.name: kind})
    assert np.array_equal(kind.tally(frame.batch), mechanism.tally(reports))


def test_crafted_subsets_have_the_right_size_and_spread_the_rest() -> None:
    mechanism = SubsetSelection(6, 1.0, subset=3)
    reports = crafted_reports(mechanism, TARGET, 500)
    assert (reports.sum(axis=1) == 3).all() and reports[:, TARGET].all()
    others = np.delete(reports.sum(axis=0), TARGET)
    assert others.max() - others.min() <= 1


@pytest.mark.statistical
def test_the_evasive_attacker_keeps_the_number_of_ones_and_gains_less(seed: int) -> None:
    # 60,000 honest and 12,000 fakes; 6 standard errors. The twin: the bold attacker's gain.
    encoding, source = UnaryEncoding.optimised(6, 3.0), SeededSource(seed, "evasive")
    symbols = source.child("symbols").below(6, HONEST + FAKES).astype(np.int64)
    drawn = encoding.randomise_values(symbols, source.child("honest"))
    honest, own = drawn[:HONEST], drawn[HONEST:]
    fakes = mimic(own, TARGET, source.child("moved"))
    assert np.array_equal(fakes.sum(axis=1), own.sum(axis=1))
    assert fakes[own.any(axis=1), TARGET].all()
    share = float((symbols[:HONEST] == TARGET).mean())
    expected = mimic_bias(encoding, fakes=PART, honest=share)
    bold = crafted_bias(support_of(encoding), fakes=PART, honest=share)
    found, error = estimate_with(encoding, honest, fakes)
    assert abs(found - share - expected) < DEVIATIONS * error
    assert abs(found - share - bold) > DEVIATIONS * error
    assert input_bias(fakes=PART, honest=share) < expected < bold


@pytest.mark.parametrize("ones", [0, 1])
def test_the_evasive_gain_is_that_of_reports_that_have_a_one(ones: int) -> None:
    encoding = UnaryEncoding.optimised(6, 3.0)
    rows, value = encoding.outputs(), np.arange(6) < ones
    some = float(np.exp(encoding.log_likelihood(rows, value))[rows.any(axis=1)].sum())
    listed = crafted_bias(support_of(encoding), fakes=0.1, honest=0.2, rate=some)
    assert mimic_bias(encoding, fakes=0.1, honest=0.2, ones=ones) == pytest.approx(listed)


def test_what_cannot_be_poisoned_is_refused() -> None:
    with pytest.raises(BadParameter, match="mechanism"):
        support_of(DiscreteLaplace(1.0, 0, 4))
    with pytest.raises(BadParameter, match="mechanism"):
        crafted_reports(DiscreteLaplace(1.0, 0, 4), 0, 1)
    with pytest.raises(BadParameter, match="target"):
        crafted_reports(KaryResponse(4, 1.0), 4, 1)
    with pytest.raises(BadParameter, match="target"):
        crafted_reports(ClickReport(6, 1.0, ClickEncoding.PAD_AND_SAMPLE, most_clicks=2), 6, 1)
    with pytest.raises(BadParameter, match="fakes"):
        input_bias(fakes=1.5, honest=0.1)
