"""Made-up reviews, private and public ones, and the tiny plan with a tiny tokeniser."""

import json
from pathlib import Path

import pytest

from generalisation_cases import small_graph
from noisefloor_sim.papers.text import corpora, plans, reproduction, systems
from text_paper_cases import BAD, GOOD, MORE, TINY, Pair
from tiny_backbones import WORDS, write_piece_file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write made-up reviews, private and public ones, and a tiny tokeniser beside them."""
    found = tmp_path_factory.mktemp("texts")
    write_piece_file(found / "tiny", (*WORDS, *MORE))
    for name, shift, count in (("own", 0, 128), ("public", 3, 96)):
        rows = []
        for row in range(count):
            words, place = (BAD, GOOD)[row % 2], row // 2 + shift
            end = ("in Paris", "with Anna Smith", "in London")[row % 3]
            rows.append(
                f"the {words[place % 4]} film was<br />{words[place // 4 % 4]} "
                f"{words[place // 16 % 4]} {end}\t{row % 2}"
            )
        (found / f"{name}.tsv").write_text("\n".join(("text\tlabel", *rows, *rows[:16], "")))
        schema = {"text": {"text": 8}, "label": {"categories": [1, 0]}}
        document = {"record": "one review", "columns": schema, "label": "label"}
        (found / f"{name}.schema.json").write_text(json.dumps(document))
    return found


@pytest.fixture
def tiny(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """Run the tiny plan with the tiny tokeniser; return private and public texts."""
    graph = small_graph()
    for module in (systems, reproduction):
        monkeypatch.setattr(module, "shared_place_graph", lambda: graph)
    monkeypatch.setattr(plans, "QUICK", TINY)
    monkeypatch.setenv("NOISEFLOOR_BACKBONE", str(folder / "tiny"))
    corpora.read_prepared.cache_clear()
    return str(folder / "own.tsv"), str(folder / "public.tsv")
