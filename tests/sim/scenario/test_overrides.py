"""Values from the command line."""

from pathlib import Path

import pytest

from noisefloor.errors import BadScenario
from noisefloor_sim.scenario import Scenario, load
from sim.scenario.toy import BLOCKS, MINIMAL, Toy


def loaded(folder: Path, *settings: str, text: str = MINIMAL) -> Scenario:
    """Load a scenario file with values set."""
    file = folder / "s.yaml"
    file.write_text(text, encoding="utf-8")
    return load(file, BLOCKS, settings)


def test_values_win_over_the_file_and_the_last_one_over_all(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        "seed=3",
        "population.users=50",
        "network.outages=[{start_h: 1, end_h: 2}]",
        "pipelines.toy.epsilon=1e-3",
        "pipelines.toy.note='a=b'",
        "sweep.pipelines.toy.epsilon=[1, 2]",
        "seed=4",
    )
    assert found.seed == 4
    assert found.population.users == 50
    assert found.network.outages[0].end_h == 2.0
    assert found.sweep.axes == (("pipelines.toy.epsilon", (1, 2)),)
    toy = found.pipelines["toy"]
    assert toy == Toy(epsilon=0.001, note="a=b")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("days", "--set: Expected key=value, got 'days'."),
        ("=3", "--set: '': Expected names with a dot between them, such as population.users."),
        (
            "a..b=3",
            "--set: a..b: Expected names with a dot between them, such as",
        ),
        ("a" + ".a" * 32 + "=1", "--set: a.a.a."),
        (
            "days=012",
            "--set: days: Expected a number without leading zeros, or a text in quotes, ",
        ),
        ("days=[1", "--set: days: Expected YAML; "),
        ("days=\udcff", "--set: days: Expected text, found the character U+DCFF."),
        ("days.x=3", "--set: days.x: Expected a section to set x in, found 3."),
        ("name=&a b", "--set: name: Anchors and aliases (& and *) are not read; "),
        ("question=a\n--- b", "--set: question: Expected one document, found a second one."),
        ("days=0", "{file}: days: Expected >= 1, got 0. How long the world runs. (The value was "),
        ("day=1", "{file}: day: Unknown key 'day'. Did you mean 'days'? Allowed: "),
        ("population.users=no", "{file}: population.users: Expected a whole number, got 'no'."),
        ("population=3", "{file}: population: Expected a mapping of keys, got 3."),
        ("sweep.days=[0]", "{file}: sweep.days.0: Expected >= 1, got 0."),
    ],
)
def test_a_bad_value_is_told_with_its_key(tmp_path: Path, setting: str, said: str) -> None:
    with pytest.raises(BadScenario) as caught:
        loaded(tmp_path, setting, text=MINIMAL + "days: 3\n")
    assert str(caught.value).startswith(said.format(file=tmp_path / "s.yaml"))
    assert "\n" not in str(caught.value)


def test_nothing_can_be_set_in_a_file_that_is_no_mapping(tmp_path: Path) -> None:
    with pytest.raises(BadScenario, match="Expected a section to set days in, found nothing"):
        loaded(tmp_path, "days=1", text="")
