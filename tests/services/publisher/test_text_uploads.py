"""Uploaded texts: the running publisher trains a head on them, and takes no other method."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from live_apps import Live, bearer, credentials, live
from noisefloor.publication.fine_tuning import load_backbone, load_text_model
from noisefloor.publication.text import load_pseudo_texts
from noisefloor.roles.publication_methods import methods_of
from noisefloor.tables import (
    Categories,
    TextRecords,
    TextSchema,
    data_schema_fields,
    encode_data,
    text_schema_fields,
)
from noisefloor_services import publisher
from noisefloor_services.publisher.data_sets import read_data_sets
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.embedded import EmbeddedServer
from tiny_backbones import write_piece_file, write_tiny_bert

ADMIN, PUBLISH, READ = bearer(Role.ADMIN), bearer(Role.PUBLISH), bearer(Role.READ)
BYTES = {**ADMIN, "Content-Type": "application/octet-stream"}
SCHEMA = TextSchema("one review", {"review": 6}, "mood", Categories(("bad", "good")))
TEXTS = ["the dull film", "a great film"] * 60
RECORDS = TextRecords.of({"review": TEXTS, "mood": ["bad", "good"] * 60}, SCHEMA, "reviews")
COST = {"epsilon": 4.0, "delta": 1e-6, "neighbours": "record-add-remove"}


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    tiny = write_piece_file(write_tiny_bert(tmp_path / "tiny"))
    monkeypatch.setenv("NOISEFLOOR_BACKBONE", str(tiny))
    monkeypatch.setenv("NOISEFLOOR_PUBLIC_TEXTS", str(tmp_path / "public.tsv"))
    (tmp_path / "public.tsv").write_text("review\tmood\nthe good film and the bad plot\tgood\n")
    (tmp_path / "public.schema.json").write_text(json.dumps(text_schema_fields(SCHEMA)))
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path / "cache"))
    with EmbeddedServer(tmp_path / "valkey") as valkey:
        settings = Settings(
            redis_url=valkey.url,
            ledger="texts",
            ledger_anchor=tmp_path / "anchor",
            credentials=credentials(),
        )
        publisher.create_ledger(settings)
        own = {"own": RECORDS}
        with live(publisher.create(settings, methods_of(own), data_sets=own)) as running:
            running.wait_ready()
            yield running


def publish(app: Live, name: str, **more: Any) -> httpx.Response:
    request = {
        "publication_id": f"p-{name}",
        "data_set": name,
        "method": "text-head",
        "cost": COST,
        "parameters": {"size": 120, "steps": 5},
    }
    return app("POST", "/publications", json={**request, **more}, headers=PUBLISH)


def content(app: Live, name: str) -> bytes:
    """Return what was published, once it is there."""
    for _ in range(600):
        found = app("GET", f"/publications/p-{name}", params={"data_set": name}, headers=READ)
        if found.status_code == 200:
            return found.content
        time.sleep(0.1)
    raise AssertionError(found.text)


def test_texts_of_an_upload_and_of_the_operator_are_published_from(
    app: Live, tmp_path: Path
) -> None:
    budget = {**COST, "epsilon": 8.0, "delta": 1e-5}
    declared = {"declaration": data_schema_fields(SCHEMA), "budget": budget, "audit": False}
    assert app("PUT", "/data-sets/reviews", json=declared, headers=ADMIN).status_code == 204
    path, data = "/data-sets/reviews/records/1", encode_data(RECORDS)
    refused = app("PUT", path, content=data[:-1], headers=BYTES)
    assert refused.status_code == 422 and "row 120 cut off" in refused.text
    assert app("PUT", path, content=data, headers=BYTES).status_code == 204
    other = publish(app, "reviews", method="histogram", parameters={"columns": "mood"})
    assert other.status_code == 422 and "text-head" in other.text
    backbone = load_backbone(tmp_path / "tiny")
    layers = {"size": 120, "trains": "lora", "steps": 40, "learning_rate": 0.02}
    printed = publish(
        app, "own", method="text-layers", parameters={**layers, "clipping": "printed"}
    )
    assert printed.status_code == 422 and "at least what is proved of text-layers" in printed.text
    more = {"reviews": {}, "own": {"method": "text-layers", "parameters": layers}}
    for name in ("reviews", "own"):
        assert publish(app, name, **more[name]).status_code in (200, 202)
        made = content(app, name)
        card = app("GET", f"/publications/p-{name}/card", params={"data_set": name}, headers=READ)
        model = load_text_model(made, card.json(), backbone=backbone, unsigned=True)
        trained = ("head",) if name == "reviews" else ("head", "adapters of layer 3")
        assert model.file.trained == trained
        if name == "reviews":  # a head alone learns it in five steps
            assert model.predict(TEXTS[:2]) == ["bad", "good"]


def test_made_up_texts_come_from_the_running_publisher_and_nothing_else_does(
    app: Live, caplog: pytest.LogCaptureFixture
) -> None:
    parameters = {"texts": 30, "public": "own"}
    assert publish(app, "own", method="text-ngrams", parameters=parameters).status_code in (
        200,
        202,
    )
    made = content(app, "own")
    answer = app("GET", "/publications/p-own", params={"data_set": "own"}, headers=READ)
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    card = app("GET", "/publications/p-own/card", params={"data_set": "own"}, headers=READ).json()
    assert load_pseudo_texts(made, card, SCHEMA, unsigned=True).count == 30
    assert card["format"] == "jsonl" and card["text_count"] == 30
    seen = caplog.text + app("GET", "/metrics", headers=ADMIN).text + json.dumps(card)
    assert not any(text in seen for text in TEXTS)


def test_an_operator_names_a_file_of_texts(tmp_path: Path) -> None:
    (tmp_path / "reviews.tsv").write_text("review\tmood\na film\tgood\n")
    declared = '{"record": "one", "columns": {"review": {"text": 3}, "mood": {"categories": ["bad"'
    (tmp_path / "reviews.schema.json").write_text(declared + ', "good"]}}, "label": "mood"}')
    found = read_data_sets([f"reviews={tmp_path / 'reviews.tsv'}"])["reviews"]
    assert isinstance(found, TextRecords) and found.labels.tolist() == [1]
