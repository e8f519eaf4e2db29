"""The requests of a load: rows of the real mechanisms, in frames that the services take."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from noisefloor.errors import BadScenario
from noisefloor.wire import decode_frame
from noisefloor_services.stress.templates import MARK, read_templates
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.runs import RecordedFrames, record_frames
from noisefloor_sim.scenario import Load, loads
from noisefloor_sim.stress.requests import CLASSES, load_collection, write_requests

NAME = "stress-1"
TEXT = """
name: s
question: q
seed: 1
days: 1
population: {users: 2000}
pipelines: {clicks: {form: one-click}}
load:
  rows: 100
  shares: {frames: 0.8, reports: 0.1, requests: 0.1}
  steps: [{rate: 400, seconds: 5}]
"""


@pytest.fixture(scope="module")
def recorded() -> RecordedFrames:
    return record_frames(loads(TEXT, BLOCKS))


def load_of(text: str = TEXT) -> Load:
    load = loads(text, BLOCKS).load
    assert load is not None
    return load


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_frames_have_the_size_asked_for_and_rows_that_devices_sent(
    recorded: RecordedFrames, tmp_path: Path
) -> None:
    counts = write_requests(tmp_path / "r", load_of(), recorded, NAME, 1)
    kinds = load_collection(recorded).kinds
    sent = {
        (frame.kind.name, row)
        for _, data in recorded.frames
        for frame in [decode_frame(data, kinds)]
        for row in map(str, frame.batch.column(0).to_pylist())
    }
    frames = [row for row in rows_of(tmp_path / "r") if row["class"] == "frames"]
    assert len(frames) == counts["frames"] > 10
    for row in frames:
        assert row["path"] == f"/collections/{NAME}/frames"
        one = decode_frame(base64.b64decode(row["body"]), kinds, collections=(NAME,))
        assert one.batch.num_rows == row["rows"] == 100
        assert one.batch_id.hex() == MARK
        assert one.epoch < 32
        assert {
            (one.kind.name, text) for text in map(str, one.batch.column(0).to_pylist())
        } <= sent


def test_reports_and_ad_requests_are_json_of_one_row(
    recorded: RecordedFrames, tmp_path: Path
) -> None:
    counts = write_requests(tmp_path / "r", load_of(), recorded, NAME, 1)
    rows = rows_of(tmp_path / "r")
    bodies = {
        name: [json.loads(base64.b64decode(row["body"])) for row in rows if row["class"] == name]
        for name in ("reports", "requests")
    }
    assert len(bodies["reports"]) == counts["reports"]
    assert all(set(one["report"]) <= {0, 1} for one in bodies["reports"])
    assert [one["index"] for one in bodies["requests"]] == list(range(20))
    assert {row["rows"] for row in rows if row["class"] != "frames"} == {1}


def test_the_program_reads_what_is_written(recorded: RecordedFrames, tmp_path: Path) -> None:
    counts = write_requests(tmp_path / "r", load_of(), recorded, NAME, 1)
    templates = read_templates(tmp_path / "r", CLASSES)
    assert len(templates) == sum(counts.values())
    batch_id = b"0123456789abcdef0123456789abcdef"
    whole = templates[0].written(batch_id)
    head, _, body = whole.partition(b"\r\n\r\n")
    assert b"Content-Length: %d" % len(body) in head
    kinds = load_collection(recorded).kinds
    assert decode_frame(body, kinds, collections=(NAME,)).batch_id.hex().encode() == batch_id


@pytest.mark.parametrize("name", ["frames", "reports", "requests"])
def test_a_share_of_what_this_world_does_not_have_is_refused(name: str, tmp_path: Path) -> None:
    load = load_of().model_copy(
        update={
            "shares": load_of().shares.model_copy(update=dict.fromkeys(CLASSES, 0.0) | {name: 1.0})
        }
    )
    with pytest.raises(BadScenario, match=rf"load\.shares\.{name}: Expected 0: "):
        write_requests(tmp_path / "r", load, RecordedFrames(), NAME, 1)
