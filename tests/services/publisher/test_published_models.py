"""Models over HTTP: paid for, made beside the requests, fetched, checked and asked elsewhere."""

import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

import valkeys
from labelled_tables import write_labelled
from live_apps import LINES, ROOT, TOKENS, Process, bearer, process
from noisefloor.canonical_json import canonical_json
from noisefloor.cards import SigningKey, sign_card
from noisefloor.errors import BadSnapshot
from noisefloor.publication import load_model
from noisefloor.roles.publication_methods import LOADING
from noisefloor_services.security.credentials import Role
from publisher_commands import command, ready

PUBLISH, READ, LEDGER = bearer(Role.PUBLISH), bearer(Role.READ), bearer(Role.LEDGER)
NAME = "model-publisher"
QUICK = {"label": "buys", "steps": 20, "size": 600}
ROWS: dict[str, list[Any]] = {
    "age": [17, 70, 40],
    "country": ["CH", "DE", "CH"],
    "pages": [3, 1, 4],
}

FETCH = """
import sys, pathlib, httpx
url, token = sys.argv[1], {"Authorization": f"Bearer {sys.argv[2]}"}
folder = pathlib.Path(sys.argv[3])
file, card = (httpx.get(url + end, headers=token) for end in ("", "/card"))
(folder / "model.safetensors").write_bytes(file.content)
(folder / "card.json").write_text(card.text)
"""
ALONE = """
import sys
from importlib.abc import MetaPathFinder

class OnlyNumpyAndSafetensors(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        known = {"numpy", "safetensors", "cryptography", "noisefloor", *sys.stdlib_module_names}
        if first not in known and not first.startswith("_"):
            raise ModuleNotFoundError(f"not here: {name}", name=name)

sys.meta_path.insert(0, OnlyNumpyAndSafetensors())
import json, pathlib
folder, table = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
content = (folder / "model.safetensors").read_bytes()
card = (folder / "card.json").read_bytes()

import noisefloor.publication
model = noisefloor.publication.load_model(content, card, folder / "publisher.pub")
predicted = model.predict(table)

print(json.dumps(predicted))
"""


@dataclass(frozen=True)
class Running:
    """A publisher of labelled tables with a budget of epsilon 3 each."""

    url: str
    settings: dict[str, str]
    folder: Path
    options: tuple[str, ...]


def publisher_settings(store: str, folder: Path, **more: str) -> dict[str, str]:
    fixed = {"LEDGER_EPSILON": "3", "LEDGER_DELTA": "1e-4", "RATE": "10000", "BURST": "10000"}
    anchor = {"LEDGER_ANCHOR": str(folder / "anchor")}
    return {"REDIS_URL": store, "TOKENS": ";".join(LINES), **fixed, **anchor, **more}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("models")
    table = write_labelled(folder)
    listed = [f"{name}={table}" for name in ("visits", "bad", "more")]
    options = tuple(word for one in listed for word in ("--data-set", one))
    with valkeys.folder() as place, valkeys.server(place) as store:
        settings = publisher_settings(store, folder)
        command("create-ledger", settings)
        with process(NAME, folder, settings, *options) as made:
            yield Running(ready(made), settings, folder, options)
            assert made.end() == 0


def publish(url: str, publication_id: str, **more: Any) -> httpx.Response:
    cost = {"epsilon": 1.0, "delta": 1e-5, "neighbours": "record-add-remove"}
    fixed = {"publication_id": publication_id, "data_set": "visits", "method": "logistic"}
    body = {**fixed, "cost": cost, "parameters": QUICK, **more}
    return httpx.post(f"{url}/publications", json=body, headers=PUBLISH, timeout=120)


def state(url: str, publication_id: str) -> str:
    answer = httpx.get(f"{url}/publications/{publication_id}/state", headers=READ)
    return str(answer.json()["state"]) if answer.status_code == 200 else "unknown"


def wait_stored(url: str, publication_id: str) -> None:
    for _ in range(1200):
        far = state(url, publication_id)
        if far == "stored":
            return
        assert far in ("waiting", "running", "charged"), far
        time.sleep(0.05)
    raise AssertionError("it was not stored")


def statement(url: str, data_set: str = "visits") -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{url}/ledger/{data_set}", headers=LEDGER).json()
    return found


def fetched(url: str, publication_id: str) -> tuple[bytes, dict[str, Any]]:
    answers = [
        httpx.get(f"{url}/publications/{publication_id}{end}", headers=READ)
        for end in ("", "/card")
    ]
    return answers[0].content, answers[1].json()


def alone(folder: Path) -> "subprocess.CompletedProcess[str]":
    """Load and ask a model in a fresh process that has numpy and safetensors, and no more."""
    return subprocess.run(
        [sys.executable, "-c", ALONE, str(folder), json.dumps(ROWS)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT / "platform"), "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )


def test_a_model_is_paid_for_made_fetched_and_asked_elsewhere(
    running: Running, tmp_path: Path
) -> None:
    url = running.url
    first = publish(url, "m-1")
    assert (first.status_code, first.json()["card"]) == (202, None), first.text
    assert first.headers["location"] == "/publications/m-1/state"
    assert statement(url)["spent_micro_epsilon"] == 1_000_000
    wait_stored(url, "m-1")
    place = f"{url}/publications/m-1"
    arguments = [sys.executable, "-c", FETCH, place, TOKENS[Role.READ], str(tmp_path)]
    subprocess.run(arguments, check=True)
    key = running.folder / "signing.key.pub"
    shutil.copy(key, tmp_path / "publisher.pub")
    done = alone(tmp_path)
    assert done.returncode == 0, done.stderr
    content, card = fetched(url, "m-1")
    assert json.loads(done.stdout) == load_model(content, card, key).predict(ROWS)
    assert card["widths"] == [9, 2]
    assert card["training"]["steps"] == 20
    assert card["privacy"][0]["proved"]["epsilon"] <= 1
    assert card["audit"]["is_audited"]
    assert card["audit"]["epsilon_at_least"] <= card["privacy"][0]["proved"]["epsilon"]
    again = publish(url, "m-1")
    assert (again.status_code, again.json()["card"]) == (200, card)
    assert fetched(url, "m-1") == (content, card)
    assert publish(url, "m-1", parameters={**QUICK, "steps": 21}).status_code == 409
    assert statement(url)["spent_micro_epsilon"] == 1_000_000
    changed = bytearray(content)
    changed[-3] ^= 16
    (tmp_path / "model.safetensors").write_bytes(bytes(changed))
    refused = alone(tmp_path)
    assert refused.returncode == 1
    assert "SHA-256 differs" in refused.stderr
    with pytest.raises(BadSnapshot):
        load_model(bytes(changed), card, key)
    # Whoever changes file and card together cannot sign them.
    forged = sign_card(
        {**card, "content_sha256": hashlib.sha256(changed).hexdigest()}, SigningKey(bytes(32), "x")
    )
    (tmp_path / "card.json").write_bytes(canonical_json(forged))
    assert "none of the 1 trusted ones" in alone(tmp_path).stderr


def test_the_description_tells_how_to_load_a_model(running: Running) -> None:
    described = httpx.get(f"{running.url}/openapi.json").json()["info"]["description"]
    for line in LOADING:
        assert line in described
    for name in ("logistic", "private-sgd", "anonymising-first", "learning-first"):
        assert f"**{name}.**" in described
    assert re.search(r"`hidden`.*`epochs`", described, re.DOTALL)


def test_bad_and_unpaid_models_write_nothing(running: Running) -> None:
    url, swap = running.url, "record-substitute"
    anchor = running.folder / "anchor"
    before, wrote = anchor.read_bytes(), statement(url, "bad")
    sgd = {"method": "private-sgd"}
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"parameters": {**QUICK, "label": "town"}}, "label one of age, country, pages, buys"),
        ({"parameters": {"label": "buys"}}, "size declared, a whole number"),
        ({"parameters": {**QUICK, "steps": 10**9}}, "steps a whole number in [1, 1000]"),
        ({"parameters": {**QUICK, "town": 1}}, "parameters some of steps, clip"),
        (
            {**sgd, "parameters": {"label": "buys", "size": 600, "hidden": "99999"}},
            "hidden none, or at most 4 widths in [1, 1024]",
        ),
        (
            {**sgd, "parameters": {"label": "buys", "size": 600, "epochs": 1e9}},
            "epochs a number in [0.01, 200]",
        ),
        (
            {"cost": {"epsilon": 1, "delta": 0, "neighbours": "record-add-remove"}},
            "delta > 0: the noise of this method needs one",
        ),
        (
            {"method": "learning-first", "parameters": {"label": "buys"}},
            "neighbours record-substitute: batches and thresholds",
        ),
        (
            {
                "method": "learning-first",
                "parameters": {"label": "buys", "variant": "paper"},
                "cost": {"epsilon": 1, "neighbours": swap},
            },
            "neighbours record-add-remove, the relation of the budget",
        ),
        (  # by substitution the number of rows would be public, and the rule would tell it
            {
                **sgd,
                "parameters": {"label": "buys", "batch": 10**9},
                "cost": {"epsilon": 1, "delta": 1e-5, "neighbours": swap},
            },
            "neighbours record-add-remove, the relation of the budget",
        ),
    )
    for more, said in wrong:
        answer = publish(url, "b-1", **{"data_set": "bad", **more})
        assert answer.status_code == 422, (more, answer.text)
        assert said in answer.json()["detail"], (more, answer.text)
        assert "town" not in answer.text
    cost = {"epsilon": 3.5, "delta": 1e-5, "neighbours": "record-add-remove"}
    over = publish(url, "b-1", data_set="bad", cost=cost)
    assert (over.status_code, over.json()["error"]) == (409, "budget-exceeded")
    assert state(url, "b-1") == "unknown"
    assert httpx.get(f"{url}/publications/b-1", headers=READ).status_code == 404
    assert (statement(url, "bad"), anchor.read_bytes()) == (wrote, before)


@pytest.mark.slow
def test_private_sgd_and_tables_come_from_the_same_service(running: Running) -> None:
    url = running.url
    label = {"label": "buys", "size": 600}
    small = {**label, "hidden": 4, "epochs": 1, "batch": 200}
    assert publish(url, "s-1", data_set="more", method="private-sgd", parameters=small)
    tables = {"data_set": "more", "method": "synthetic-table", "parameters": label}
    assert publish(url, "s-2", **tables).status_code == 202
    for name in ("s-1", "s-2"):
        wait_stored(url, name)
    content, card = fetched(url, "s-1")
    assert (
        load_model(content, card, unsigned=True).parameters
        == card["parameter_count"]
        == 9 * 4 + 4 + 4 * 2 + 2
    )
    assert card["training"]["noise_multiplier"] > 0
    assert "rows/age" in fetched(url, "s-2")[1]["tensors"]
    spent = {line["release"]: line["epsilon"] for line in statement(url, "more")["what_spent_it"]}
    assert spent == {"private-sgd": 1.0, "synthetic-table": 1.0}


@pytest.mark.slow
def test_a_publisher_killed_between_charge_and_release_makes_it_for_nothing(
    running: Running, tmp_path: Path
) -> None:
    """A training that takes minutes is killed amid it; a quick request then shows what is free."""
    with valkeys.folder() as place, valkeys.server(place) as store:
        settings = publisher_settings(store, tmp_path)
        command("create-ledger", settings)
        long = {"label": "buys", "size": 600, "steps": 1000}

        def start() -> Any:
            return process(NAME, tmp_path, settings, *running.options)

        with start() as made:
            url = ready(made)
            assert publish(url, "k-1", parameters=long).status_code == 202
            made.process.send_signal(signal.SIGKILL)
            made.process.wait(5)
        with start() as made:
            _rerun(made, long)


def _rerun(made: Process, parameters: dict[str, Any]) -> None:
    url = ready(made)
    assert statement(url)["spent_micro_epsilon"] == 1_000_000
    if state(url, "k-1") != "stored":  # else it was quicker than the signal
        assert state(url, "k-1") == "charged"
        assert httpx.get(f"{url}/publications/k-1", headers=READ).status_code == 404
        assert publish(url, "k-1", parameters=parameters).status_code == 202
    wait_stored(url, "k-1")
    assert statement(url)["spent_micro_epsilon"] == 1_000_000
    content, card = fetched(url, "k-1")
    assert load_model(content, card, unsigned=True).predict(ROWS)
