"""The collection benchmark: every method runs on a fold, and sentences follow from figures."""

import math
from pathlib import Path

from bench.collection import read, run, tasks_of, written
from bench.collection_baselines import CLASS_COUNTS, LADDER
from bench.collection_report import BASELINES, Cases, Result, Task, attribution, cases_of, losses

PLAIN = {"plain NB": (0.0, 95.0), "plain LR": (0.0, 96.0)}


def test_every_method_runs_on_two_labels_and_on_three() -> None:
    """Each is refused by ``run`` if it is proved to spend more than epsilon."""
    for name, paper in (("wine", False), ("wdbc", True)):
        found = run(Task(name, 5.0, 0, folds=1, with_paper=False)).accuracies
        expected = {*BASELINES, *(one for one, _ in LADDER)}
        assert expected | {f"jNB+ {count}" for count in CLASS_COUNTS} <= found.keys()
        assert ("paper by rule" in found) == paper
        assert found["jNB+"][1] > 50
        plain = run(Task(name, math.inf, 0, folds=1, with_paper=False)).accuracies
        assert plain.keys() == PLAIN.keys()
        assert min(right for _, right in plain.values()) > 75


def made(accuracies: dict[str, float]) -> list[Cases]:
    """Return the cases of two seeds of wine at epsilon 2, a point apart."""
    rows = {f"jNB+ {count}": 80.0 + (count == 6) for count in CLASS_COUNTS}
    rows |= dict.fromkeys(BASELINES, 60.0) | accuracies
    results = [
        Result(
            Task("wine", epsilon, seed, folds=10, with_paper=False),
            PLAIN if math.isinf(epsilon) else {name: (0.0, v + seed) for name, v in rows.items()},
            0.0,
        )
        for epsilon in (2.0, math.inf)
        for seed in (1, 0)
    ]
    return cases_of(results)


RISING = {name: 50.0 + 5 * place for place, (name, _) in enumerate(LADDER)}


def test_gains_are_attributed_to_single_changes() -> None:
    cases = made(RISING)
    said = attribution(cases)
    assert "from 50.5" in said
    assert "to 75.5" in said
    assert "+5.0 +-0.0 by one sampled attribute" in said
    assert "in hindsight would add +6.0" in said
    assert cases[0].hindsight == "jNB+ 6"
    assert cases[0].shown("jNB+").startswith("75.5")


def test_a_better_baseline_and_a_model_no_better_than_the_majority_are_named() -> None:
    assert losses(made(RISING)) == []
    cases = made(RISING | {"PrivUnit": 78.0, "hybrid": 30.0})
    assert losses(cases) == ["wine at 2: PrivUnit by 3.0 to 3.0"]
    assert cases[0].shown("hybrid").endswith("*")
    assert not cases[0].shown("PrivUnit").endswith("*")


def test_figures_are_read_as_they_were_written(tmp_path: Path) -> None:
    found = [*made(RISING)[0].results, *made(RISING)[0].plain]
    (tmp_path / "figures.json").write_text(written(found))
    assert read(tmp_path / "figures.json") == found


def test_papers_settings_are_run_only_where_they_can_be() -> None:
    tasks = tasks_of(["wine", "wdbc"], 2, folds=10, with_paper=True)
    assert {one.name for one in tasks if one.with_paper} == {"wdbc"}
    assert len(tasks) == 2 * 5 * 2
