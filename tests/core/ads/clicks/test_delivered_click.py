"""Clicks on the delivered ad: the exact distribution, what it guards, and the rates that come of
it."""

import math
from functools import partial

import numpy as np
import pytest

import noisefloor.checks
from enumeration import enumerate_distribution, exact_worst
from noisefloor.ads.clicks.delivered_click import DeliveredClick, panel_clicks_kind
from noisefloor.ads.delivery.ad_request import AdDelivery, AdSelection
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import FiniteMechanism, Mechanism, exact_epsilon
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource, new_run
from noisefloor.roles import kinds_from_sizes
from statistics_of_tests import FALSE_ALARM, binomial_p, chi_square_p

EPSILONS = (0.1, 1.0, 4.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_enumerated_distribution_is_the_stated_one_and_meets_the_request(
    epsilon: float,
) -> None:
    click = DeliveredClick(3, epsilon)
    assert isinstance(click, Mechanism)
    assert isinstance(click, FiniteMechanism)
    distributions = []
    for value in range(6):
        distributions.append(enumerate_distribution(partial(click.randomise, np.array([value]))))
        stated = np.exp(click.log_likelihood(click.outputs(), value))
        exact = [float(distributions[-1].get(report, 0)) for report in range(6)]
        assert stated == pytest.approx(exact, abs=1e-13)
        assert set(distributions[-1]) == {value, value ^ 1}
    worst = float(exact_worst(zip(distributions[::2], distributions[1::2], strict=True)))
    for neighbours in (Neighbours.BIT, Neighbours.ITEM, Neighbours.USER):
        proved = click.guarantee(neighbours)
        assert worst <= proved.epsilon <= epsilon
        assert worst >= epsilon - 1e-6
        assert "given the delivered ad" in proved.reason
    assert exact_epsilon(click, Neighbours.BIT) == pytest.approx(worst, abs=1e-10)


def test_the_ad_itself_is_not_protected() -> None:
    """Its cost is the delivery's: another ad is distinguished for certain."""
    click = DeliveredClick(3, 1.0)
    logs = [click.log_likelihood(click.outputs(), value) for value in (0, 2)]
    assert math.isinf(np.abs(logs[0][:2] - logs[1][:2]).max())
    assert not click.guarantee(Neighbours.MOVE_ONE).is_finite
    assert "given the delivered ad" in click.claimed.reason


@pytest.mark.parametrize("choice", list(AdSelection), ids=lambda choice: choice.value)
def test_it_goes_with_requests_that_name_the_ad_and_with_no_slate(choice: AdSelection) -> None:
    delivery = AdDelivery(10, 1.0, choice)
    if delivery.is_slate:
        with pytest.raises(BadParameter, match="requests one ad"):
            DeliveredClick.after(delivery, 1.0)
    else:
        assert DeliveredClick.after(delivery, 1.0) == DeliveredClick(10, 1.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_clicks_are_unbiased_and_their_error_is_that_of_the_draws(epsilon: float) -> None:
    """From the exact distribution, for 30 users to whom the first of two ads was delivered, 12
    clicked."""
    click = DeliveredClick(2, epsilon)
    distributions = [np.exp(click.log_likelihood(click.outputs(), value)) for value in range(4)]
    singles = np.array([click.clicks(tally).value for tally in np.eye(4, dtype=np.int64)])
    means = np.array([distribution @ singles for distribution in distributions])
    truths = np.array([[0, 0], [1, 0], [0, 0], [0, 1]])
    assert means == pytest.approx(truths, abs=1e-9)
    variances = np.array([distribution @ singles**2 for distribution in distributions]) - means**2
    exact = math.sqrt(18 * variances[0, 0] + 12 * variances[1, 0])
    tally = np.array([14, 16, 0, 0])
    assert click.clicks(tally).standard_error == pytest.approx([exact, 0.0], rel=1e-9)
    assert exact == pytest.approx(math.sqrt(30) * math.exp(epsilon / 2) / math.expm1(epsilon))


def test_impressions_are_counted_exactly_and_rates_have_intervals() -> None:
    click = DeliveredClick(3, 2.0)
    tally = np.array([700, 300, 0, 0, 5, 5])
    assert click.shown(tally).tolist() == [1000, 0, 10]
    rates, clicks = click.rates(tally), click.clicks(tally)
    assert rates.value[0] == pytest.approx(clicks.value[0] / 1000)
    assert rates.low[0] < rates.value[0] < rates.high[0]
    assert np.isnan(rates.value[1])
    estimate = click.estimate(tally, 1010)
    assert estimate.value == pytest.approx(clicks.value / 1010)
    assert estimate.standard_error == pytest.approx(clicks.standard_error / 1010)


@pytest.mark.statistical
def test_sampled_reports_follow_the_distribution_and_not_one_ten_per_cent_off(seed: int) -> None:
    """n = 150 000; false alarm FALSE_ALARM."""
    click = DeliveredClick(3, 1.0)
    reports = click.randomise(np.full(150_000, 3), SeededSource(seed, "sampled"))
    distribution = np.exp(click.log_likelihood(click.outputs(), 3))
    assert chi_square_p(click.tally(reports), distribution) > FALSE_ALARM
    off = np.exp(DeliveredClick(3, 1.1).log_likelihood(click.outputs(), 3))
    assert chi_square_p(click.tally(reports), off) < FALSE_ALARM


@pytest.mark.statistical
def test_intervals_cover_the_rate(seed: int) -> None:
    """300 runs of 4 000 users; false alarm FALSE_ALARM. Half as wide they cover too little."""
    click = DeliveredClick(4, 1.0)
    drawn = SeededSource(6, "clicks").generator()
    shown, clicked = drawn.integers(0, 4, 4_000), drawn.random(4_000) < 0.3
    true = clicked[shown == 2].mean()
    hits = half = 0
    for run in range(300):
        reports = click.report(shown, clicked, SeededSource(seed, "cover", run))
        rates = click.rates(click.tally(reports))
        hits += int(rates.low[2] <= true <= rates.high[2])
        half += int(abs(rates.value[2] - true) <= 0.98 * rates.standard_error[2])
    assert binomial_p(hits, 300, 0.95) > FALSE_ALARM
    assert binomial_p(half, 300, 0.95) < FALSE_ALARM


def test_an_ad_and_a_bit_make_a_symbol(monkeypatch: pytest.MonkeyPatch) -> None:
    click = DeliveredClick(200, 1.0)
    symbols = click.symbols(np.array([0, 1, 199], dtype=np.uint8), [True, False, True])
    assert symbols.tolist() == [1, 2, 399]
    assert symbols.dtype == np.uint16
    monkeypatch.setattr(noisefloor.checks, "BLOCK", 64)
    shown = np.arange(300) % 200
    reports = click.report(shown, shown % 3 == 0, SeededSource(2, "blocks"))
    assert np.array_equal(reports >> 1, shown)


def test_adding_users_moves_nobodys_report() -> None:
    click, values = DeliveredClick(5, 1.0), np.arange(1_000) % 10
    reports = []
    for n in (300, 1_000):
        with new_run():
            reports.append(click.randomise(values[:n], SeededSource(4, "coins")))
    assert np.array_equal(reports[0], reports[1][:300])


def test_reports_fit_their_kind_of_frame() -> None:
    click = DeliveredClick(5, 1.0)
    reports = click.randomise(np.arange(1_000) % 10, SeededSource(4, "frame"))
    assert click.kind == kinds_from_sizes({"delivered-clicks": {"size": 5}})["delivered-clicks"]
    assert panel_clicks_kind(5) == kinds_from_sizes({"panel-clicks": {"size": 5}})["panel-clicks"]
    assert np.array_equal(click.kind.tally(click.kind.encode(reports)), click.tally(reports))


@pytest.mark.parametrize("bad", [[10], [-1], [0.5], ["a"], [[1]]])
def test_what_is_no_symbol_is_refused(bad: object) -> None:
    with pytest.raises(OutOfDomain, match="Expected"):
        DeliveredClick(5, 1.0).randomise(bad, SeededSource(4, "bad"))


def test_bits_of_other_users_are_refused() -> None:
    with pytest.raises(OutOfDomain, match="one bit for each of 2"):
        DeliveredClick(5, 1.0).symbols([0, 1], [True])
    with pytest.raises(BadParameter, match="ads"):
        DeliveredClick(1, 1.0)
    with pytest.raises(BadParameter, match="epsilon"):
        DeliveredClick(5, 0.0)
