"""The adversary against the ad pipeline, tested on canaries with known profiles."""

from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.ads.activity import play_activity
from noisefloor_sim.pipelines.ads.delivery import DeliveryPhase
from noisefloor_sim.pipelines.ads.request_games import request_games
from noisefloor_sim.pipelines.ads.training import TrainingPhase
from noisefloor_sim.pipelines.ads.training_games import training_games
from noisefloor_sim.pipelines.attack_metrics import attack_metrics
from noisefloor_sim.pipelines.base import Metric, Stage


def attack(
    training: TrainingPhase, delivery: DeliveryPhase, stage: Stage, source: SeededSource
) -> list[Metric]:
    """Play every game that the threat model allows, and return what came out."""
    busy = play_activity(
        delivery.scenario, stage, source.child("activity"), is_daily=delivery.is_daily
    )
    games = [
        *request_games(delivery, stage, source),
        *training_games(training, stage, source),
        ("activity", busy),
    ]
    return [metric for name, outcome in games for metric in attack_metrics(name, outcome)]
