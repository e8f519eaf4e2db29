"""A third of the mutants, each found by the run that it breaks; ``make mutants`` runs all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mutants.mutant import BROKEN, GATE, MISFIT, PROJECT, ROOTS, UNACCOUNTED, Mutant
from mutants.overlay import environment, findings_of, make_copy, run_case
from mutants.preloaded import Preloaded, preloaded
from mutants.run import main
from mutants.table import MUTANTS, SUITE

CASES = {mutant.scenario.name: mutant for mutant in reversed(SUITE)}
"""One case of each scenario; ``make mutants`` runs every one that a mutant has."""


@pytest.fixture(scope="module")
def process() -> Iterator[Preloaded]:
    with preloaded() as started:
        yield started


def test_every_replaced_text_occurs_once_and_is_replaced() -> None:
    wrong = {mutant.name: mutant.occurrences() for mutant in MUTANTS if mutant.occurrences() != 1}
    assert not wrong
    for mutant in MUTANTS:
        text = (PROJECT / mutant.file).read_text(encoding="utf-8")
        compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")
        assert mutant.old != mutant.new


def test_at_least_thirty_mutants_of_which_a_third_run_here() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names) >= 30
    assert 3 * len(SUITE) >= len(MUTANTS)
    assert {verdict for mutant in MUTANTS for verdict in mutant.verdicts} <= {
        MISFIT,
        UNACCOUNTED,
        BROKEN,
        GATE,
    }


@pytest.mark.slow
@pytest.mark.parametrize("mutant", SUITE, ids=lambda one: one.name)
def test_run_of_a_mutant_ends_with_1_and_names_flow_and_cause(
    mutant: Mutant, process: Preloaded, tmp_path: Path
) -> None:
    result = run_case(
        tmp_path / "case", mutant.scenario, mutant.settings, mutant=mutant, process=process
    )
    found = result.named_by(mutant)
    assert result.code == 1, result.output
    assert found is not None, result.output
    assert found.cause


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_unchanged_code_ends_with_0_and_nothing_is_found(
    name: str, process: Preloaded, tmp_path: Path
) -> None:
    case = CASES[name]
    result = run_case(tmp_path / "case", case.scenario, case.settings, process=process)
    assert result.code == 0, result.output
    assert not result.findings


@pytest.mark.slow
def test_a_fork_and_a_fresh_interpreter_say_the_same(process: Preloaded, tmp_path: Path) -> None:
    mutant, results = SUITE[0], []
    for name, started in (("fork", process), ("fresh", None)):
        folder = tmp_path / name
        result = run_case(folder, mutant.scenario, mutant.settings, mutant=mutant, process=started)
        results.append((result.code, result.findings))
    assert results[0] == results[1]
    assert results[0][0] == 1


def test_a_fork_imports_from_its_copy_alone_and_returns_its_exit_code(
    process: Preloaded, tmp_path: Path
) -> None:
    copy, output = tmp_path / "copy", tmp_path / "output"
    make_copy(copy, None)
    program = "import noisefloor, os, sys\nprint(noisefloor.__file__, os.getcwd(), sys.argv[1])\n"
    (tmp_path / "own_program.py").write_text(f"{program}sys.exit(7)\n", encoding="utf-8")
    words = ["own_program", "word"]
    variables = environment(copy)
    code = process.run(words, folder=tmp_path, environment=variables, output=output, most_s=60)
    found = copy / "platform" / "noisefloor" / "__init__.py"
    assert (code, output.read_text().split()) == (7, [str(found), str(tmp_path), "word"])


def test_a_copy_has_the_change_and_the_tree_does_not(tmp_path: Path) -> None:
    mutant = MUTANTS[0]
    make_copy(tmp_path / "copy", mutant)
    changed = (tmp_path / "copy" / mutant.file).read_text(encoding="utf-8")
    own = (PROJECT / mutant.file).read_text(encoding="utf-8")
    assert mutant.occurrences() == 1
    assert changed == own.replace(mutant.old, mutant.new) != own
    others = [name for name in ROOTS if not mutant.file.startswith(name)]
    assert all((tmp_path / "copy" / name).is_symlink() for name in others)
    assert str(tmp_path) in environment(tmp_path / "copy")["PYTHONPATH"]


def test_findings_are_read_from_what_a_run_prints() -> None:
    said = (
        "1 of 2 claims do not hold.\n"
        "MISFIT training report at p000-1: zeros reported as one: a share of 0 of 9\n"
        "UNACCOUNTED accounts at p001-2: 3 frames never arrived\n"
        "gate FAILED: clicks.coverage > 0.8 (fails at 1 of 1: p000-1 (0.16))\n"
        "gate passed: clicks.error_rms > 0 (holds at all 1)\n"
    )
    found = [(one.verdict, one.flow) for one in findings_of(said)]
    assert found == [
        (MISFIT, "training report"),
        (UNACCOUNTED, "accounts"),
        (GATE, "clicks.coverage > 0.8"),
    ]


def test_the_command_lists_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == [mutant.name for mutant in MUTANTS]
    assert main(["--list", "--services", "--only", "clicks-raw"]) == 0
    assert "without noise" in capsys.readouterr().out


def test_an_unknown_mutant_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--only", "no-such-mutant"])
    assert ended.value.code == 2
    assert "no such mutant" in capsys.readouterr().err
