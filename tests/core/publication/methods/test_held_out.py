"""An accuracy that is paid for: its cost, exact probabilities, and what its interval covers."""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import comb

from labelled_tables import ADD, SCHEMA, SWAP, a_cost, visits
from noisefloor.accounting import ReleaseLoss
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import TwoSidedGeometric
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.cell_noise import LaplaceCells
from noisefloor.publication.methods.held_out import (
    HeldOutPlan,
    accuracy_fields,
    plan_release,
    right_and_wrong,
)
from noisefloor.publication.methods.model_plan import INTEGER_NOISE, ModelPlan
from noisefloor.publication.methods.model_spec import ModelSpec
from noisefloor.publication.methods.registry import MODEL_METHODS
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.published_model import PublishedModel
from noisefloor.randomness import SecureSource, Source
from noisefloor.tables import OneHot, Records

METHODS: dict[str, tuple[Neighbours, dict[str, Any]]] = {
    "logistic": (ADD, {"steps": 5}),
    "private-sgd": (ADD, {"hidden": 4, "epochs": 1, "batch": 100}),
    "anonymising-first": (ADD, {"epochs": 1, "rows": 50}),
    "learning-first": (SWAP, {"hidden": 4, "epochs": 1}),
    "anonymised-learning": (SWAP, {"hidden": 4, "epochs": 1}),
}
TABLE = visits(300)
ENCODING = OneHot(SCHEMA, "buys")


def spec(neighbours: Neighbours = ADD, epsilon: float = 3.0, **more: Any) -> ModelSpec:
    parameters = {"label": "buys", "size": 300, "accuracy_epsilon": 1.0, **more}
    return ModelSpec.read(SCHEMA, a_cost(epsilon, neighbours), parameters)


@pytest.mark.parametrize("method", METHODS)
def test_every_classifier_may_state_an_accuracy_within_its_cost(method: str) -> None:
    neighbours, more = METHODS[method]
    plan = plan_release(MODEL_METHODS[method], spec(neighbours, **more))
    assert isinstance(plan, HeldOutPlan)
    parts = plan.inner.proved.epsilon + plan.noise.guarantee.epsilon
    assert parts - 1e-12 <= plan.proved.epsilon <= 3.0
    assert plan.proved.delta == plan.inner.proved.delta
    assert 1.9 < plan.inner.proved.epsilon <= 2.0
    assert plan.loss.events == plan.inner.loss.events
    assert plan.loss.epsilon >= plan.inner.loss.epsilon + plan.noise.guarantee.epsilon
    listed = [one.about for one in plan.claims]
    assert (listed[0], listed[-1]) == ("whole model", "accuracy")
    assert {one.claim.verdict for one in plan.claims} == {"holds"}
    content = plan.release(TABLE, SecureSource())
    said = plan.describe(content)["accuracy"]
    low, high = said["interval"]
    assert 0 <= low <= said["estimate"] <= high <= 1
    # 60 are held out, give or take 7; noise of scale 1 or 2 in each count.
    assert 0 < said["noisy_right"] + said["noisy_wrong"] < 150
    assert said["cost"]["epsilon"] == plan.noise.guarantee.epsilon <= 1.0
    # A failure would be seen: of one record all may be held out, or none.
    assert plan.inner.release(TABLE[:0], SecureSource())
    assert plan.release(TABLE[:1], SecureSource())


def test_requests_that_cannot_be_paid_or_make_no_sense_are_refused() -> None:
    logistic = MODEL_METHODS["logistic"]
    for more, rule in (
        ({"accuracy_epsilon": 3.0}, "below the epsilon of the cost"),
        ({"accuracy_epsilon": 0.0}, "accuracy_epsilon"),
        ({"accuracy_epsilon": True}, "accuracy_epsilon"),
        ({"accuracy_epsilon": math.inf}, "accuracy_epsilon"),
        ({"accuracy_epsilon": 50.0}, "below the epsilon"),
        ({"held_out": 0.0}, "held_out"),
        ({"held_out": 0.51}, "held_out"),
        ({"depth": 1}, "parameters"),
    ):
        with pytest.raises(BadParameter, match=rule):
            plan_release(logistic, spec(**more))
    with pytest.raises(BadParameter, match="synthetic-table publishes no classifier"):
        plan_release(MODEL_METHODS["synthetic-table"], spec(rows=10))
    alone = replace(spec(), parameters={"held_out": 0.2})
    with pytest.raises(BadParameter, match="some of steps, clip"):
        plan_release(logistic, alone)


def constant(label: int) -> PublishedModel:
    """Return the model that always predicts one class."""
    weights = np.zeros((ENCODING.width, 2), np.float32)
    return PublishedModel(ENCODING, ((weights, np.eye(2, dtype=np.float32)[label]),))


@dataclass(frozen=True)
class VotePlan(ModelPlan):
    """The more frequent class, by a randomised response: two outcomes, known probabilities."""

    NAME = "vote"
    HELP = ""
    FLOATS = INTEGER_NOISE

    spec: ModelSpec

    @classmethod
    def of(cls, spec: ModelSpec) -> "VotePlan":
        return cls(spec)

    @property
    def proved(self) -> Guarantee:
        return Guarantee(self.spec.cost.epsilon, ADD, model=TrustModel.CENTRAL)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {}

    def probability(self, records: Records) -> float:
        """Return the probability of class 1."""
        truth = 2 * int(records.codes["buys"].sum()) > records.count
        odds = math.exp(self.spec.cost.epsilon)
        return odds / (1 + odds) if truth else 1 / (1 + odds)

    def release(
        self, records: Records, source: Source, residuals: ResidualObserver | None = None
    ) -> bytes:
        hit = source.stage("vote").bernoulli(int(self.probability(records) * 2**64), 1)
        return constant(int(hit[0])).written()


def distribution(plan: HeldOutPlan, records: Records, reach: int) -> dict[Any, float]:
    """Return the probability of every (class, noisy right, noisy wrong) within reach."""
    inner = plan.inner
    assert isinstance(inner, VotePlan)
    found: dict[Any, float] = {}
    noisy = list(itertools.product(range(-reach, reach + 1), repeat=2))
    for bits in itertools.product((False, True), repeat=records.count):
        held_out = np.array(bits, dtype=bool)
        weight = plan.share ** held_out.sum() * (1 - plan.share) ** (~held_out).sum()
        one = inner.probability(records[~held_out])
        for label, chance in ((0, 1 - one), (1, one)):
            counts = right_and_wrong(constant(label), records[held_out])
            for seen in noisy:
                at = plan.noise.log_likelihood(np.array(seen), counts)
                key = (label, *seen)
                found[key] = found.get(key, 0.0) + weight * chance * math.exp(at)
    return found


def pairs(one: dict[Any, float], other: dict[Any, float]) -> Iterator[tuple[float, float]]:
    return ((one[key], other[key]) for key in one)


def test_all_that_is_released_costs_what_is_proved_by_enumeration() -> None:
    plan = plan_release(VotePlan, spec(epsilon=1.5, accuracy_epsilon=0.5, held_out=0.3))
    assert isinstance(plan, HeldOutPlan)
    few = TABLE[np.array([0, 1, 2])]
    both = distribution(plan, few, 6), distribution(plan, few[:2], 6)
    worst = max(abs(math.log(one / other)) for one, other in pairs(*both))
    assert worst <= plan.proved.epsilon
    # A record is in one part only: the truth is the larger of both, and not the sum.
    assert worst <= plan.inner.proved.epsilon + 1e-9
    # Without noise in the counts the same enumeration finds far more.
    loud = replace(plan, noise=LaplaceCells(30.0, ADD))
    both = distribution(loud, few, 3), distribution(loud, few[:2], 3)
    worst = max(abs(math.log(one / other)) for one, other in pairs(*both))
    assert worst > 5 * plan.proved.epsilon


def test_what_is_counted_is_held_out_and_nothing_else() -> None:
    seen: list[Records] = []

    @dataclass(frozen=True)
    class WatchedPlan(VotePlan):
        def release(
            self, records: Records, source: Source, residuals: ResidualObserver | None = None
        ) -> bytes:
            seen.append(records)
            return constant(1).written()

    plan = plan_release(WatchedPlan, spec(epsilon=50.0, accuracy_epsilon=39.0, held_out=0.25))
    content = plan.release(TABLE, SecureSource())
    (trained,) = seen
    right, wrong = PublishedModel.read(content).held_out or (0, 0)
    # With epsilon 39 noise is not 0 once in e**39: the counts are exact.
    assert right + wrong == 300 - trained.count
    assert right == int(TABLE.codes["buys"].sum()) - int(trained.codes["buys"].sum())
    assert 30 < right + wrong < 130  # binomial, 75 and 7.5: off by more once in 10**9


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    """By enumeration over samples and both noises; a bare ratio with its noise would not."""
    n, rate, reach = 25, 1.0, 16
    noise = np.arange(-reach, reach + 1)
    chances = np.exp(-rate * np.abs(noise)) * math.tanh(rate / 2)

    @cache
    def interval(right: int, wrong: int) -> tuple[float, float]:
        low, high = accuracy_fields(right, wrong, rate)["interval"]
        return low, high

    for truth in (0.02, 0.5, 0.9):
        covered = 0.0
        for right in range(n + 1):
            weight = comb(n, right) * truth**right * (1 - truth) ** (n - right)
            if weight < 1e-6:
                continue
            for (a, p), (b, q) in itertools.product(zip(noise, chances, strict=True), repeat=2):
                low, high = interval(right + int(a), n - right + int(b))
                covered += weight * p * q * (low <= truth <= high)
        assert covered >= 0.95


def test_the_reach_of_the_noise_is_that_of_the_distribution() -> None:
    mechanism = LaplaceCells(0.5, ADD).mechanism.noise
    assert isinstance(mechanism, TwoSidedGeometric)
    reach = accuracy_fields(10, 10, float(mechanism.rate))["noise_within"]
    beyond = 2 * np.exp(mechanism.log_survival(np.array([reach + 1, reach])))
    assert beyond[0] <= 0.0125 < beyond[1]


def test_an_accuracy_without_records_says_nothing() -> None:
    said = accuracy_fields(-3, 1, 1.0)
    assert (said["estimate"], said["interval"]) == (None, [0.0, 1.0])


def test_the_counts_of_a_file_are_read_back_and_others_refused() -> None:
    model = replace(constant(1), held_out=(-3, 40))
    assert PublishedModel.read(model.written()).held_out == (-3, 40)
    assert PublishedModel.read(constant(1).written()).held_out is None


def test_a_loss_of_parts_is_never_below_their_sum() -> None:
    plan = plan_release(VotePlan, spec(epsilon=1.3, accuracy_epsilon=0.1))
    assert isinstance(plan, HeldOutPlan)
    whole = ReleaseLoss.of(plan.proved)
    for order in (2, 16):
        assert plan.loss.renyi(order, ADD) >= whole.renyi(order, ADD) - 1
