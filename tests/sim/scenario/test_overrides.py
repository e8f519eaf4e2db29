"""Values from the command line."""

from pathlib import Path

import pytest

from noisefloor.errors import BadScenario
from noisefloor_sim.scenario import Scenario, expand, load, load_points, scenario_text
from sim.scenario.toy import BLOCKS, FULL, MINIMAL, Toy


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
def test_a_bad_value_is_reported_with_its_key(tmp_path: Path, setting: str, said: str) -> None:
    with pytest.raises(BadScenario) as caught:
        loaded(tmp_path, setting, text=MINIMAL + "days: 3\n")
    assert str(caught.value).startswith(said.format(file=tmp_path / "s.yaml"))
    assert "\n" not in str(caught.value)


def test_nothing_can_be_set_in_a_file_that_is_no_mapping(tmp_path: Path) -> None:
    with pytest.raises(BadScenario, match="Expected a section to set days in, found nothing"):
        loaded(tmp_path, "days=1", text="")


EPSILON = "pipelines.toy.epsilon"


def epsilons(found: Scenario) -> list[float]:
    """Return the epsilon of each point, without replicates."""
    toys = (point.scenario.pipelines["toy"] for point in expand(found, BLOCKS))
    return [toy.epsilon for toy in toys if isinstance(toy, Toy)][:: found.sweep.seeds]


@pytest.mark.parametrize(
    ("settings", "axes", "values"),
    [
        ((f"{EPSILON}=4",), ("variant",), [4, 4]),
        ((f"{EPSILON}=[4, 5]",), (EPSILON, "variant"), [4, 4, 5, 5]),
        (("pipelines={toy: {epsilon: 4}}",), ("variant",), [4, 4]),
        (("pipelines.toy={epsilon: 4}", "variant=paper"), (), [4]),
        # The last setting wins.
        (("pipelines.toy={form: oue, epsilon: 3}", f"{EPSILON}=4"), ("variant",), [4, 4]),
        ((f"{EPSILON}=4", f"sweep.{EPSILON}=[8]"), (EPSILON, "variant"), [8, 8]),
        (("days=2",), (EPSILON, "variant"), [0.5, 0.5, 1, 1, 2, 2]),
    ],
)
def test_a_value_for_a_swept_key_replaces_its_axis(
    tmp_path: Path, settings: tuple[str, ...], axes: tuple[str, ...], values: list[float]
) -> None:
    found = loaded(tmp_path, *settings, text=FULL)
    assert tuple(key for key, _ in found.sweep.axes) == axes
    assert epsilons(found) == values
    resolved = scenario_text(found)
    assert (f"  {EPSILON}:" in resolved) is (EPSILON in axes)
    points = load_points(tmp_path / "s.yaml", BLOCKS, settings).points
    assert len(points) == 2 * len(values)


def test_an_axis_of_lists_is_replaced_by_lists_only(tmp_path: Path) -> None:
    text = MINIMAL + "sweep: {pipelines.toy.bounds: [[0, 1], [0, 2]]}\n"
    ended = loaded(tmp_path, "pipelines.toy.bounds=[0, 3]", text=text)
    assert ended.sweep.axes == ()
    toy = ended.pipelines["toy"]
    assert isinstance(toy, Toy)
    assert toy.bounds == (0, 3)
    swept = loaded(tmp_path, "pipelines.toy.bounds=[[0, 3], [0, 4]]", text=text)
    assert swept.sweep.axes == (("pipelines.toy.bounds", ((0, 3), (0, 4))),)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            f"{EPSILON}=0",
            "{file}: pipelines.toy.epsilon: Expected > 0, got 0. Of one report. (The",
        ),
        (
            f"{EPSILON}=[1, 0]",
            "{file}: sweep.pipelines.toy.epsilon.1: Expected > 0, got 0. Of one",
        ),
        (f"{EPSILON}=[]", "{file}: sweep.pipelines.toy.epsilon: Expected at least 1 value"),
        ("pipelines.toy.epsilom=1", "{file}: pipelines.toy.epsilom: Unknown key"),
        ("seeds=3", "{file}: seeds: Unknown key 'seeds'."),
    ],
)
def test_a_bad_value_for_a_swept_key_is_refused(tmp_path: Path, setting: str, said: str) -> None:
    with pytest.raises(BadScenario) as caught:
        loaded(tmp_path, setting, text=FULL)
    assert str(caught.value).startswith(said.format(file=tmp_path / "s.yaml"))


def test_a_key_in_a_section_that_is_swept_as_a_whole_is_refused(tmp_path: Path) -> None:
    text = MINIMAL + "sweep: {pipelines.toy: [{epsilon: 1}, {epsilon: 2}]}\n"
    with pytest.raises(BadScenario, match=r"--set: pipelines.toy.epsilon: .*; set sweep.pipel"):
        loaded(tmp_path, f"{EPSILON}=3", text=text)
