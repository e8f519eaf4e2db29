"""The texts of a reproduction, and what the frozen layers make of them: once, kept on disk.

Workers read the same files. They are as private as the texts, stay in the run directory while it
is unfinished, and are removed with the last cell.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.publication.fine_tuning import (
    Backbone,
    FrozenStates,
    public_scaling,
    run_frozen,
    shared_backbone,
    tokenise,
)
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables import TextRecords, folds, load_texts
from noisefloor_sim.papers.lowrank.plans import PARTS, POOLED, LowRankPlan

if TYPE_CHECKING:
    from torch import Tensor

    from noisefloor.publication.fine_tuning import TopLayers

DEFAULT_DATA = "rotten-tomatoes"
LEAST_RECORDS = 100
_ARRAYS = ("hidden", "lengths", "pooled", "labels", "part")


@dataclass(frozen=True, slots=True, eq=False)
class PreparedTexts:
    """What cells are trained on and judged by.

    Attributes:
        states: What the frozen layers made of each text.
        labels: The class of each.
        part: Which of five parts each is in.
        classes: How many there are.
    """

    states: FrozenStates
    labels: NDArray[np.int64]
    part: NDArray[np.int64]
    classes: int


def load_records(source: str, plan: LowRankPlan) -> TextRecords:
    """Return the texts of a run: all of them, or as many of a seeded order as the plan says.

    Raises:
        BadParameter: They are too few.
    """
    records = load_texts(source)
    if records.count < LEAST_RECORDS:
        rule = f"at least {LEAST_RECORDS} rows, to train and to judge"
        raise BadParameter("data", "<texts>", rule)
    if not plan.records or records.count <= plan.records:
        return records
    with new_run():
        order = SeededSource(plan.seed, "lowrank", "records").permutation(records.count)
    return records[np.sort(order[: plan.records])]


def records_sha256(records: TextRecords) -> str:
    """Return the hash of texts and labels, by which a run is known again."""
    digest = hashlib.sha256(repr(records.schema).encode())
    for column in (*records.texts.values(), records.labels):
        for value in column.tolist():
            digest.update(f"{value}\0".encode())
    return digest.hexdigest()


def pooled_layers(backbone: Backbone) -> tuple[int, ...]:
    """Return the layers whose means are features: the last three, or all of fewer."""
    return tuple(range(max(1, backbone.depth - POOLED + 1), backbone.depth + 1))


def prepare(
    records: TextRecords, plan: LowRankPlan, folder: Path, progress: Callable[[int], None]
) -> None:
    """Run the frozen layers and keep what they give in a folder, whole or not at all."""
    if folder.is_dir():
        return
    backbone = shared_backbone()
    tokens = tokenise(backbone, records.schema, records.texts)
    states = run_frozen(
        backbone,
        tokens,
        pooled_layers(backbone),
        train_layers=plan.train_layers,
        progress=progress,
    )
    with new_run():
        part = folds(records.count, PARTS, SeededSource(plan.seed, "lowrank", "splits"))
    draft = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    kept = (states.hidden, states.lengths, states.pooled, records.labels, part)
    for name, array in zip(_ARRAYS, map(np.asarray, kept), strict=True):
        np.save(draft / f"{name}.npy", array, allow_pickle=False)
    (draft / "classes").write_text(str(records.schema.classes.size))
    os.replace(draft, folder)


@lru_cache(maxsize=1)
def read_prepared(folder: Path) -> PreparedTexts:
    """Return what was kept; the states are mapped, so that workers share their memory."""
    hidden, lengths, pooled, labels, part = (
        # A private mapping: torch takes no array that it may not write to.
        np.load(folder / f"{name}.npy", mmap_mode="c", allow_pickle=False)
        for name in _ARRAYS
    )
    classes = int((folder / "classes").read_text())
    states = FrozenStates(hidden, np.array(lengths), pooled)
    return PreparedTexts(states, np.array(labels), np.array(part), classes)


def top_layers(backbone: Backbone, plan: LowRankPlan, classes: int) -> "TopLayers":
    """Return what is trained, as it is in the backbone."""
    pooled = pooled_layers(backbone)
    scaling = public_scaling(backbone, pooled)
    from noisefloor.publication.fine_tuning import TopLayers  # lazy: needs torch

    return TopLayers(backbone, plan.train_layers, pooled, scaling, classes=classes)


@lru_cache(maxsize=2)
def split_inputs(folder: Path, split: int, *, is_judged: bool) -> "tuple[Tensor, ...]":
    """Return inputs, labels and lengths of one side of a split; labels and lengths come last."""
    import torch

    texts = read_prepared(folder)
    rows = np.flatnonzero((texts.part == split) == is_judged)
    states = texts.states
    mask = states.mask[rows]
    arrays = (states.hidden[rows], mask, states.pooled[rows], texts.labels[rows])
    return tuple(torch.from_numpy(one) for one in (*arrays, states.lengths[rows]))
