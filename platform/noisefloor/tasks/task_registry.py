"""Every task that a server may run, listed in one place, as plain data.

A task is a frozen value whose parameters are public, so server and devices can agree on one by
a description: ``{"method": "bits", "ads": 20, ...}``. What is not written here does not exist.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from noisefloor.errors import BadParameter
from noisefloor.tasks import ad_task
from noisefloor.tasks.record_task import RECORD_METHODS, RecordTask
from noisefloor.tasks.training_task import TrainingTask

Description = Mapping[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class TaskFamily:
    """Courses of one type.

    Attributes:
        methods: The names by which they are asked for.
        type: Of the task.
        read: Makes the task of a description; raises BadParameter.
        describe: Describes a task of the type as plain data that ``read`` reads.
    """

    methods: tuple[str, ...]
    type: type[TrainingTask]
    read: Callable[[Description], TrainingTask]
    describe: Callable[[Any], dict[str, Any]]  # Any: a task of the type; JSON


TASK_FAMILIES: tuple[TaskFamily, ...] = (
    TaskFamily(
        tuple(ad_task.AD_TRAININGS),
        ad_task.AdTask,
        lambda payload: ad_task.AdTask(ad_task.ad_training_from_description(payload)),
        lambda task: ad_task.training_description(task.training),
    ),
    TaskFamily(RECORD_METHODS, RecordTask, RecordTask.of_json, RecordTask.as_json),
)


def task_from_description(payload: Description) -> TrainingTask:
    """Make the task that was requested."""
    methods = {name: family for family in TASK_FAMILIES for name in family.methods}
    method = payload.get("method")
    if method not in methods:
        raise BadParameter("method", method, f"one of {', '.join(methods)}")
    return methods[method].read(payload)


def task_description(task: TrainingTask) -> dict[str, Any]:  # Any: JSON
    """Describe a task as plain data that ``task_from_description`` reads."""
    for family in TASK_FAMILIES:
        if isinstance(task, family.type):
            return family.describe(task)
    raise BadParameter("course", type(task).__name__, "one that is listed")
