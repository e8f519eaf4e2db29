"""Every shipped scenario can be read, is found by name, and says what it asks and expects."""

import tomllib
from pathlib import Path

import pytest

from noisefloor.errors import BadScenario
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.scenario import find_scenario, load, shipped_scenarios

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "simulator" / "noisefloor_sim" / "scenario"
SHIPPED = shipped_scenarios()


def test_there_are_scenarios() -> None:
    assert len(SHIPPED) >= 16


@pytest.mark.parametrize("path", SHIPPED.values(), ids=SHIPPED)
def test_a_shipped_scenario_can_be_read_and_says_what_it_expects(path: Path) -> None:
    scenario = load(path, BLOCKS)
    assert scenario.name == path.stem
    assert scenario.expectation
    assert scenario.gates
    head = path.read_text(encoding="utf-8").splitlines()[1:10]
    for word in ("# Question:", "# Expected answer:", f"# Seed: {scenario.seed}", "# Takes: "):
        assert any(line.startswith(word) for line in head)


def test_the_wheel_takes_every_file_of_the_shipped_folder() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    patterns = tools["setuptools"]["package-data"]["noisefloor_sim.scenario"]
    taken = {path for pattern in patterns for path in PACKAGE.glob(pattern)}
    assert taken == set((PACKAGE / "shipped").iterdir())
    assert set(SHIPPED.values()) < taken


def test_a_checkout_shows_the_shipped_scenarios_in_its_root() -> None:
    assert (ROOT / "scenarios").resolve() == PACKAGE / "shipped"
    assert not (ROOT / "scenarios").readlink().is_absolute()


def test_a_name_means_the_shipped_scenario_unless_a_file_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "row-order").mkdir()  # a folder of that name is no scenario
    assert find_scenario("quickstart") == SHIPPED["quickstart"]
    assert find_scenario(Path("row-order")) == SHIPPED["row-order"]
    (tmp_path / "quickstart").write_text("name: mine\n", encoding="utf-8")
    assert find_scenario("quickstart") == Path("quickstart")


@pytest.mark.parametrize("given", ["quickstart.yaml", "scenarios/quickstart"])
def test_a_path_means_the_file_there_and_never_a_shipped_scenario(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadScenario, match="Expected a file, found none"):
        load(find_scenario(given), BLOCKS)


@pytest.mark.parametrize(
    ("given", "guess"),
    [
        ("quikstart", " Did you mean quickstart?"),
        ("ads-epsilo", " Did you mean ads-epsilon or models-epsilon or ads-million?"),
        ("zzz", ""),
    ],
)
def test_an_unknown_name_is_answered_with_near_ones_and_the_command_that_lists_all(
    given: str, guess: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadScenario) as caught:
        find_scenario(given)
    rule = f"No file here and no shipped scenario has this name.{guess}"
    assert str(caught.value) == f"{given}: {rule} See them by `noisefloor scenarios`."
