"""The five commands of README, word for word: from one's own table or texts to a prediction."""

import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from publishing_runs import run, write_table
from text_layer_cases import tiny_machine

README = (Path(__file__).resolve().parents[3] / "README.md").read_text(encoding="utf-8")


class DocumentedCommand(NamedTuple):
    """A command of a block, and the lines that it prints."""

    words: str
    lines: list[str]


def section(title: str) -> tuple[str, list[DocumentedCommand]]:
    """Return schema and commands of a section of README."""
    (text,) = re.findall(rf"^## {title}.*?(?=^## )", README, re.DOTALL | re.MULTILINE)
    (schema,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    (block,) = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    lines = block.splitlines()
    starts = [place for place, line in enumerate(lines) if line.startswith("$ ")]
    ends = [*starts, len(lines)]
    return schema, [
        DocumentedCommand(lines[a].removeprefix("$ "), lines[a + 1 : b]) for a, b in pairwise(ends)
    ]


def check(commands: list[DocumentedCommand]) -> None:
    assert len(commands) == 5
    for command, lines in commands:
        program, *words = shlex.split(command)
        assert program == "noisefloor"
        found = run(*words)
        assert (found.code, found.error) == (0, ""), command
        pattern = "\n".join(".*".join(map(re.escape, line.split("..."))) for line in lines)
        assert re.fullmatch(pattern, found.out.rstrip("\n")), f"{command}\n{found.out}"


def test_the_five_commands_on_a_table_do_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = write_table(tmp_path, schema=None)
    schema, commands = section("From a table of your own")
    draft = run(*shlex.split(commands[0].words)[1:])
    assert draft.code == 2 and "Expected a schema beside it, visits.schema.json" in draft.error
    assert not (tmp_path / "noisefloor-store").exists()
    table.with_suffix(".schema.json").write_text(schema)
    check(commands)


def test_the_five_commands_on_texts_do_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    schema, commands = section("From texts of your own")
    (tmp_path / "texts.schema.json").write_text(schema)
    rows = ["a great film\tgood", "the dull plot\tbad"] * 150
    (tmp_path / "texts.tsv").write_text("\n".join(["review\tmood", *rows, ""]))
    (tmp_path / "new-texts.tsv").write_text("review\na fine story\n")
    with tiny_machine(tmp_path):
        check(commands)
