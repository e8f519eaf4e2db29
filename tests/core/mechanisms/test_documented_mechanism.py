"""The mechanism of ``docs/adding-a-mechanism.md``, added to a copy of the tree, passes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from doc_blocks import DOCS, blocks_of

PAGE = "adding-a-mechanism.md"
ROOT = DOCS.parent
(CODE,), (LINES,) = blocks_of(PAGE, "python"), blocks_of(PAGE, "diff")
CHECKS = "tests/core/mechanisms"
SINGLE_TESTS, BATCHES = 7, 20
"""Tests of both files that have to take the mechanism."""


def added(lines: str) -> dict[str, list[tuple[str, str]]]:
    """Return, for each file, the lines that are added and the line before each."""
    found: dict[str, list[tuple[str, str]]] = {}
    file, before = "", ""
    for line in lines.splitlines():
        if line.startswith("# "):
            file = line[2:]
        elif line.startswith("+"):
            found.setdefault(file, []).append((before, line[1:]))
        else:
            before = line[1:]
    return found


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy what the tests of mechanisms need, and add the page's file and lines.

    Bytecode comes along, with the times of its sources: else every process compiles all of it.
    """
    folder = tmp_path_factory.mktemp("tree")
    for part in ("platform", CHECKS):
        shutil.copytree(ROOT / part, folder / part)
    for file in (*(ROOT / "tests").glob("*.py"), ROOT / "pyproject.toml"):
        shutil.copy2(file, folder / file.relative_to(ROOT))
    (folder / "platform/noisefloor/mechanisms/blank_response.py").write_text(CODE)
    for name, lines in added(LINES).items():
        text = (folder / name).read_text()
        for before, line in lines:
            assert text.count(f"\n{before}\n") == 1, before
            text = text.replace(f"\n{before}\n", f"\n{before}\n{line}\n")
        (folder / name).write_text(text)
    return folder


def python(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python on the copy; batches of tests take this mechanism alone."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "platform"), "NOISEFLOOR_CASES": "blank"}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, check=False
    )


def checked(tree: Path, *chosen: str) -> subprocess.CompletedProcess[str]:
    """Run some of the tests that every mechanism has to pass, for this one."""
    files = [f"{CHECKS}/test_{name}.py" for name in ("exact_distributions", "every_mechanism")]
    return python(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, *files)


def test_it_is_one_file_and_five_lines() -> None:
    assert sum(len(lines) for lines in added(LINES).values()) == 5


def test_it_passes_what_every_mechanism_has_to_pass_and_the_audit(
    tree: Path,
) -> None:
    # One process for both kinds: libraries load for longer than tests run. -k also finds marks.
    done = checked(tree, "-rp", "-k", "blank or batch")
    assert done.returncode == 0, done.stdout
    passed = [line for line in done.stdout.splitlines() if line.startswith("PASSED ")]
    singles = [line for line in passed if "blank" in line]
    assert len(singles) >= SINGLE_TESTS, passed
    assert len(passed) - len(singles) >= BATCHES, passed
    audit = (
        "from noisefloor.adversary.audit.audit_cases import select_cases\n"
        "from noisefloor.adversary.audit.auditor import audit_case\n"
        "from noisefloor.randomness import SeededSource\n"
        "(case,) = select_cases(['blank-response'])\n"
        "row = audit_case(case, SeededSource(7, 'page'), trials=20_000, alpha=1e-5)\n"
        "print(row.verdict)"
    )
    assert python(tree, "-c", audit).stdout.strip() == "holds"


def test_the_same_tests_fail_for_a_weight_rounded_to_the_wrong_side(tree: Path) -> None:
    file = tree / "platform/noisefloor/mechanisms/blank_response.py"
    file.write_text(CODE.replace("ceil64", "floor64"))
    done = checked(tree, "-m", "batch")
    file.write_text(CODE)
    assert done.returncode == 1, done.stdout
    assert "test_exact_ratio_guarantee_and_request_agree" in done.stdout
