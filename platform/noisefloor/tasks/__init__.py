"""Training in rounds: what a round broadcasts, collects and fits, for ads and for records."""

from noisefloor.tasks.ad_task import AdTask, read_broadcast, write_broadcast
from noisefloor.tasks.record_task import RecordTask
from noisefloor.tasks.round_trainers import ClassifierTrainer, FittedModel, NaiveBayesTrainer
from noisefloor.tasks.task_registry import task_description, task_from_description
from noisefloor.tasks.training_task import (
    MOST_QUERIES,
    RoundRelease,
    TrainingTask,
    answer_queries,
    kinds_of_task,
)

__all__ = [
    "MOST_QUERIES",
    "AdTask",
    "ClassifierTrainer",
    "FittedModel",
    "NaiveBayesTrainer",
    "RecordTask",
    "RoundRelease",
    "TrainingTask",
    "answer_queries",
    "kinds_of_task",
    "read_broadcast",
    "task_description",
    "task_from_description",
    "write_broadcast",
]
