"""The command line, on exit codes and on what a person or a program reads."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from noisefloor.adversary.audit.auditor import AuditCase, audit_case
from noisefloor.mechanisms import BinaryResponse
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource
from noisefloor_sim.cli import audit, commands


def run(*words: str) -> tuple[int, str, str]:
    """Run the command in this process, as ``main`` would."""
    result = CliRunner().invoke(commands.app, list(words))
    return result.exit_code, result.stdout, result.stderr


def test_audit_of_named_mechanisms_prints_their_rows_and_a_reading() -> None:
    code, out, _ = run("audit", "binary-response", "paper-response", "--trials", "100000")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == [
        "mechanism", "neighbours", "claimed", "proved", "exact", "audited", "null", "planted",
        "verdict",
    ]  # fmt: skip
    assert lines[1].split()[0] == "binary-response"
    assert lines[1].split()[-1] == "holds"
    assert lines[2].split()[-1] == "overclaimed"
    assert "1 hold what is proved; 1 are overclaimed" in lines[-1]


def test_an_audit_that_found_nothing_says_so_and_is_blind() -> None:
    case = AuditCase("faint", BinaryResponse, 0.01, Neighbours.USER, (True, False))
    row = audit_case(case, SeededSource(3, "faint"), trials=1_000, alpha=1e-6)
    cells = [cell.plain for cell in audit._cells(row)]
    assert cells[5] == "nothing found"
    assert cells[-1] == "blind"
    assert "nothing found confirms nothing" in " ".join(audit._reading([row]))
    assert str(row.as_json()["found"]).startswith("nothing found; 500 trials could have")


def test_json_has_one_object_per_mechanism() -> None:
    code, out, _ = run("audit", "paper-binning", "--json", "--trials", "20000")
    (row,) = json.loads(out)
    assert code == 0
    assert row["name"] == "paper-binning"
    assert row["proved"] == "inf"
    assert row["verdict"] == "overclaimed"


def test_an_accusation_makes_the_exit_code_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "any_broken", lambda rows: True)
    code, _, _ = run("audit", "binary-response", "--trials", "2000")
    assert code == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["audit", "binary-respons"], "Did you mean 'binary-response'?"),
        (["audit", "--trials", "3"], "Expected trials=3 in [1000,"),
        (["audit", "--seed", "-1"], "Expected seed=-1 to be an integer >= 0."),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(words: list[str], message: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "noisefloor_sim.cli", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from noisefloor_sim import cli; "
        "heavy = {'numpy', 'scipy', 'dp_accounting', 'torch', 'pandas'} & set(sys.modules); "
        "sys.exit(','.join(heavy) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.returncode == 0
