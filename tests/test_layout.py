"""The layout holds: source roots are no packages, random bits have one door."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE_ROOTS = ("platform", "simulator", "services")
THE_ONE_DOOR = ROOT / "platform" / "noisefloor" / "randomness" / "seeded.py"
# Put together here, so that this file does not name one itself.
MACHINE_PATH = re.compile(
    r"(?<![\w.~/-])/(?:" + "|".join(("work", "root", "home", "Users")) + r")\b"
)


def python(code: str) -> str:
    """Run code in a fresh interpreter that is started in the root, and return what it prints."""
    hidden = {"PYTHONPATH", "PYTHONSAFEPATH"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def tracked_files() -> list[Path]:
    """Return the files that git has, or would add."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def random_imports(source: str) -> list[int]:
    """Return the lines that reach for random or numpy.random."""
    if not re.search(r"\brandom\b", source):
        return []  # every way in has this word; most files need not be parsed
    tree = ast.parse(source)
    names: list[tuple[int, str]] = []
    numpys = {"numpy"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [(node.lineno, alias.name) for alias in node.names]
            numpys |= {alias.asname or "" for alias in node.names if alias.name == "numpy"}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in numpys:
                names.append((node.lineno, f"numpy.{node.attr}"))
    return [line for line, name in names if re.match(r"(numpy\.)?random(\.|$)", name)]


@pytest.mark.parametrize("name", SOURCE_ROOTS)
def test_a_source_root_is_no_package(name: str) -> None:
    assert (ROOT / name).is_dir()
    assert not (ROOT / name / "__init__.py").exists()


def test_no_folder_of_tests_is_a_package() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_a_python_started_in_the_root_gets_the_standard_platform() -> None:
    assert python("import platform; print(platform.system())")


@pytest.mark.parametrize(
    "source",
    [
        "import random",
        "import random as r",
        "from random import choice",
        "import numpy.random",
        "import numpy.random as nr",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import numpy as np\nnp.random.seed(1)",
        "import numpy\ndef f():\n    return numpy.random.rand()",
        "def f():\n    import random",
    ],
)
def test_the_search_for_random_imports_finds_each_way_in(source: str) -> None:
    assert random_imports(source)


@pytest.mark.parametrize(
    "source",
    [
        "from noisefloor.randomness import Source",
        "import noisefloor.randomness",
        "source.random",
        "from noisefloor.random import x",
        "import randomness",
    ],
)
def test_the_search_for_random_imports_finds_nothing_else(source: str) -> None:
    assert random_imports(source) == []


def test_random_bits_come_through_one_door() -> None:
    folders = [ROOT / name for name in (*SOURCE_ROOTS, "tests")]
    files = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    assert THE_ONE_DOOR in files
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in files
        if path != THE_ONE_DOOR
        for line in random_imports(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    found = []
    for path in tracked_files():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # not a text
        found += [
            f"{path.relative_to(ROOT)}:{number}"
            for number, line in enumerate(lines, start=1)
            if MACHINE_PATH.search(line)
        ]
    assert found == []


@pytest.mark.parametrize("folder", ["work", "root", "home"])
def test_the_search_for_machine_paths_finds_paths_and_no_addresses(folder: str) -> None:
    for text in (f"/{folder}/x", f'"/{folder}"', f"cd /{folder}/main", f"PATH=/{folder}/bin"):
        assert MACHINE_PATH.search(text)
    for text in (
        f"https://example.org/{folder}/x",
        f"../{folder}/x",
        f"a/{folder}",
        f"/{folder}er",
    ):
        assert not MACHINE_PATH.search(text)


def test_the_readme_starts_with_how_to_run_and_how_to_test() -> None:
    readme = ROOT / "README.md"
    if not readme.exists():
        pytest.skip("README.md is not written yet")
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```", readme.read_text(encoding="utf-8"), re.M | re.S)
    assert blocks
    assert "make run" in blocks[0]
    assert "make test" in blocks[0]


def test_torch_is_pinned_to_the_version_without_gigabytes_of_cuda() -> None:
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert [pin for pin in pins if pin.startswith("torch=")] == ["torch==2.13.0"]


def test_mechanisms_load_without_the_heavy_libraries() -> None:
    printed = python(
        "import sys; sys.path.insert(0, 'platform'); import noisefloor.mechanisms as it; "
        "assert it.__file__, 'noisefloor.mechanisms has no __init__.py'; "
        "heavy = {'torch', 'scipy.stats', 'dp_accounting', 'pandas'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert printed == "[]"
