"""Training by bits: the exact distribution of a report, what it guarantees, and that it learns."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from enumeration import Distribution, enumerate_distribution, exact_worst, likelihoods
from noisefloor.ads.training.bit_training import BitTraining
from noisefloor.ads.training.evaluation import item_means, mean_model, rmse
from noisefloor.ads.training.factorisation import AdModel, Ratings, Single, fit_tastes
from noisefloor.ads.training.rounds import AdTraining, Broadcast, epsilon_share
from noisefloor.errors import BadParameter
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource, Source
from statistics_of_tests import FALSE_ALARM, binomial_p

MODEL = AdModel(
    0.5,
    np.array([0.1, -0.2], dtype=np.float32),
    np.array([[0.6, 0.8], [-0.5, 0.3]], dtype=np.float32),
)
SMALL = BitTraining(2, 2, 3.0, 2, clip=0.05, local="step")


def profiles() -> list[Ratings]:
    """Return every profile of ratings 0 and 1, or none, of two ads."""
    found = []
    for pair in itertools.product([None, 0.0, 1.0], repeat=2):
        rated = np.array([[one is not None for one in pair]])
        rating = np.array([[np.nan if one is None else one for one in pair]], dtype=np.float32)
        found.append(Ratings(rated, rating))
    return found


def distribution_of(training: BitTraining, ratings: Ratings) -> Distribution:
    def randomise(source: Source) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        tastes = np.full((1, training.dimension), 0.5, dtype=np.float32)
        reports = training.report(0, Broadcast(MODEL), tastes, ratings, source).reports
        return np.asarray(reports)

    return enumerate_distribution(randomise)


def all_gradients(
    training: BitTraining, model: AdModel, tastes: Single, ratings: Ratings
) -> Single:
    """Return each user's gradient in every cell, one cell after the other."""
    cells = [np.full(len(ratings), cell, dtype=np.uint32) for cell in range(training.cells)]
    return np.stack([training.gradients(model, tastes, ratings, one) for one in cells], axis=1)


def by_hand(training: BitTraining, model: AdModel, tastes: Single, ratings: Ratings) -> Single:
    """Return each user's gradient in every cell, from the formula."""
    error = np.where(ratings.rated, ratings.rating - model.predict(tastes), 0.0)
    known = tastes
    if training.offsets:
        known = np.concatenate([tastes, np.ones((len(tastes), 1), np.float32)], axis=1)
    return np.asarray(-2 * error[:, :, None] * known[:, None, :]).reshape(len(tastes), -1)


def crowd(users: int, ads: int) -> Ratings:
    draw = SeededSource(3, "crowd", users, ads).generator()
    rating = draw.random((users, ads), dtype=np.float32) ** 2
    return Ratings(draw.random((users, ads)) < 0.4, rating)


@pytest.mark.parametrize("local", ["ridge", "step"])
@pytest.mark.parametrize("offsets", [True, False])
def test_no_two_profiles_are_distinguished_by_more_than_the_share(
    local: str, offsets: bool
) -> None:
    training = BitTraining(2, 2, 3.0, 2, clip=0.05, local=local, offsets=offsets)
    distributions = [distribution_of(training, ratings) for ratings in profiles()]
    worst = exact_worst(itertools.combinations(distributions, 2))
    one = training.cost(0).epsilon
    assert float(worst) <= one <= 1.5
    assert one == pytest.approx(1.5, abs=1e-6)
    # The clip is so low that some profiles sit at its two ends: the bound is reached.
    assert float(worst) == pytest.approx(1.5, abs=1e-4)


def test_a_report_has_the_distribution_of_the_clipped_gradient() -> None:
    for ratings in profiles():
        tastes = np.full((1, 2), 0.5, dtype=np.float32)
        SMALL.update_tastes(MODEL, tastes, ratings)
        true = by_hand(SMALL, MODEL, tastes, ratings)[0] / SMALL.clip
        expected = likelihoods(SMALL.bit, SMALL.bit.outputs(), np.clip(true, -1, 1))
        for report, chance in distribution_of(SMALL, ratings).items():
            assert float(chance) == pytest.approx(math.exp(expected[report]), rel=1e-4)


def test_the_cell_does_not_depend_on_the_ratings() -> None:
    for ratings in profiles():
        distribution = distribution_of(SMALL, ratings)
        for cell in range(SMALL.cells):
            assert distribution[2 * cell] + distribution[2 * cell + 1] == Fraction(1, SMALL.cells)


@pytest.mark.parametrize("offsets", [True, False])
def test_gradients_are_those_of_the_formula(offsets: bool) -> None:
    training = BitTraining(4, 3, 1.0, 1, offsets=offsets)
    ratings, model = crowd(50, 4), training.start().model
    tastes = fit_tastes(model, ratings, 0.1)
    found = all_gradients(training, model, tastes, ratings)
    np.testing.assert_allclose(found, by_hand(training, model, tastes, ratings), atol=1e-5)


@pytest.mark.parametrize("rounds", [1, 3, 7, 10, 20])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_guarantee_is_within_the_request(epsilon: float, rounds: int) -> None:
    training = BitTraining(5, 2, epsilon, rounds)
    proved = training.guarantee(Neighbours.USER)
    assert training.claimed.epsilon == epsilon
    assert epsilon - 1e-6 <= proved.epsilon <= epsilon
    assert proved.epsilon >= rounds * training.cost(0).epsilon * (1 - 1e-15)
    once = BitTraining(5, 2, epsilon, rounds, once=True)
    assert once.guarantee().epsilon == once.cost(0).epsilon
    assert once.cost(0).epsilon == pytest.approx(epsilon, abs=1e-6)
    assert not training.guarantee(Neighbours.DOCUMENT).is_finite


@pytest.mark.parametrize("parts", [1, 3, 7, 49, 1000])
def test_shares_never_add_up_to_more(parts: int) -> None:
    for epsilon in (0.1, 0.3, 1.0, 7.7):
        share = epsilon_share(epsilon, parts)
        assert Fraction(share) * parts <= Fraction(epsilon)
        assert share == pytest.approx(epsilon / parts, rel=1e-15)


def test_everybody_reports_each_round_or_once() -> None:
    lots = SeededSource(1, "lots").generator().integers(0, 1 << 32, 1_000, dtype=np.uint32)
    often, once = BitTraining(5, 2, 1.0, 4), BitTraining(5, 2, 1.0, 4, once=True)
    assert all(often.reporters(number, lots).all() for number in range(4))
    rounds = np.array([once.reporters(number, lots) for number in range(4)])
    assert (rounds.sum(axis=0) == 1).all()
    assert (rounds.sum(axis=1) > 150).all()


@pytest.mark.statistical
def test_the_estimated_gradient_is_that_of_the_users(seed: int) -> None:
    # n = 200,000; nine cells, whose squared deviations add up to a chi-square.
    training = BitTraining(3, 2, 4.0, 2, clip=0.3)
    ratings, sent = crowd(200_000, 3), training.start()
    tastes = np.zeros((len(ratings), 2), dtype=np.float32)
    reports = training.report(0, sent, tastes, ratings, SeededSource(seed, "bits")).reports
    found = training.clip * training.bit.estimate(training.bit.tally(reports), len(reports)).value
    clipped = np.clip(by_hand(training, sent.model, tastes, ratings), -0.3, 0.3)
    truth = clipped.mean(axis=0, dtype=np.float64)
    noise = training.gradient_deviation(len(reports))
    statistic = (((found - truth) / noise) ** 2).sum()
    assert stats.chi2.sf(statistic, training.cells) > FALSE_ALARM
    wrong = (((found - 1.2 * truth) / noise) ** 2).sum()
    assert stats.chi2.sf(wrong, training.cells) < FALSE_ALARM


@pytest.mark.statistical
def test_the_noise_of_the_gradient_is_as_the_closed_form_says(seed: int) -> None:
    # Ten rounds of n = 20,000 users without ratings: 400 estimates of zero.
    training = BitTraining(20, 2, 8.0, 10, clip=0.1, offsets=False)
    nobody = Ratings(np.zeros((20_000, 20), np.bool_), np.zeros((20_000, 20), np.float32))
    tastes, source = np.zeros((20_000, 2), np.float32), SeededSource(seed, "noise")
    found = []
    for number in range(10):
        sent = training.report(number, training.start(), tastes, nobody, source.child(number))
        estimate = training.bit.estimate(training.bit.tally(sent.reports), 20_000)
        found.append(training.clip * estimate.value)
    closed = math.sqrt(40) / math.tanh(8.0 / 20) * 0.1 / math.sqrt(20_000)
    assert training.gradient_deviation(20_000) == pytest.approx(closed, rel=1e-6)
    statistic = float((np.array(found) ** 2).sum()) / closed**2
    assert 2 * min(stats.chi2.sf(statistic, 400), stats.chi2.cdf(statistic, 400)) > FALSE_ALARM
    assert stats.chi2.cdf(statistic / 1.5**2, 400) < FALSE_ALARM


@pytest.mark.statistical
def test_the_clip_rate_is_that_of_the_drawn_cells(seed: int) -> None:
    # n = 100,000 cells, each clipped with the share of the user's cells that are.
    training = BitTraining(3, 2, 4.0, 2, clip=0.1)
    ratings, sent = crowd(100_000, 3), training.start()
    tastes = np.zeros((len(ratings), 2), dtype=np.float32)
    report = training.report(0, sent, tastes, ratings, SeededSource(seed, "clip"))
    values = by_hand(training, sent.model, tastes, ratings)
    share = float((np.abs(values) > 0.1).mean())
    assert report.values == 100_000
    assert binomial_p(report.clipped, report.values, share) > FALSE_ALARM
    assert binomial_p(report.clipped, report.values, 1.1 * share) < FALSE_ALARM
    assert report.norm == pytest.approx(math.sqrt(float((values**2).mean())), rel=0.1)


def trained(training: BitTraining, ratings: Ratings) -> AdModel:
    sent, source = training.start(), SeededSource(4, "training")
    tastes = np.zeros((len(ratings), training.dimension), dtype=np.float32)
    for number in range(training.rounds):
        report = training.report(number, sent, tastes, ratings, source.child(number))
        sent = training.update(number, sent, training.bit.tally(report.reports), len(ratings))
    return sent.model


@pytest.mark.parametrize("local", ["ridge", "step"])
def test_many_users_and_a_low_clip_beat_the_means(local: str) -> None:
    # A fixed seed and a wide margin; a large epsilon stands for many more users.
    draw = SeededSource(2, "world").generator()
    factors = draw.normal(size=(10, 2)) * 0.2
    liking = 0.5 + draw.normal(size=(40_000, 2)) @ factors.T
    rating = np.clip(liking + 0.05 * draw.normal(size=liking.shape), 0, 1).astype(np.float32)
    rated = draw.random(rating.shape) < 0.5
    back = rated & (draw.random(rating.shape) < 0.2)
    train, held_out = Ratings(rated & ~back, rating), Ratings(back, rating)
    means = mean_model(item_means(train), 10, 2)
    floor = rmse(means, np.zeros((len(train), 2), np.float32), held_out)
    model = trained(BitTraining(10, 2, 100.0, 10, clip=0.03, local=local), train)
    assert rmse(model, fit_tastes(model, train, 0.1), held_out) < 0.8 * floor
    assert np.linalg.norm(model.factors, axis=1).max() <= 1 + 1e-6


def test_a_training_satisfies_the_protocol_and_keeps_no_state() -> None:
    training: AdTraining = SMALL
    assert training.start().model.factors.tobytes() == training.start().model.factors.tobytes()
    assert training.kind(0) == training.kind(1)
    assert training.kind(0).cells == 2 * SMALL.cells


def test_the_rate_is_given_or_follows_from_public_numbers() -> None:
    assert BitTraining(20, 3, 8.0, 20, clip=0.03, rate=45.0).rate_for(10) == 45.0
    rule = BitTraining(20, 3, 8.0, 20, clip=0.03)
    assert rule.rate_for(10**6) == pytest.approx(60, abs=1)
    assert rule.rate_for(10**4) == pytest.approx(rule.rate_for(10**6) / 10)
    assert rule.rate_for(10**12) == pytest.approx(2 / 0.03)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ads", 0),
        ("dimension", 0),
        ("epsilon", 0.0),
        ("rounds", 0),
        ("clip", 0.0),
        ("clip", math.nan),
        ("rate", -1.0),
        ("weight", -0.1),
        ("local", "nowhere"),
        ("ridge", 0.0),
        ("centre", 1.5),
        ("seed", -1),
    ],
)
def test_impossible_settings_are_refused(name: str, value: object) -> None:
    settings: dict[str, object] = {"ads": 3, "dimension": 2, "epsilon": 1.0, "rounds": 2}
    with pytest.raises(BadParameter, match=name):
        BitTraining(**{**settings, name: value}).start()  # type: ignore[arg-type]  # the fault
