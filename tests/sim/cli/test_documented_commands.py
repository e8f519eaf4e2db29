"""The five commands of README, word for word: from a table of one's own to a prediction."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from publishing_runs import run, write_table

README = (Path(__file__).resolve().parents[3] / "README.md").read_text(encoding="utf-8")
(SECTION,) = re.findall(
    r"^## From a table of your own.*?(?=^## )", README, re.DOTALL | re.MULTILINE
)
(SCHEMA,) = re.findall(r"```json\n(.*?)```", SECTION, re.DOTALL)
(BLOCK,) = re.findall(r"```console\n(.*?)```", SECTION, re.DOTALL)


def documented() -> list[tuple[str, list[str]]]:
    """Return each command of the block with the lines that it prints."""
    lines = BLOCK.splitlines()
    starts = [place for place, line in enumerate(lines) if line.startswith("$ ")]
    ends = [*starts, len(lines)]
    return [(lines[a].removeprefix("$ "), lines[a + 1 : b]) for a, b in pairwise(ends)]


def test_the_five_commands_of_readme_do_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = write_table(tmp_path, schema=None)
    commands = documented()
    draft = run(*shlex.split(commands[0][0])[1:])
    assert draft.code == 2 and "Expected a schema beside it, visits.schema.json" in draft.error
    assert not (tmp_path / "noisefloor-store").exists()
    table.with_suffix(".schema.json").write_text(SCHEMA)
    assert len(commands) == 5
    for command, lines in commands:
        program, *words = shlex.split(command)
        assert program == "noisefloor"
        found = run(*words)
        assert (found.code, found.error) == (0, ""), command
        pattern = "\n".join(".*".join(map(re.escape, line.split("..."))) for line in lines)
        assert re.fullmatch(pattern, found.out.rstrip("\n")), f"{command}\n{found.out}"
