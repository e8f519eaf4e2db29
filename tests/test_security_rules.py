"""The linter's security rules are on, and no exception goes without its reason."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("platform", "services", "simulator", "bench", "tests")
# Unpickling, YAML that makes objects, weights that are pickles: each runs code from a file.
NEVER_IGNORED = ("S301", "S506", "S614")
OF_RUFF = ("S301", "S506")  # it has no S614, so these calls are searched for here
_LOADS_OBJECTS = re.compile(r"\b(torch|joblib)\.load\(|\bread_pickle\(|\ballow_pickle=(?!False)")
IGNORES = ("ignore", "extend-ignore")
FILE_IGNORES = ("per-file-ignores", "extend-per-file-ignores")
# In two pieces, so that this file has no such comment itself.
_NOQA = re.compile("#" + r"\s*(?P<whole>(ruff|flake8):\s*)?noqa(?P<rest>.*)", re.I)
_CODES = re.compile(r":\s*(?P<codes>[A-Z]+\d+(\s*,\s*[A-Z]+\d+)*)(?P<reason>.*)")


def lint_settings() -> dict[str, Any]:
    """Return what pyproject.toml says to the linter."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    settings: dict[str, Any] = project["tool"]["ruff"]["lint"]
    return settings


def code_files() -> list[Path]:
    """Return every file of code."""
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def faults_of_settings(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what switches a security rule off that has to stay on."""
    if "S" not in settings["select"]:
        yield "select: without S"
    lists = {name: settings.get(name, []) for name in IGNORES}
    for name in FILE_IGNORES:
        lists |= settings.get(name, {})
    for place, ignored in lists.items():
        for rule in NEVER_IGNORED:
            if any(one == "ALL" or rule.startswith(one) for one in ignored):
                yield f"{place}: ignores {rule}"


def faults_of_line(line: str) -> Iterator[str]:
    """Yield what is wrong with the exception that a line of code makes."""
    found = _NOQA.search(line)
    if found is None:
        return
    if found["whole"]:
        yield "for a whole file"
    listed = _CODES.match(found["rest"])
    if listed is None:
        yield "names no rule"
        return
    codes = re.split(r"\s*,\s*", listed["codes"])
    if any(rule in codes for rule in NEVER_IGNORED):
        yield "a rule that is never ignored"
    if any(re.fullmatch(r"S\d+", code) for code in codes) and not re.search(
        r"[a-z]{2}", listed["reason"]
    ):
        yield "without a reason"


def test_the_security_rules_are_on_everywhere() -> None:
    assert list(faults_of_settings(lint_settings())) == []


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("select", ["E"], "select: without S"),
        ("ignore", ["S301"], "ignore: ignores S301"),
        ("extend-ignore", ["S5"], "extend-ignore: ignores S506"),
        ("per-file-ignores", {"tests/**": ["S"]}, "tests/**: ignores S614"),
        ("extend-per-file-ignores", {"bench/**": ["ALL"]}, "bench/**: ignores S301"),
    ],
)
def test_settings_that_switch_them_off_are_found(name: str, value: object, fault: str) -> None:
    assert fault in list(faults_of_settings({**lint_settings(), name: value}))


def test_every_exception_names_its_rule_and_its_reason() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {fault}"
        for path in code_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for fault in faults_of_line(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("comment", "fault"),
    [
        ("noqa", "names no rule"),
        ("ruff: noqa: S101  for tests", "for a whole file"),
        ("noqa: S603", "without a reason"),
        ("noqa: B009, S603  ", "without a reason"),
        ("noqa: S301  our own file", "a rule that is never ignored"),
        ("noqa: B009,S614  our own file", "a rule that is never ignored"),
    ],
)
def test_an_exception_without_them_is_found(comment: str, fault: str) -> None:
    assert fault in list(faults_of_line("call()  # " + comment))
    assert list(faults_of_line("call()  # " + "noqa: S603  our own command")) == []


def test_nothing_unpickles_or_makes_objects_of_yaml_even_where_it_is_excused(
    tmp_path: Path,
) -> None:
    words = ["--isolated", "--ignore-noqa", "--quiet", "--select", ",".join(OF_RUFF)]
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", *words]
    done = subprocess.run([*command, *FOLDERS], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    planted = tmp_path / "planted.py"
    planted.write_text("import pickle\npickle.loads(b'')  # " + "noqa: S301\n", encoding="utf-8")
    assert subprocess.run([*command, str(planted)], capture_output=True).returncode == 1


def test_no_weights_or_arrays_are_read_by_unpickling() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in code_files()}
    assert [path for path, text in texts.items() if _LOADS_OBJECTS.search(text)] == []


def test_reading_by_unpickling_is_found() -> None:
    for name, tail in (("torch.load", "x"), ("joblib.load", "x"), ("pd.read_pickle", "x")):
        assert _LOADS_OBJECTS.search(f"{name}({tail})")
    assert _LOADS_OBJECTS.search("np.load(x, allow_pickle" + "=True)")
    assert not _LOADS_OBJECTS.search("np.load(x, allow_pickle=False)")
