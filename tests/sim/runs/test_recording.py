"""Recorded frames are those that the devices of the scenario sent, and nothing else."""

from noisefloor.wire import decode_frame
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.runs import record_frames
from noisefloor_sim.scenario import loads

TEXT = """
name: s
question: q
seed: 1
days: 2
population: {users: 600}
pipelines: {clicks: {form: one-click}}
"""


def test_the_frames_are_of_the_kinds_of_the_world_and_the_same_each_time() -> None:
    scenario = loads(TEXT, BLOCKS)
    found = record_frames(scenario)
    kinds = found.collection.kinds
    read = [decode_frame(data, kinds) for _, data in found.frames]
    assert {frame.kind.name for frame in read} == {"clicks", "impressions"}
    assert {frame.epoch for frame in read} == {0, 1}
    assert found.frames == record_frames(scenario).frames


def test_progress_is_reported_by_cohorts() -> None:
    seen: list[tuple[int, int]] = []
    record_frames(loads(TEXT, BLOCKS), lambda done, of: seen.append((done, of)))
    assert seen == [(1, 2), (2, 2)]
