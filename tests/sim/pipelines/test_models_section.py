"""The report's section on published models: whatever was swept or not measured, it is drawn."""

from pathlib import Path

from model_worlds import model_world, run_model_world, run_weekly_world
from noisefloor_sim.pipelines.api import Findings, Metric, PointFindings
from noisefloor_sim.pipelines.models.section import report_section
from noisefloor_sim.report import readings
from noisefloor_sim.report.page import write
from noisefloor_sim.report.spec import Page, Plot, Section, Table

TABLES = [
    "How good the last release is, and what it costs",
    "What each attack reached",
    "Whether the auditor can be trusted",
    "Whether releases carry the declared noise",
    "What all releases cost",
]


def swept(*places: float) -> list[PointFindings]:
    """Return a sweep over epsilon and two methods."""
    found = []
    for epsilon in places:
        for method in ("anonymising-first", "learning-first"):
            scenario = model_world({"epsilon": epsilon, "method": method})
            settings = (
                ("pipelines.models.epsilon", epsilon),
                ("pipelines.models.method", method),
            )
            found.append(PointFindings(settings, scenario, run_model_world(scenario).found))
    return found


def by_width(variant: str) -> list[PointFindings]:
    """Return a sweep over the widths of networks."""
    found = []
    for hidden in ("none", "4"):
        block = {"hidden": hidden, "method": "learning-first", "epsilon": 0.1}
        scenario = model_world(block, variant=variant)
        settings = (("pipelines.models.hidden", hidden), ("variant", variant))
        found.append(PointFindings(settings, scenario, run_model_world(scenario).found))
    return found


def titles(found: Section, kind: type) -> list[str]:
    """Return the titles of the plots, or of the tables."""
    return [item.title for item in found.items if isinstance(item, kind)]


def test_curves_run_along_epsilon_with_their_lines() -> None:
    found = report_section(swept(1.0, 8.0))
    plots = {item.title: item for item in found.items if isinstance(item, Plot)}
    accuracy = plots["How often the true label is predicted, by what is claimed"]
    assert [one.name for one in accuracy.curves] == [
        "anonymising-first",
        "learning-first",
        "without privacy",
        "majority class",
    ]
    members = plots["Membership by shadow models (LiRA)"]
    assert [one.name for one in members.curves[2:]] == [
        "bound of what is claimed",
        "planted: no noise",
        "null: other random bits",
    ]
    assert "How often the true label is predicted, by what is proved of the whole model" in plots
    curve = plots["Membership by shadow models: true against false positives, at epsilon 1"]
    assert curve.log_x
    assert curve.log_y
    assert curve.curves[-1].role == "bound"
    assert titles(found, Table) == TABLES


def test_one_place_is_shown_without_curves_along_an_axis(tmp_path: Path) -> None:
    found = report_section(swept(1.0))
    assert "How often the true label is predicted, by what is claimed" not in titles(found, Plot)
    assert titles(found, Table) == TABLES
    page = Page("models", "?", "", "As expected.", verdict_ok=True, sections=(found,))
    write(page, tmp_path / "page.html")
    assert "Published models" in (tmp_path / "page.html").read_text()


def test_the_audit_is_drawn_by_the_number_of_parameters() -> None:
    found = report_section([*by_width("paper"), *by_width("corrected")])
    plots = {item.title: item for item in found.items if isinstance(item, Plot)}
    title = "What an audit proves, by the number of parameters: learning-first, epsilon 0.1"
    names = [one.name for one in plots[title].curves]
    assert names == [
        "corrected, audited",
        "corrected, claimed",
        "paper, audited",
        "paper, claimed",
    ]
    assert "curves are of the widest" in found.intro


def test_budget_and_accuracy_are_drawn_from_release_to_release() -> None:
    simulated = run_weekly_world("anonymising-first")
    found = report_section([PointFindings((), simulated.scenario, simulated.found)])
    plots = {item.title: item for item in found.items if isinstance(item, Plot)}
    spent = plots["What is spent of the budget of the data set, day by day"]
    assert list(spent.curves[0].x) == [2, 4, 6]
    drawn = [simulated.value(f"spent.claimed.release_{number}") for number in range(3)]
    assert list(spent.curves[0].y) == drawn == sorted(drawn)


def test_a_point_where_nothing_was_found_is_drawn_all_the_same() -> None:
    scenario = model_world({"epsilon": 3.0})
    empty = PointFindings((("pipelines.models.epsilon", 3.0),), scenario, Findings((), ()))
    assert report_section([empty]).title == "Published models"
    beside = report_section([*swept(1.0, 8.0), empty])
    assert titles(beside, Plot) == titles(report_section(swept(1.0, 8.0)), Plot)


def test_synthetic_records_and_shared_rows_are_stated() -> None:
    assert "Records are synthetic" in report_section(swept(1.0)).intro


def lira(planted: float) -> str:
    """Return what is said of LiRA where a planted leak is told with an area."""
    points = [
        PointFindings(
            (("pipelines.models.epsilon", epsilon),),
            model_world({"epsilon": epsilon}),
            Findings(
                (
                    Metric("attack.lira.auc", 0.51, 0.48, 0.54),
                    Metric("attack.planted.auc", planted),
                    Metric("attack.lira.claimed_auc", 0.7),
                ),
                (),
            ),
        )
        for epsilon in (1.0, 8.0)
    ]
    items = report_section(points).items
    (plot,) = (one for one in items if isinstance(one, Plot) and "(LiRA)" in one.title)
    return " ".join(readings.true_readings(plot))


def test_a_planted_leak_is_said_to_be_found_only_if_it_is() -> None:
    assert lira(0.73) == (
        "The attack tells the members of the planted network: area 0.73. None of 2 measured "
        "values is above the bound. 2 of 2 intervals contain 0.5, which is guessing."
    )
    assert lira(0.516).startswith(
        "The attack hardly tells the members of the planted network (area 0.516), so that a small "
        "area elsewhere shows little."
    )
