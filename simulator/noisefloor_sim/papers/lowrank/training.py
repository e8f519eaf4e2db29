"""Run one cell: train on four fifths and say which texts of the rest were right.

A cell follows from its own name, the plan and the texts alone: its draws are named by its key, so
that the order of cells, workers and interruptions change nothing.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from noisefloor.accounting import noise_multiplier_for
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.fine_tuning import (
    Backbone,
    TopLayers,
    longest_row,
    shared_backbone,
)
from noisefloor.publication.fine_tuning.methods import (
    EncoderShapes,
    FineTuningPlan,
    FineTuningRun,
    MaskLog,
    compare_clip_factors,
    fine_tune,
    mask_rule,
    prepare_module,
    train_plain,
)
from noisefloor.publication.private_sgd import PaddedInputs
from noisefloor.randomness import SeededSource, Source, new_run
from noisefloor.tables import TextRecords
from noisefloor_sim.papers.lowrank import texts
from noisefloor_sim.papers.lowrank.auditing import audit_cell, check_audited
from noisefloor_sim.papers.lowrank.plans import LowRankCell, LowRankPlan, cells_of, settings_of
from noisefloor_sim.papers.lowrank.printed import DELTA, LISTED_EXAMPLES

if TYPE_CHECKING:
    from torch import Tensor

CellResult = dict[str, Any]  # JSON
_AT_ONCE = 128


def run_cell(cell: LowRankCell, plan: LowRankPlan, folder: Path) -> CellResult:
    """Return what a cell gives; a worker's whole job."""
    import torch

    torch.set_num_threads(1)
    with new_run():
        source = SeededSource(plan.seed, "lowrank", cell.key)
        if cell.kind == "audit":
            return audit_cell(cell, plan)
        if cell.kind == "factors":
            return _factors(cell, plan, folder, source)
        module, planned = _trained(cell, plan, folder, source)
    return {**_facts(planned), "right": _right(module, folder, cell.split)}


@lru_cache(maxsize=16)
def _noise(epsilon: float, rate: float, steps: int) -> float:
    return noise_multiplier_for(epsilon, DELTA, rate, steps)


def planned_cell(
    cell: LowRankCell,
    plan: LowRankPlan,
    examples: int,
    shapes: EncoderShapes,
    *,
    noise: float | None = None,
) -> FineTuningPlan:
    """Return the training of a cell.

    Args:
        cell: What is trained.
        plan: Of the run.
        examples: Training records.
        shapes: Of the encoder.
        noise: The multiplier; that of an accountant for one clipping bound if left out.
    """
    settings = settings_of(cell, plan, examples)
    name, neighbours = cell.engine_method, Neighbours.RECORD_ADD_REMOVE
    if not cell.epsilon:
        nothing = Guarantee.none("there is no noise", neighbours, TrustModel.CENTRAL)
        return FineTuningPlan.of(name, shapes, nothing, examples, settings)
    cost = Guarantee(cell.epsilon, neighbours, delta=DELTA, model=TrustModel.CENTRAL)
    rate = 1.0 if settings.batch is None else settings.batch / examples
    noise = noise or _noise(cell.epsilon, rate, settings.steps or 1)
    return FineTuningPlan.of(name, shapes, cost, examples, settings, noise_multiplier=noise)


def check_cells(plan: LowRankPlan, backbone: Backbone, records: TextRecords) -> None:
    """Refuse texts or a backbone that some cell cannot be run with, before anything is written.

    Raises:
        BadParameter: A rank is above a matrix's smaller side, or texts may be too long.
    """
    longest_row(backbone, records.schema)
    for cell in cells_of(plan):
        if cell.kind != "audit":
            shapes = _shapes(backbone, plan, records.schema.classes.size)
            planned_cell(cell, plan, records.count, shapes, noise=1.0)
        elif cell.method == "backbone":
            check_audited(cell, backbone)


def clip_groups(plan: LowRankPlan, backbone: Backbone) -> int:
    """Return what is clipped apart as printed: two factors of each trained matrix, and a head."""
    return 2 * len(_shapes(backbone, plan, classes=2).matrices) + 1


def _shapes(backbone: Backbone, plan: LowRankPlan, classes: int) -> EncoderShapes:
    pooled = texts.pooled_layers(backbone)
    return EncoderShapes.of(backbone, plan.train_layers, pooled, classes=classes)


def _facts(planned: FineTuningPlan) -> Mapping[str, Any]:  # Any: JSON
    noise = planned.sgd.noise_multiplier if planned.sgd else None
    return {"parameters": planned.parameters, "updated": planned.updated, "noise": noise}


def _ready(
    cell: LowRankCell, plan: LowRankPlan, folder: Path
) -> "tuple[TopLayers, FineTuningPlan, tuple[Tensor, ...]]":
    """Return the module as it begins, its plan, and the training side of the split."""
    backbone, prepared = shared_backbone(), texts.read_prepared(folder)
    module = texts.top_layers(backbone, plan, prepared.classes)
    data = texts.split_inputs(folder, cell.split, is_judged=False)
    shapes = _shapes(backbone, plan, prepared.classes)
    return module, planned_cell(cell, plan, len(data[-1]), shapes), data


def _trained(
    cell: LowRankCell, plan: LowRankPlan, folder: Path, source: Source
) -> tuple[TopLayers, FineTuningPlan]:
    module, planned, (*inputs, labels, lengths) = _ready(cell, plan, folder)
    if planned.sgd is None:
        train_plain(planned, module, tuple(inputs), labels, source)
    else:
        padding = PaddedInputs(lengths, inputs=(0, 1))
        fine_tune(planned, module, tuple(inputs), labels, source, padding=padding)
    return module, planned


def _right(module: TopLayers, folder: Path, split: int) -> str:
    """Return 1 for each judged text that is right, 0 for the others, in order."""
    import torch

    (*inputs, labels, lengths) = texts.split_inputs(folder, split, is_judged=True)
    padding = PaddedInputs(lengths, inputs=(0, 1))
    found = torch.zeros(len(labels), dtype=torch.bool)
    with torch.no_grad():
        for places in padding.micro_batches(None, _AT_ONCE):
            longest = int(lengths[places].max())
            hidden, mask, pooled = (one[places] for one in inputs)
            outputs = module(hidden[:, :longest], mask[:, :longest], pooled)
            found[places] = outputs.argmax(1) == labels[places]
    return "".join("01"[int(one)] for one in found.tolist())


def _factors(cell: LowRankCell, plan: LowRankPlan, folder: Path, source: Source) -> CellResult:
    """Train with a log of masks, then compare clip factors: these show single examples."""
    module, planned, (*inputs, labels, lengths) = _ready(cell, plan, folder)
    prepare_module(planned, module, source.child("adapters"))
    rule = mask_rule(planned, module)
    log = MaskLog(rule) if rule is not None else None
    run = FineTuningRun(
        *(planned, module, tuple(inputs), labels, source.child("training")),
        padding=PaddedInputs(lengths, inputs=(0, 1)),
        masks=log,
    )
    with run:
        run.run()
        run.finish()
    count = min(plan.listed, len(labels))
    some = tuple(one[:count] for one in inputs)
    pair = compare_clip_factors(
        planned, module, some, labels[:count], source.child("looking"), is_experiment=True
    )
    overlaps = log.overlaps(is_experiment=True) if log is not None else []
    unmasked, masked = (one.min(axis=1) for one in (pair.unmasked, pair.masked))
    return {
        **_facts(planned),
        "unmasked": [round(float(one), 6) for one in unmasked],
        "masked": [round(float(one), 6) for one in masked],
        "listed": LISTED_EXAMPLES,
        "overlap": [round(float(np.mean(list(one.values()))), 6) for one in overlaps],
    }
