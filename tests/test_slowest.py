"""The page of the slowest tests: it adds up, keeps reasons, and names tests that there are."""

import re
from pathlib import Path

import slowest
from house import ROOT

PAGE = slowest.PAGE.read_text(encoding="utf-8")


def test_runs_of_a_test_are_added_and_the_slowest_stand_first() -> None:
    seconds = [(1.0, "a.py::one[x]"), (2.5, "a.py::two"), (2.0, "a.py::one[y[0]]")]
    rows = slowest.page(seconds, "").removeprefix(slowest.HEADER).splitlines()
    assert rows == [
        f"| 3.0 | 2 | `a.py::one` | {slowest.GAP} |",
        f"| 2.5 | 1 | `a.py::two` | {slowest.GAP} |",
    ]


def test_only_the_twenty_slowest_are_named() -> None:
    found = slowest.page([(float(number), f"a.py::t{number}") for number in range(30)], "")
    assert [row["test"] for row in slowest.ROW.finditer(found)] == [
        f"a.py::t{number}" for number in range(29, 9, -1)
    ]


def test_reasons_are_kept_and_a_new_test_has_a_gap() -> None:
    old = slowest.page([(1.0, "a.py::kept"), (9.0, "a.py::gone")], "").replace(
        f"kept` | {slowest.GAP}", "kept` | it finds much"
    )
    found = slowest.page([(3.0, "a.py::kept"), (2.0, "a.py::new")], old)
    assert [(row["test"], row["reason"]) for row in slowest.ROW.finditer(found)] == [
        ("a.py::kept", "it finds much"),
        ("a.py::new", slowest.GAP),
    ]


def test_the_seconds_are_read_as_the_plugin_writes_them(tmp_path: Path) -> None:
    file = tmp_path / "seconds"
    file.write_text("2.500\ta.py::two[a b]\n1.000\ta.py::one\n")
    assert slowest.read_seconds([file]) == [(2.5, "a.py::two[a b]"), (1.0, "a.py::one")]


def test_every_test_on_the_page_exists_and_has_a_reason() -> None:
    rows = list(slowest.ROW.finditer(PAGE))
    assert len(rows) == slowest.COUNT
    assert slowest.GAP not in PAGE
    for row in rows:
        file, _, name = row["test"].partition("::")
        source = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^(async )?def {name}\(", source, re.M), row["test"]
