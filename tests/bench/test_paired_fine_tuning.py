"""What the benchmark keeps of frozen layers gives the figures of the whole module."""

from pathlib import Path

import pytest
import torch
from bench.paired_fine_tuning import CellFile, LastMatrix, PairedCell

from fine_tuning_cases import COST, RECORDS, STEPS, tiny_case
from noisefloor.publication.fine_tuning.methods import FineTuningPlan, prepare_module
from noisefloor.randomness import SeededSource


def test_kept_outputs_give_the_figures_of_the_whole_layer(tmp_path: Path) -> None:
    case = tiny_case(tmp_path)
    shapes = case.shapes.only("layers.0.output.dense")
    plan = FineTuningPlan.of("ffa-lora", shapes, COST, RECORDS, STEPS, noise_multiplier=1.0)
    top = case.module()
    prepare_module(plan, top, SeededSource(1, "adapters"))
    module = LastMatrix(top)
    kept = module.kept(case.inputs, at_once=3)
    trained = [name for name, one in module.named_parameters() if one.requires_grad]
    assert trained == ["layers.0.left.weight", "head.weight", "head.bias"]
    with torch.no_grad():
        module.layers[0].get_submodule("left").get_parameter("weight").copy_(
            torch.linspace(-1, 1, plan.rank * 16).view(16, plan.rank)
        )
    assert torch.allclose(module(*kept), top(*case.inputs), atol=1e-4)
    assert not torch.allclose(top(*case.inputs), case.module()(*case.inputs), atol=1e-2)


def test_a_cell_is_done_once_for_its_settings(tmp_path: Path) -> None:
    cell = PairedCell("head", 0, 1, "a hash", 2.0, 0.75, 1.0)
    CellFile(tmp_path / "cells.jsonl").add(cell)
    again = CellFile(tmp_path / "cells.jsonl")
    assert again.find("head", 0, 1, "a hash") == cell
    assert again.find("head", 0, 1, "another") is None
    assert again.cells[0].accuracy == pytest.approx(0.75)
