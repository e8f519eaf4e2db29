"""``noisefloor reproduce text``: a run that goes on, its files, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from generalisation_cases import small_graph
from noisefloor.errors import BadParameter, BadRunDirectory, MissingData
from noisefloor_sim.cli import commands
from noisefloor_sim.papers import cell_store
from noisefloor_sim.papers.text import claims, computed, measuring, reproduce_text, reproduction
from noisefloor_sim.papers.text.plans import VARIANTS, TextCell, TextRunPlan, cells_of
from text_paper_cases import TINY, Pair


@pytest.mark.slow
def test_an_interrupted_run_goes_on_and_ends_with_the_same_bytes(
    tiny: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["reproduce", "text", "--quick", "--jobs", "1", "--data", tiny[0], "--public", tiny[1]]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    real = measuring.run_cell
    done: list[TextCell] = []

    def interrupted(cell: TextCell, plan: TextRunPlan, frozen: Path) -> dict[str, Any]:
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(cell)
        return real(cell, plan, frozen)

    monkeypatch.setattr(measuring, "run_cell", interrupted)
    stopped = CliRunner().invoke(commands.app, [*words, "--out", str(broken)])
    assert (stopped.exit_code, len(done)) == (130, 5)
    monkeypatch.setattr(measuring, "run_cell", real)
    kept = sorted((broken / cell_store.CELLS).glob("*.json"))
    assert len(kept) == 5
    stamps = [path.stat().st_mtime_ns for path in kept]
    with pytest.raises(BadRunDirectory, match="field plan is of another run"):
        reproduce_text(
            quick=True,
            jobs=1,
            out=broken,
            force=False,
            resume=True,
            seed=2,
            data=tiny[0],
            public=tiny[1],
        )
    results = [
        CliRunner().invoke(commands.app, [*words, "--out", str(out), *more])
        for out, more in ((broken, ["--resume"]), (whole, []))
    ]
    assert [one.exit_code for one in results] == [0, 0], results[0].output
    assert [path.stat().st_mtime_ns for path in kept] == stamps
    for name in ("reproduction.json", "reproduction.csv", "report.html"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes()
    check_finished(whole, results[1].output)


def check_finished(out: Path, said: str) -> None:
    assert "As printed nothing is proved of the texts as a whole" in said
    assert "Quick run" in said
    assert "MB of memory" in said
    assert not (out / cell_store.FROZEN).exists()
    found = json.loads((out / "reproduction.json").read_text())
    assert len(found["cells"]) == len(cells_of(TINY))
    assert set(found["verdicts"]) == {
        *map(claims.variant_title, VARIANTS),
        computed.PRIVACY_VARIANT,
        computed.TABLE_VARIANT,
    }
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["peak_mb"] > 10
    page = (out / "report.html").read_text()
    for words in ("no audit", "Epsilon of each part of DPvG E-D", "rgba(0,114,178,"):
        assert words in page


def test_missing_data_are_named_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path / "none"))
    monkeypatch.setattr(reproduction, "shared_place_graph", small_graph)
    with pytest.raises(MissingData, match="noisefloor data fetch imdb"):
        reproduce_text(quick=True, jobs=1, out=tmp_path / "run", force=False)
    assert not (tmp_path / "run").exists()


def test_few_texts_many_classes_and_private_public_texts_are_refused(
    tiny: Pair, tmp_path: Path
) -> None:
    own = Path(tiny[0]).read_text().splitlines()
    schema = json.loads(Path(tiny[0]).with_name("own.schema.json").read_text())
    (tmp_path / "few.tsv").write_text("\n".join([*own[:30], ""]))
    (tmp_path / "few.schema.json").write_text(json.dumps(schema))
    schema["columns"]["label"] = {"categories": [1, 0, 2]}
    (tmp_path / "three.tsv").write_text("\n".join([*own, ""]))
    (tmp_path / "three.schema.json").write_text(json.dumps(schema))

    def run(data: str, public: str, splits: int = 0, jobs: int = 1) -> None:
        reproduce_text(
            quick=True,
            jobs=jobs,
            out=tmp_path / "run",
            force=False,
            data=data,
            public=public,
            splits=splits,
        )

    with pytest.raises(BadParameter, match="at least 50 different texts"):
        run(str(tmp_path / "few.tsv"), tiny[1])
    with pytest.raises(BadParameter, match="of two classes"):
        run(str(tmp_path / "three.tsv"), tiny[1])
    with pytest.raises(BadParameter, match="another data set than the private one"):
        run(tiny[0], tiny[0])
    with pytest.raises(BadParameter, match="splits"):
        run(*tiny, splits=1)
    with pytest.raises(BadParameter, match="jobs"):
        run(*tiny, jobs=0)
    assert not (tmp_path / "run").exists()
