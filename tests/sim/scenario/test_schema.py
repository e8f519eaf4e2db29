"""The JSON Schema that editors use, and what the two commands print."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from noisefloor.errors import BadScenario
from noisefloor_sim.cli import app
from noisefloor_sim.cli.scenarios import validate
from noisefloor_sim.scenario import PipelineBlock, Scenario, schema_text
from sim.scenario.toy import BLOCKS, FULL, MINIMAL, Toy

SCENARIOS = Path(__file__).resolve().parents[3] / "scenarios"
SCHEMA: dict[str, Any] = json.loads(schema_text(BLOCKS))  # Any: it is JSON


def references(value: object) -> Iterator[str]:
    """Return every reference in a schema."""
    if isinstance(value, Mapping):
        yield from (str(it) for key, it in value.items() if key == "$ref")
        for item in value.values():
            yield from references(item)
    if isinstance(value, list):
        for item in value:
            yield from references(item)


def test_the_schema_has_every_key_with_its_title_and_description() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["title"] == "noisefloor scenario"
    assert list(SCHEMA["properties"]) == list(Scenario.model_fields)
    assert SCHEMA["required"] == ["name", "question", "seed", "pipelines"]
    assert SCHEMA["additionalProperties"] is False
    assert all(it.get("description") for it in SCHEMA["properties"].values())
    for name, model in SCHEMA["$defs"].items():
        assert model["title"] == name
        assert all(it.get("description") for it in model["properties"].values()), name


def test_the_schema_bounds_what_the_model_bounds() -> None:
    assert SCHEMA["$defs"]["Population"]["properties"]["users"]["maximum"] == 100_000_000
    assert SCHEMA["properties"]["variant"]["enum"] == ["paper", "corrected"]
    assert SCHEMA["$defs"]["Sweep"]["additionalProperties"]["minItems"] == 1


def test_the_schema_knows_the_pipelines_and_attacks_that_it_is_given() -> None:
    pipelines = SCHEMA["properties"]["pipelines"]
    assert pipelines["properties"] == {"toy": {"$ref": "#/$defs/Toy"}}
    assert pipelines["additionalProperties"] is False
    assert SCHEMA["$defs"]["Toy"]["properties"]["epsilon"]["exclusiveMinimum"] == 0
    attacks = SCHEMA["properties"]["attacks"]
    assert attacks["items"] == {"enum": ["toy.guess", "toy.vote"]}
    assert attacks["uniqueItems"] is True


def test_every_reference_leads_somewhere_and_every_definition_is_used() -> None:
    used = {reference.removeprefix("#/$defs/") for reference in references(SCHEMA)}
    assert used == set(SCHEMA["$defs"])


def test_the_schema_is_the_same_text_whatever_the_order_of_pipelines() -> None:
    class Other(PipelineBlock):
        """Without settings."""

    one = schema_text({"toy": Toy, "other": Other})
    assert one == schema_text({"other": Other, "toy": Toy})
    assert one.endswith("}\n")


def test_without_pipelines_no_attack_is_allowed() -> None:
    bare = json.loads(schema_text({}))
    assert bare["properties"]["attacks"]["items"] is False


def test_the_shipped_schema_is_what_the_command_prints() -> None:
    printed = CliRunner().invoke(app, ["schema"])
    assert printed.exit_code == 0
    # To refresh it: noisefloor schema > scenarios/schema.json
    assert (SCENARIOS / "schema.json").read_text(encoding="utf-8") == printed.output


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        (MINIMAL, "valid (1 point; 10000 users; 7 days; toy; hash "),
        (FULL, "valid (12 points; 20000 users; 3 days; toy; hash "),
    ],
)
def test_a_valid_file_is_summed_up_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, summary: str
) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(text, encoding="utf-8")
    assert validate(file, blocks=BLOCKS) == 0
    (printed,) = capsys.readouterr().out.splitlines()
    assert printed.startswith(f"{file}: {summary}")
    assert printed.isprintable()


def test_a_bad_file_is_an_error_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(MINIMAL + "day: 3\n", encoding="utf-8")
    with pytest.raises(BadScenario) as caught:
        validate(file, blocks=BLOCKS)
    assert str(caught.value).startswith(f"{file}:6: day: Unknown key 'day'. Did you mean 'days'?")
