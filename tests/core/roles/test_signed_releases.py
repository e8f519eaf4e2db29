"""A release that was tampered with is refused in its own words; an honest one loads anywhere."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from labelled_tables import ADD, a_cost, visits
from noisefloor.accounting import FileLedger, LedgerTerms
from noisefloor.adversary.models.canary_audit import audit_plan
from noisefloor.canonical_json import canonical_json
from noisefloor.cards import SigningKey, check_card, sign_card
from noisefloor.errors import (
    BadCard,
    BadSnapshot,
    NewerCard,
    NoisefloorError,
    UnknownKey,
    UnsignedCard,
    WrongSignature,
)
from noisefloor.privacy import TrustModel
from noisefloor.publication import load_model, load_table
from noisefloor.publication.methods.model_plan import Canary, CanaryBounds
from noisefloor.randomness import SecureSource
from noisefloor.roles.artefact import Artefact, unpack_artefact
from noisefloor.roles.model_publisher import MemoryArtefactStore, ModelPublisher, ReleaseRequest
from noisefloor.roles.publication_methods import methods_of
from noisefloor.tables import data_schema_digest

ROOT = Path(__file__).resolve().parents[3]
OLD = Path(__file__).parent / "format_1"
KEY, OTHER = SigningKey(bytes(32), "ours"), SigningKey(bytes([1]) * 32, "theirs")
KEYS = (KEY.public,)
DATA_SETS = {"visits": visits(400)}
ROWS: dict[str, list[Any]] = {"age": [17, 70], "country": ["CH", "DE"], "pages": [3, 1]}
WITHOUT_TORCH = """
import sys
from importlib.abc import MetaPathFinder

class NoTorch(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "scipy", "dp_accounting", "redis", "fastapi"):
            raise ModuleNotFoundError(f"not here: {name}", name=name)

sys.meta_path.insert(0, NoTorch())
import json, pathlib, noisefloor.publication
folder = pathlib.Path(sys.argv[1])
read = lambda name: (folder / name).read_bytes()
model = noisefloor.publication.load_model(read("m-1"), read("m-1.card"), folder / "publisher.pub")
table = noisefloor.publication.load_table(read("h-1"), read("h-1.card"), folder / "publisher.pub")
print(json.dumps([model.predict(json.loads(sys.argv[2])), table["counts"].tolist()]))
"""


def quick_audit(canary: Canary, delta: float, seed: str) -> CanaryBounds:
    return audit_plan(canary, delta, seed, games=400)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Artefact]:
    """Publish a histogram and a model with an accuracy, charged to a ledger in files."""
    terms = LedgerTerms.of(10.0, 1e-4, neighbours=ADD, model=TrustModel.CENTRAL)
    ledger = FileLedger.create(tmp_path_factory.mktemp("ledger"), terms)
    methods = methods_of(DATA_SETS, quick_audit).values()
    publisher = ModelPublisher(
        ledger, MemoryArtefactStore(), methods, data_sets=DATA_SETS, signer=KEY
    )
    table = ReleaseRequest("h-1", "visits", "histogram", a_cost(0.5, ADD, 0.0), {"columns": "age"})
    asked: dict[str, Any] = {"label": "buys", "size": 400, "steps": 10, "accuracy_epsilon": 0.5}
    model = ReleaseRequest("m-1", "visits", "logistic", a_cost(2.0), asked)
    return {
        request.publication_id: publisher.publish(request, SecureSource())
        for request in (table, model)
    }


def test_a_card_says_who_when_how_and_what_it_cost(released: dict[str, Artefact]) -> None:
    table, model = released["h-1"].card, released["m-1"].card
    for place, card in enumerate((table, model), 1):
        assert card["publisher"] == {"name": "ours", "key": KEY.public.id}
        assert card["ledger"]["position"] == place
        assert len(card["ledger"]["head"]) == 64 and card["ledger"]["at"].endswith("Z")
        assert card["software"]["name"] == "noisefloor"
        assert card["schema_sha256"] == data_schema_digest(DATA_SETS["visits"].schema)
        assert (card["data_set"], card["neighbours"]) == ("visits", "record-add-remove")
        assert len(card["loading"]) == 3
    assert table["floats"].startswith("Nothing: the noise is of integers")
    assert "floating-point" in model["floats"] and "counts are integers" in model["floats"]
    assert model["ledger"]["cost"] == {"epsilon": 2.0, "delta": 1e-5}
    assert 2.0 < model["ledger"]["total_so_far"]["epsilon"] <= 10.0
    assert {"null", "planted", "verdict"} <= set(model["audit"])
    assert model["claims"]["proved"]["epsilon"] <= 2.0
    assert model["privacy"][0]["proved"] == model["claims"]["proved"]
    assert model["privacy"][-1]["about"] == "accuracy"
    low, high = model["accuracy"]["interval"]
    assert low <= model["accuracy"]["estimate"] <= high
    assert model["accuracy"]["cost"]["epsilon"] <= 0.5
    # Everything on it is signed: the digest is of other columns for another order of columns.
    first, *rest = DATA_SETS["visits"].schema.columns.items()
    turned = replace(DATA_SETS["visits"].schema, columns=dict([*rest, first]))
    assert data_schema_digest(turned) != table["schema_sha256"]


def test_each_way_of_tampering_is_refused_in_its_own_words(released: dict[str, Artefact]) -> None:
    made, other = released["m-1"], released["h-1"]
    changed = made.content[:-1] + bytes([made.content[-1] ^ 1])
    digest = hashlib.sha256(changed).hexdigest()
    lower = {**made.card, "guarantee": "Whoever sees this learns nothing."}
    both = {**made.card, "content_sha256": digest}
    cases: tuple[tuple[type[NoisefloorError], bytes, dict[str, Any], str], ...] = (
        (BadSnapshot, changed, made.card, "SHA-256 differs"),
        (WrongSignature, made.content, lower, "was changed after it was signed"),
        (WrongSignature, changed, both, "was changed after it was signed"),
        (BadSnapshot, made.content, other.card, "SHA-256 differs"),
        (UnknownKey, changed, sign_card(both, OTHER), "none of the 1 trusted"),
        (UnknownKey, made.content, sign_card(made.card, OTHER), "none of the 1 trusted"),
        (UnsignedCard, changed, {**both, "signature": None}, "is not signed"),
        (NewerCard, made.content, {**made.card, "card_format": 3}, "this version reads 2"),
    )
    for kind, content, card, rule in cases:
        for document in (card, canonical_json(card)):
            for load in (load_model, load_table):
                with pytest.raises(kind, match=rule):
                    load(content, document, KEYS)
    for load in (load_model, load_table):
        assert load(made.content, made.card_bytes, KEYS)
        assert load(made.content, json.loads(made.card_bytes), KEYS)
        assert load(made.content, sign_card(made.card, OTHER), unsigned=True)
        with pytest.raises(BadSnapshot, match="SHA-256"):
            load(changed, made.card, unsigned=True)


def test_honest_releases_load_in_a_fresh_process_without_torch(
    released: dict[str, Artefact], tmp_path: Path
) -> None:
    for name, made in released.items():
        (tmp_path / name).write_bytes(made.content)
        (tmp_path / f"{name}.card").write_bytes(made.card_bytes)
    (tmp_path / "publisher.pub").write_text(KEY.public.line)
    done = alone(tmp_path)
    assert done.returncode == 0, done.stderr
    table, model = released["h-1"], released["m-1"]
    predicted = load_model(model.content, model.card, KEYS).predict(ROWS)
    counts = load_table(table.content, table.card, KEYS)["counts"].tolist()
    assert json.loads(done.stdout) == [predicted, counts]
    (tmp_path / "publisher.pub").write_text(OTHER.public.line)
    assert "UnknownKey: Card: is signed by key" in alone(tmp_path).stderr


def alone(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, str(folder), json.dumps(ROWS)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT / "platform"), "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )


@cache
def old(name: str) -> Artefact:
    """Return what the version before signed cards stored, byte for byte."""
    return unpack_artefact((OLD / f"{name}.artefact").read_bytes())


def test_a_store_of_format_1_is_handed_out_as_it_is_and_loaded_by_insisting_only() -> None:
    """A rehearsal of the upgrade: the files are of the version before."""
    for name, load in (("histogram", load_table), ("logistic", load_model)):
        made = old(name)
        assert "card_format" not in made.card and "signature" not in made.card
        assert made.packed() == (OLD / f"{name}.artefact").read_bytes()
        with pytest.raises(UnsignedCard, match="format 1, from before cards were signed"):
            load(made.content, made.card_bytes, KEYS)
        assert load(made.content, made.card_bytes, unsigned=True)
        with pytest.raises(BadSnapshot, match="SHA-256"):
            load(made.content + b"x", made.card_bytes, unsigned=True)


def test_a_publisher_of_this_version_answers_a_retry_of_format_1_with_what_is_stored() -> None:
    terms = LedgerTerms.of(10.0, 1e-4, neighbours=ADD, model=TrustModel.CENTRAL)
    shelf = MemoryArtefactStore()
    stored = (OLD / "histogram.artefact").read_bytes()
    shelf.publish("h-1", stored)
    methods = methods_of({"visits": visits(100)}).values()
    asked = {"columns": "country,buys"}
    request = ReleaseRequest("h-1", "visits", "histogram", a_cost(0.5, ADD, 0.0), asked)
    publisher = ModelPublisher(Untouched(terms), shelf, methods, data_sets=DATA_SETS, signer=KEY)
    assert publisher.publish(request, SecureSource()).packed() == stored


class Untouched(FileLedger):
    """A ledger that nobody may ask for anything but its relation."""

    def __init__(self, terms: LedgerTerms) -> None:
        super().__init__(Path(os.devnull), terms)


def test_cards_of_simulations_say_that_nobody_signed_them() -> None:
    card = {**old("histogram").card, "card_format": 2, "publisher": None, "signature": None}
    with pytest.raises(BadCard, match=r"^Card: is not signed: anybody"):
        check_card(card, KEYS)
