"""Training reports, requests and shown ads as they are inspected: honest ones fit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ads_worlds import ads_world, run_ads_world
from noisefloor.ads.clicks import ImpressionReport
from noisefloor.ads.delivery import AdDelivery, AdSelection
from noisefloor.ads.training import (
    AdTraining,
    BitTraining,
    Broadcast,
    GradientBound,
    LaplaceTraining,
    Ratings,
    SpectralTraining,
    random_model,
)
from noisefloor.adversary.fit import UniformFit
from noisefloor.randomness import SeededSource
from noisefloor.wire import Kind, decode_frame, sealed_frames
from noisefloor_sim.inspection import SeenFrame, no_pairs
from noisefloor_sim.pipelines.ads.flows.choice_reference import noisy_max_chances
from noisefloor_sim.pipelines.ads.flows.report_reference import RatingInputs
from noisefloor_sim.pipelines.ads.flows.request_flow import RequestFlow
from noisefloor_sim.pipelines.ads.flows.shown_flow import ShownFlow, ShownTruth
from noisefloor_sim.pipelines.ads.flows.training_flow import reference_of

ADS, WIDE, USERS = 8, 3, 12_000
MODEL = random_model(ADS, WIDE, 1, scale=0.4)
SENT = Broadcast(MODEL, np.full(ADS, 0.5, dtype=np.float32))

TRAININGS: dict[str, AdTraining] = {
    "bits": BitTraining(ADS, WIDE, 1.0, 1, clip=0.03),
    "bits without offsets": BitTraining(ADS, WIDE, 1.0, 1, clip=0.1, offsets=False, centre=0.0),
    **{
        form.value: LaplaceTraining(ADS, WIDE, 2, 4.0, 4.0, form=form, clip=0.5)
        for form in GradientBound
        if form is not GradientBound.PRINTED
    },
    "spectral": SpectralTraining(ADS, WIDE, 1.0),
    "spectral at 4": SpectralTraining(ADS, WIDE, 4.0),
    "lite": SpectralTraining(ADS, WIDE, 1.0, form="lite"),
}


def ratings(users: int = USERS) -> Ratings:
    """Draw ratings of half of the ads."""
    draw = SeededSource(5, "ratings").generator()
    rated = draw.random((users, ADS)) < 0.5
    return Ratings(rated, draw.random((users, ADS)).astype(np.float32))


def with_more_epsilon(training: AdTraining) -> AdTraining:
    """Return the same training with half the noise on the device, and reports of the same size."""
    if isinstance(training, BitTraining):
        return replace(training, epsilon=2 * training.epsilon)
    faulty = replace(training)  # type: ignore[type-var] # all of them are dataclasses
    if isinstance(faulty, LaplaceTraining):
        noise = replace(faulty.noise)
        rate = 2 * faulty.noise.distribution.rate
        object.__setattr__(noise, "distribution", type(noise.distribution)(rate))
        object.__setattr__(faulty, "noise", noise)
        return faulty
    assert isinstance(faulty, SpectralTraining)
    for name in ("rated", "directions", "axes"):
        one = getattr(faulty, name)
        more = type(one)(one.dimension, 2 * one.epsilon, one.length, one.rows, one.top)
        object.__setattr__(faulty, name, more)
    object.__setattr__(faulty, "epsilon", 2 * faulty.epsilon)  # of a lite report
    return faulty


def fit_of(training: AdTraining, device: AdTraining, number: int) -> bool:
    """Let devices report, and tell whether their reports are rejected."""
    kept = ratings()
    inputs = RatingInputs(kept.rated, kept.rating)
    tastes = np.zeros((USERS, WIDE), dtype=np.float32)
    is_honest = int(training is device)
    source = SeededSource(6, "report", number, is_honest)
    reports = device.report(number, SENT, tastes, kept, source).reports
    draws = SeededSource(6, "draws", number, is_honest).generator().random((USERS, 2))
    found = reference_of(training).transformed(number, SENT, reports, inputs, draws)
    fit = UniformFit()
    for name, values, fault in found.named:
        fit.see(name, values, fault)
    columns = found.values.shape[1] // 2
    fit.see_pairs("parts", found.values[:, :columns], found.values[:, columns : 2 * columns])
    return fit.table.result().rejects


@pytest.mark.statistical
@pytest.mark.parametrize("name", TRAININGS)
def test_honest_training_reports_fit_and_half_noise_does_not(name: str) -> None:
    """False alarm 1e-10 each."""
    training = TRAININGS[name]
    for number in range(3 if isinstance(training, SpectralTraining) else 1):
        assert not fit_of(training, training, number)
        assert fit_of(training, with_more_epsilon(training), number)


@pytest.mark.parametrize("name", ["bits", "bits without offsets", "coordinate", "block"])
def test_likelihoods_of_gradients_are_those_of_the_mechanism(name: str) -> None:
    training, kept = TRAININGS[name], ratings(5)
    tastes = np.zeros((5, WIDE), dtype=np.float32)
    reports = training.report(0, SENT, tastes, kept, SeededSource(7, name)).reports
    inputs = RatingInputs(kept.rated, kept.rating)
    found = reference_of(training).log_likelihood(0, SENT, reports, inputs)
    for user in range(4):
        # Constants that no data change cancel in the difference of two users.
        pair = np.repeat(reports[user : user + 1], 2, axis=0)
        two = reference_of(training).log_likelihood(0, SENT, pair, inputs[np.array([user, 4])])
        own, other = (exact(training, reports[user], kept, tastes, one) for one in (user, 4))
        assert two[0] == pytest.approx(found[user])
        assert two[1] - two[0] == pytest.approx(other - own, abs=2e-3)


def exact(training: AdTraining, report: Any, kept: Ratings, tastes: Any, user: int) -> float:
    """Return the log-likelihood of a report by the mechanism, for one user's data."""
    one = np.array([user])
    if isinstance(training, BitTraining):
        cells = np.arange(training.cells, dtype=np.uint32)
        rows = Ratings(
            np.repeat(kept.rated[one], len(cells), 0), np.repeat(kept.rating[one], len(cells), 0)
        )
        near = np.repeat(tastes[one], len(cells), 0)
        values = np.clip(training.gradients(MODEL, near, rows, cells) / training.clip, -1, 1)
        return float(training.bit.log_likelihood(np.array([report]), values)[0])
    from noisefloor.ads.training import gradients

    assert isinstance(training, LaplaceTraining)
    row = gradients(MODEL, tastes[one], kept[one])[0]
    return float(training.noise.log_likelihood(report[None], row)[0])


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("name", ["spectral", "spectral at 4"])
def test_likelihoods_of_signs_are_those_of_the_mechanism(name: str, number: int) -> None:
    """Not of which ads are rated: candidates tie there, and are taken as alike."""
    training, kept = TRAININGS[name], ratings(6)
    assert isinstance(training, SpectralTraining)
    tastes = np.zeros((6, WIDE), dtype=np.float32)
    reports = training.report(number, SENT, tastes, kept, SeededSource(8, name, number)).reports
    inputs, reference = RatingInputs(kept.rated, kept.rating), reference_of(training)
    found = reference.log_likelihood(number, SENT, reports, inputs)
    mechanism = (training.rated, training.directions, training.axes)[number]
    vectors = reference.vectors(number, SENT, inputs)  # type: ignore[attr-defined] # spectral
    units = vectors / np.sqrt((vectors**2).sum(axis=1, keepdims=True))
    own = [mechanism.log_likelihood(reports[i : i + 1], units[i])[0] for i in range(6)]
    assert np.ptp(found - own) < 1e-6


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 8.0])
def test_chances_of_noisy_max_are_those_of_the_exact_sum(epsilon: float) -> None:
    delivery = AdDelivery(ADS, epsilon, AdSelection.NOISY_MAX)
    rows = SeededSource(9, "rows").generator().random((20, ADS))
    mechanism: Any = delivery.mechanism
    found = noisy_max_chances(mechanism.noise, mechanism.scores.grid(rows), delivery.steps)
    assert np.abs(found / delivery.shown_chances(rows) - 1).max() < 1e-4


CHOICES = [choice for choice in AdSelection if choice is not AdSelection.EXACT]


@pytest.mark.statistical
@pytest.mark.parametrize("choice", CHOICES)
def test_honest_requests_fit_and_requests_for_the_favourite_do_not(choice: AdSelection) -> None:
    """False alarm 1e-10 each."""
    scenario = ads_world(
        {"delivery": {"choice": "top-set"}}, population={"users": 2048, "cohort": 2048}
    )
    delivery = AdDelivery(ADS, 1.0, choice, slate=3)
    kept = ratings(2048)
    for is_raw in (False, True):
        flow = RequestFlow(delivery, scenario, 0.1, SeededSource(10, choice.value, int(is_raw)))
        truth = flow.truth(0, 0, np.arange(2048), no_pairs(), kept, MODEL)
        assert truth.scored is not None
        scores, order = truth.scored.scores, truth.scored.order
        some = len(scores)
        truth = replace(truth, users=np.arange(some))
        requests = delivery.request(scores, SeededSource(10, "draws", choice.value, int(is_raw)))
        if is_raw:
            best = np.sort(order[:, :3], axis=1) if delivery.is_slate else order[:, 0]
            requests = best.astype(requests.dtype)
        flow.inspect(seen_of(delivery.kind, requests, truth, choice.value, int(is_raw)))
        assert flow.fit().rejects is is_raw


def seen_of(kind: Kind, reports: Any, truth: object, *name: str | int) -> SeenFrame:
    """Return reports as they would arrive."""
    sealed = next(iter(sealed_frames(kind, 0, reports, SeededSource(11, "frame", *name))))
    return SeenFrame(decode_frame(sealed.data, {kind.name: kind}), sealed.order, truth, 0)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 8.0])
def test_honest_reports_of_shown_ads_fit_and_half_noise_does_not(epsilon: float) -> None:
    """False alarm 1e-10 each."""
    scenario = ads_world()
    report = ImpressionReport(ADS, epsilon)
    shown = SeededSource(12, "shown").generator().integers(0, ADS, 20_000)
    for times, is_rejected in ((1, False), (2, True)):
        response: Any = report.response
        device = replace(response, epsilon=times * epsilon)
        flow = ShownFlow(report, scenario, SeededSource(12, times))
        reports = device.randomise(shown, SeededSource(12, "reports", times))
        truth = ShownTruth(0, len(shown), np.arange(len(shown)), shown, no_pairs())
        flow.inspect(seen_of(report.kind, reports, truth, times))
        assert flow.fit().rejects is is_rejected


SLATES = {
    "delivery": {"choice": "slate"},
    "training": {"method": "bits", "rounds": 2, "local": "step"},
}


@pytest.mark.parametrize("ads", [{}, SLATES])
def test_an_honest_world_has_no_faults_and_its_claims_are_audited(ads: dict[str, Any]) -> None:
    simulated = run_ads_world(ads_world(ads, witnesses={"share": 0.2}))
    flows = {flow.flow: flow for flow in simulated.outcome.flows}
    assert "training" in flows
    assert "ad-requests" in flows
    for flow in flows.values():
        assert not flow.causes, flow
    claim = simulated.claim("training")
    assert claim.audited is not None
    assert claim.null is not None
    assert claim.audited.epsilon <= claim.proved.epsilon


def test_witnesses_change_no_sum_that_is_not_noise() -> None:
    names = ("requests", "requests_refused", "training.reports", "training.reports_late")
    values = [
        [
            run_ads_world(ads_world(SLATES, witnesses={"share": share})).value(name)
            for name in names
        ]
        for share in (0.0, 0.2)
    ]
    assert values[0] == values[1]
