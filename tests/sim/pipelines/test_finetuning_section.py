"""The report's section on fine-tuning: whatever was swept or not measured, it is drawn."""

from typing import Any

from finetuning_worlds import finetuning_world, run_finetuning
from noisefloor_sim.pipelines.api import Findings, PointFindings
from noisefloor_sim.pipelines.finetuning.section import report_section
from noisefloor_sim.report import readings
from noisefloor_sim.report.spec import Plot, Section, Table

PRINTED = {"method": "lora", "clipping": "printed", "steps": 2}


def point(settings: dict[str, Any]) -> PointFindings:
    """Return what a small world found, as one point of a sweep over epsilon and clipping."""
    swept = tuple((f"pipelines.finetuning.{key}", value) for key, value in settings.items())
    scenario = finetuning_world({**PRINTED, **settings})
    return PointFindings(swept, scenario, run_finetuning({**PRINTED, **settings}).found)


def items(found: Section, kind: type) -> dict[str, Any]:
    """Return plots or tables by their titles."""
    return {item.title: item for item in found.items if isinstance(item, kind)}


def test_audits_above_the_claim_are_counted_by_curve() -> None:
    points = [
        point({"clipping": clipping, "epsilon": epsilon})
        for clipping in ("joint", "printed")
        for epsilon in (1.0, 2.0)
    ]
    found = report_section(points)
    audit = items(found, Plot)["Claimed, proved and audited epsilon of a release"]
    said = readings.caption(audit)
    assert "clipping joint 0 of 2" in said
    assert "clipping printed 2 of 2" in said
    assert [one.name for one in audit.curves if one.role == "closed-form"] == [
        "clipping printed, proved"
    ], "proved is drawn where it is not what is claimed"
    clipped = items(found, Table)["Whether every group is clipped as declared"]
    assert "4 of 4 checks would have found" in readings.caption(clipped)
    assert "Texts are made up" in found.intro
    assert "small random one" in found.intro


def test_columns_that_were_measured_nowhere_are_left_out() -> None:
    found = report_section([point({"epsilon": 1.0})])
    tables = items(found, Table)
    assert "LiRA, area" not in tables["What attacks and audits reached"].header
    assert "What private examples look like to the training" not in tables
    assert not items(found, Plot), "one point has no axis"


def test_an_experiment_shows_examples_and_says_so() -> None:
    settings = {"method": "combined-lora", "experiment": True}
    scenario = finetuning_world(settings)
    swept = (("pipelines.finetuning.method", "combined-lora"),)
    found = report_section([PointFindings(swept, scenario, run_finetuning(settings).found)])
    assert "This is an experiment" in found.intro
    plots = items(found, Plot)
    assert len(plots["What gradients of single examples are multiplied by"].curves[0].x) == 21
    assert "Overlaps are" in readings.caption(
        plots["How much of a mask is that of the step before"]
    )


def test_a_point_at_which_nothing_was_measured_is_no_error() -> None:
    empty = PointFindings((), finetuning_world(), Findings((), ()))
    assert report_section([empty]).items == ()
