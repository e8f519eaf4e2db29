"""The pipeline of ``docs/adding-a-pipeline.md`` runs as it stands on the page."""

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from doc_blocks import blocks_of
from noisefloor.distributions import ONE
from noisefloor.mechanisms import BinaryResponse
from noisefloor.randomness import new_run
from noisefloor_sim.pipelines import api, registry
from noisefloor_sim.pipelines.api import Findings, PipelineType, PointFindings
from noisefloor_sim.report import Plot, Table, readings
from noisefloor_sim.runs.answers import check_findings
from noisefloor_sim.runs.engine import Engine, RunOutcome
from noisefloor_sim.runs.gating import check_gates
from noisefloor_sim.runs.results import PointResult
from noisefloor_sim.scenario import Blocks, expand, loads

PAGE = "adding-a-pipeline.md"
NAME = "noisefloor_sim.pipelines.wearers"
(CODE, LINES), (SCENARIO,) = blocks_of(PAGE, "python"), blocks_of(PAGE, "yaml")

FALSE_ALARM = 1.3e-4
"""Of the estimates: two points, each four standard errors from the truth at most."""


@pytest.fixture
def pipelines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, PipelineType]:
    """Register the page's module by the page's two lines, and return the registry."""
    file = tmp_path / "wearers.py"
    file.write_text(CODE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(NAME, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, NAME, module)
    spec.loader.exec_module(module)
    return registered(LINES)


def registered(lines: str) -> Mapping[str, PipelineType]:
    """Return the registry with an import and an entry added."""
    imported, entry = lines.splitlines()
    text = Path(registry.__file__).read_text(encoding="utf-8")
    before = "    MODELS.name: MODELS,\n"
    assert text.count(before) == 1
    text = text.replace(before, f"{before}{entry}\n")
    made = ModuleType("registry")
    exec(compile(f"{imported}\n{text}", "registry.py", "exec"), made.__dict__)  # noqa: S102  our own page
    listed: Mapping[str, PipelineType] = made.PIPELINES
    return listed


def blocks(pipelines: Mapping[str, PipelineType]) -> Blocks:
    return {name: kind.block for name, kind in pipelines.items()}


def outcomes(
    pipelines: Mapping[str, PipelineType], text: str
) -> list[tuple[PointFindings, RunOutcome]]:
    found = []
    for point in expand(loads(text, blocks(pipelines)), blocks(pipelines)):
        with new_run():
            outcome = Engine(point.scenario, pipelines).run()
        findings = outcome.findings["wearers"]
        found.append((PointFindings(point.settings, point.scenario, findings), outcome))
    return found


def test_it_is_one_file_of_a_hundred_lines_and_two_lines_more() -> None:
    assert len(LINES.splitlines()) == 2
    body = CODE.split("KIND = ")[1]
    assert len([line for line in body.splitlines() if line.strip()]) < 100
    assert max(len(line) for line in CODE.splitlines()) <= 99


def errors_away(point: PointFindings, epsilon: float | None = None) -> float:
    """Return how many standard errors the estimate is off, read as if epsilon were another."""
    share, true = point.metric("share"), point.metric("share.true")
    assert share is not None and true is not None
    used = dict(point.settings)["pipelines.wearers.epsilon"]
    assert isinstance(used, float)
    sent, read = (BinaryResponse(one).flip / ONE for one in (used, epsilon or used))
    value = (share.value * (1 - 2 * sent) + sent - read) / (1 - 2 * read)
    return abs(value - true.value) / ((share.high - share.low) / (2 * api.Z))


@pytest.mark.statistical
def test_its_estimate_is_near_the_truth_and_not_if_epsilon_were_a_fifth_larger(
    pipelines: Mapping[str, PipelineType],
) -> None:
    small, large = (point for point, _ in outcomes(pipelines, SCENARIO))
    assert max(errors_away(small), errors_away(large)) < 4
    assert errors_away(large, 2.4) > 4  # noise of the stated epsilon is told from that of another


def test_its_frames_are_counted(
    pipelines: Mapping[str, PipelineType],
) -> None:
    for point, outcome in outcomes(pipelines, SCENARIO):
        world = {metric.name: metric.value for metric in outcome.world}
        assert world["frames_sent"] == world["frames_counted"] == 20  # a cohort each, on one day
        assert "impressions_counted" not in world
        share, true = point.metric("share"), point.metric("share.true")
        assert share is not None and true is not None
        assert share.n > 15_000
        assert 0.15 < true.value < 0.25  # the scenario's default: a fifth owns one


def test_its_attack_meets_its_closed_form_and_its_claim_holds(
    pipelines: Mapping[str, PipelineType],
) -> None:
    audited = []
    for point, outcome in outcomes(pipelines, SCENARIO):
        success, exact, bound = (
            point.metric(f"attack.bit.{name}") for name in ("success", "closed_form", "bound")
        )
        assert success is not None and exact is not None and bound is not None
        half = (success.high - success.low) / 2
        assert abs(success.value - exact.value) < 2.5 * half  # 4.9 standard errors
        assert exact.value == pytest.approx(bound.value)  # one bit: the best attack there is
        (named,) = outcome.findings["wearers"].claims
        assert named.claim.verdict == "holds"
        assert named.claim.audited is not None
        audited.append(named.claim.audited.epsilon)
        assert audited[-1] <= named.claim.proved.epsilon
        assert [one.verdict for one in named.claim.evidence] == ["consistent"]
    assert 0 <= audited[0] < 0.5 < audited[1]  # at 0.5 and at 2: few witnesses show little


def test_its_gates_pass_and_its_section_is_drawn(pipelines: Mapping[str, PipelineType]) -> None:
    scenario = loads(SCENARIO, blocks(pipelines))
    points, ran = expand(scenario, blocks(pipelines)), outcomes(pipelines, SCENARIO)
    results = {
        point.id: PointResult(point.id, "", 5, "corrected", outcome.all_findings, 0.0, 0.0)
        for point, (_, outcome) in zip(points, ran, strict=True)
    }
    assert all(gate.passed for gate in check_gates(scenario.gates, points, results))
    (finding,) = check_findings(scenario.findings, points, results)
    assert finding.is_true
    assert finding.text.startswith("At epsilon 2 a report names the bit in 0.8")
    section = pipelines["wearers"].section([point for point, _ in ran])
    table, plot = section.items
    assert isinstance(table, Table) and isinstance(plot, Plot)
    assert len(table.rows) == 2
    assert [curve.role for curve in plot.curves] == ["measured", "closed-form", "bound"]
    assert "contain the closed form" in readings.caption(plot)


def test_without_its_attack_it_is_not_audited(pipelines: Mapping[str, PipelineType]) -> None:
    beside = SCENARIO.split("sweep:")[0].replace(
        "{wearers:", "{clicks: {canaries: 1000}, wearers:"
    )
    text = f"{beside}attacks: [clicks.single-bit]\n"
    ((point, outcome),) = outcomes(pipelines, text.replace("20000", "2000"))
    assert point.metric("attack.bit.success") is None
    found: Findings = outcome.findings["wearers"]
    assert found.claims[0].claim.audited is None
    assert point.metric("share") is not None
