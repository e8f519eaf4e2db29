"""Gates name metrics and claims that exist: what pipelines declare, and what they produce."""

import pytest

from declared_names import undeclared_names
from noisefloor.errors import BadScenario
from noisefloor.privacy import Claim, Guarantee, Neighbours
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.pipelines.api import Findings, Metric, NamedClaim
from noisefloor_sim.scenario import SPENDING_METRICS, WORLD_METRICS, Scenario, is_declared, loads
from sim.scenario.toy import MINIMAL
from sim.scenario.toy import scenario as toy_scenario
from simulated_worlds import simulated
from worlds import small_world

SCENARIO = """
name: named
seed: 3
question: Does this gate name anything?
pipelines: {clicks: {}, models: {}}
gates: ['%s']
"""


def gated(gate: str) -> Scenario:
    return loads(SCENARIO % gate, BLOCKS, "s.yaml")


@pytest.mark.parametrize(
    ("gate", "rule"),
    [
        (
            "clicks.eror_rms < 1",
            "Unknown metric 'clicks.eror_rms'. Near names: clicks.error_rms, "
            "clicks.error_relative, clicks.ctr_error, clicks.reports_refused.",
        ),
        (
            "ads.rmse < 1",
            "Unknown metric 'ads.rmse'. No name is near it; metrics.csv and privacy.json of a run "
            "list what there is.",
        ),
        (
            "world.frames_lat == 0",
            "Unknown metric 'world.frames_lat'. Near names: world.frames_late, "
            "world.frames_lost, world.frames_sent, world.frames_dead, world.frames_duplicate.",
        ),
        (
            "models.acuracy.last > 0",
            "Unknown metric 'models.acuracy.last'. Near names: models.accuracy.last, "
            "models.accuracy.release_*, models.accuracy.majority, models.accuracy.open, "
            "models.f1.last.",
        ),
        (
            "claims.models.clicks-split holds",
            "Unknown claim 'claims.models.clicks-split'. Near names: claims.models.release, "
            "claims.models.parameter, claims.models.members, claims.models.all_releases.",
        ),
        (
            "claims.clicks.*.usr holds",
            "Unknown relation 'usr'. Near names: user.",
        ),
    ],
)
def test_a_gate_on_what_nothing_produces_is_refused_with_the_near_names(
    gate: str, rule: str
) -> None:
    with pytest.raises(BadScenario) as refused:
        gated(gate)
    assert str(refused.value) == f"s.yaml:6: gates.0: {rule}"


@pytest.mark.parametrize(
    "gate",
    [
        "clicks.error_rms < 1",
        "clicks.estimate.day_3.ad_12 > 0",
        "models.attack.lira.tpr.at_0.001 < 0.5",
        "world.frames_late == 0",
        "claims.* holds",
        "claims.*.clicks-split holds",
        "claims.models.release.record-substitute.audited <= proved",
    ],
)
def test_a_gate_on_what_a_pipeline_declares_is_taken(gate: str) -> None:
    assert gated(gate).gates == (gate,)


def test_a_pipeline_that_declares_nothing_may_produce_anything() -> None:
    assert toy_scenario(MINIMAL, "gates: [toy.anything < 1, claims.toy.any holds]").gates


def test_the_metrics_of_the_world_are_those_that_are_declared() -> None:
    _, _, outcome = simulated(small_world())
    found = {f"world.{metric.name}" for metric in outcome.world}
    assert {name for name in found if not is_declared(name, SPENDING_METRICS)} == set(
        WORLD_METRICS
    )
    assert all(any(is_declared(name, (form,)) for name in found) for form in SPENDING_METRICS)


def test_a_result_without_a_declared_name_is_found() -> None:
    guarantee = Guarantee(1.0, Neighbours.USER)
    claim = NamedClaim("clicks-new", Claim(guarantee, guarantee))
    known = Metric("error_rms", 1.0), Metric("estimate.day_0.ad_1", 1.0)
    findings = {"clicks": Findings((*known, Metric("new", 1.0)), (claim,))}
    assert undeclared_names(small_world(), findings) == ["claims.clicks.clicks-new", "clicks.new"]
