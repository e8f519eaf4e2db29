"""The report's section on records: whatever was swept or not measured, it is drawn."""

from pathlib import Path

from collection_runs import record_world, run_record_world
from noisefloor_sim.pipelines.api import Findings, PointFindings
from noisefloor_sim.pipelines.collection.section import report_section
from noisefloor_sim.report.page import write
from noisefloor_sim.report.spec import Page, Plot, Section, Table


def swept(*places: float) -> list[PointFindings]:
    """Return a sweep over epsilon and two methods."""
    found = []
    for epsilon in places:
        for method in ("joint-bayes", "unified"):
            block = {"epsilon": epsilon, "method": method, "questions": "protected"}
            scenario = record_world(block)
            settings = (
                ("pipelines.collection.epsilon", epsilon),
                ("pipelines.collection.method", method),
            )
            found.append(PointFindings(settings, scenario, run_record_world(scenario).found))
    return found


def titles(found: Section, kind: type) -> list[str]:
    """Return the titles of the plots, or of the tables."""
    return [item.title for item in found.items if isinstance(item, kind)]


def test_curves_run_along_epsilon_with_their_lines() -> None:
    found = report_section(swept(2.0, 8.0))
    plots = {item.title: item for item in found.items if isinstance(item, Plot)}
    device = plots["How often the true label is named, on the device"]
    assert {curve.role for curve in device.curves} == {"measured", "bound", "baseline"}
    assert sum(curve.role == "baseline" for curve in device.curves) == 1
    label = plots["How often the adversary is right: the label, from one report in training"]
    assert {"measured", "closed-form", "bound", "baseline"} == {one.role for one in label.curves}
    assert "Questions on each day" in plots
    assert titles(found, Table) == [
        "How often the adversary is right",
        "Lead over the majority class",
        "What each phase took of a mean user",
        "Sizes",
    ]


def test_one_place_is_shown_as_tables(tmp_path: Path) -> None:
    found = report_section(swept(4.0))
    assert "How often the adversary is right" in titles(found, Table)
    assert titles(found, Plot) == ["Questions on each day"]
    page = Page("records", "?", "", "As expected.", verdict_ok=True, sections=(found,))
    write(page, tmp_path / "page.html")
    assert "Collection of records" in (tmp_path / "page.html").read_text()


def test_a_point_where_nothing_was_found_is_drawn_all_the_same() -> None:
    scenario = record_world({"epsilon": 3.0})
    empty = PointFindings((("pipelines.collection.epsilon", 3.0),), scenario, Findings((), ()))
    assert "Collection of records" in report_section([empty]).title
    beside = report_section([*swept(2.0, 8.0), empty])
    assert titles(beside, Plot) == titles(report_section(swept(2.0, 8.0)), Plot)


def test_shared_rows_and_ranges_of_data_are_stated() -> None:
    block = {"source": "wdbc"}
    scenario = record_world(block, population={"users": 2000, "cohort": 256})
    found = report_section([PointFindings((), scenario, run_record_world(scenario).found)])
    assert "with replacement" in found.intro
    assert "Ranges are those of a public data set" in found.intro
    assert "with replacement" not in report_section(swept(4.0)).intro
