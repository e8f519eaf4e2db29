"""Trainings under way as safetensors files: weights, optimiser, step and plan."""

import json
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from noisefloor.errors import BadParameter, BadSnapshot
from noisefloor.publication.private_sgd.plan import SgdPlan
from noisefloor.publication.tensors import read_tensors, write_tensors

_HEADER = "about"
_WEIGHTS, _VECTORS = "weights/", "vectors/"


class Checkpoint(NamedTuple):
    """What a file holds.

    Attributes:
        weights: By name, as the module has them.
        vectors: What the optimiser and the training remember.
        step: How many steps were done.
        plan: Of the training.
    """

    weights: dict[str, Tensor]
    vectors: dict[str, Tensor]
    step: int
    plan: SgdPlan


def write_checkpoint(
    weights: Mapping[str, Tensor], vectors: Mapping[str, Tensor], step: int, plan: SgdPlan
) -> bytes:
    """Write a checkpoint; the plan goes in as text, a byte for each letter."""
    about = json.dumps({"step": step, "plan": plan.as_json()}, sort_keys=True).encode()
    tensors = {_HEADER: torch.tensor(list(about), dtype=torch.uint8).numpy()}
    tensors |= {f"{_WEIGHTS}{name}": one.detach().numpy() for name, one in weights.items()}
    tensors |= {f"{_VECTORS}{name}": one.detach().numpy() for name, one in vectors.items()}
    return write_tensors(tensors)


def read_checkpoint(content: bytes) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        BadSnapshot: It is none.
    """
    tensors = read_tensors(content)
    try:
        about = json.loads(tensors.pop(_HEADER).tobytes())
        plan, step = SgdPlan.from_json(about["plan"]), int(about["step"])
    except (KeyError, ValueError, TypeError, BadParameter):
        raise BadSnapshot("Checkpoint: does not say what it is of.") from None

    def below(prefix: str) -> dict[str, Tensor]:
        return {
            name.removeprefix(prefix): torch.from_numpy(one)
            for name, one in tensors.items()
            if name.startswith(prefix)
        }

    return Checkpoint(below(_WEIGHTS), below(_VECTORS), step, plan)
