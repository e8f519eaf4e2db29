"""The publisher as a process: a third party fetches what it made, and nothing is given twice."""

import hashlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

import real_data as real_data_sets
import valkeys
from live_apps import LINES, TOKENS, bearer, process
from noisefloor.canonical_json import canonical_json
from noisefloor.errors import BadSnapshot
from noisefloor.publication import load_table
from noisefloor_services.__main__ import main
from noisefloor_services.security.acl import store_users, write_acl_file
from noisefloor_services.security.credentials import Role
from own_tables import write_visits
from publisher_commands import command, ready

PUBLISH, READ, LEDGER = bearer(Role.PUBLISH), bearer(Role.READ), bearer(Role.LEDGER)
NAME = "model-publisher"
THIRD_PARTY = """
import sys, httpx, noisefloor.publication
url, token = sys.argv[1], {"Authorization": f"Bearer {sys.argv[2]}"}

file, card = (httpx.get(url + end, headers=token) for end in ("", "/card"))
tensors = noisefloor.publication.load_table(file.content, card.content, sys.argv[3])

print(tensors["counts"].tolist())
"""


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_visits(tmp_path_factory.mktemp("data"))


@pytest.fixture
def place() -> Iterator[Path]:
    with valkeys.folder() as made:
        yield made


@dataclass(frozen=True)
class Running:
    """A publisher with the rights of its own user, three data sets, and an anchor."""

    url: str
    settings: dict[str, str]
    store: str
    folder: Path
    options: tuple[str, ...]


@pytest.fixture(scope="module")
def running(visits: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("publisher")
    passwords = {user.name: f"{user.name}-{'p' * 40}" for user in store_users()}
    write_acl_file(folder / "users.acl", passwords)
    options = [f"{name}={visits}" for name in ("visits", "bad", "lost")]
    options = [word for one in options for word in ("--data-set", one)]
    with (
        valkeys.folder() as place,
        valkeys.server(place, "--aclfile", str(folder / "users.acl")) as address,
    ):
        store = address.replace("unix://", f"unix://publisher:{passwords['publisher']}@")
        settings = publisher_settings(store, folder)
        command("create-ledger", settings)
        with process(NAME, folder, settings, *options) as made:
            yield Running(ready(made), settings, store, folder, tuple(options))
            assert made.end() == 0


def publisher_settings(url: str, place: Path, **more: str) -> dict[str, str]:
    """Return the settings of a publisher with an anchor."""
    fixed = {"LEDGER_ANCHOR": str(place / "anchor"), "LEDGER_EPSILON": "1.0", "RATE": "10000"}
    return {"REDIS_URL": url, "TOKENS": ";".join(LINES), "BURST": "10000", **fixed, **more}


def asked(publication_id: str = "p-1", **more: Any) -> dict[str, Any]:
    cost = {"epsilon": 0.25, "neighbours": "record-add-remove"}
    fixed = {"publication_id": publication_id, "data_set": "visits", "method": "histogram"}
    return {**fixed, "cost": cost, "parameters": {"columns": "country,age"}, **more}


def publish(url: str, publication_id: str = "p-1", **more: Any) -> httpx.Response:
    body = asked(publication_id, **more)
    return httpx.post(f"{url}/publications", json=body, headers=PUBLISH, timeout=30)


def statement(url: str, data_set: str = "visits") -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{url}/ledger/{data_set}", headers=LEDGER).json()
    return found


def third_party(url: str, key: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", THIRD_PARTY, url, TOKENS[Role.READ], str(key)],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_an_upload_needs_no_more_rights_on_the_store_than_the_publisher_has(
    running: Running,
) -> None:
    """The store's user of the publisher may touch the ledgers' keys alone, by few commands."""
    admin, path = bearer(Role.ADMIN), f"{running.url}/data-sets/uploaded"
    document = {
        "declaration": {"record": "one", "columns": {"buys": {"categories": ["no", "yes"]}}},
        "budget": {"epsilon": 0.25, "neighbours": "record-add-remove"},
    }
    assert httpx.put(path, json=document, headers=admin).status_code == 204
    headers = {**admin, "Content-Type": "application/octet-stream"}
    sent = httpx.put(f"{path}/records/1", content=bytes([0, 1] * 9), headers=headers)
    assert sent.status_code == 204
    more = {"data_set": "uploaded", "parameters": {"columns": "buys"}}
    answers = [publish(running.url, f"u-{number}", **more).status_code for number in range(2)]
    assert answers == [200, 409]
    assert httpx.delete(path, headers=admin).status_code == 204
    assert httpx.get(f"{running.url}/data-sets", headers=admin).json()["data_sets"] == []


def test_a_histogram_is_published_fetched_and_never_drawn_twice(
    running: Running, tmp_path: Path
) -> None:
    url = running.url
    dry = publish(url, dry_run=True).json()
    assert (dry["would_publish"], dry["state"], dry["card"]) == (True, None, None)
    assert dry["price"]["micro_epsilon"] == 250_000
    assert dry["price"]["left_micro_epsilon"] == 750_000
    assert statement(url)["spent_micro_epsilon"] == 0
    first = publish(url)
    assert (first.status_code, first.json()["state"]) == (200, "stored")
    card = first.json()["card"]
    assert card["claims"]["proved"]["epsilon"] <= 0.25
    assert card["claims"]["proved"]["neighbours"] == "record-add-remove"
    assert "whether any one record was in the data" in card["guarantee"]
    assert (card["record"], card["columns"]) == ("one visit", ["country", "age"])
    key = running.folder / "signing.key.pub"
    printed = third_party(f"{url}/publications/p-1", key)
    content = httpx.get(f"{url}/publications/p-1", headers=READ).content
    assert str(load_table(content, card, key)["counts"].tolist()) == printed
    assert (card["publisher"]["name"], card["ledger"]["position"]) == ("tests", 1)
    assert card["floats"].startswith("Nothing: the noise is of integers")
    with pytest.raises(BadSnapshot, match="SHA-256"):
        load_table(content[:-1] + bytes([content[-1] ^ 1]), card, key)
    assert publish(url).json() == first.json()
    assert publish(url, dry_run=True).json()["price"]["micro_epsilon"] == 0
    for is_dry in (False, True):
        assert publish(url, parameters={"columns": "age"}, dry_run=is_dry).status_code == 409
    assert httpx.get(f"{url}/publications/p-1/state", headers=READ).json()["state"] == "stored"
    assert httpx.get(f"{url}/publications/p-9/state", headers=READ).status_code == 404
    (line,) = statement(url)["what_spent_it"]
    assert (line["release"], line["count"], line["epsilon"]) == ("histogram", 1, 0.25)
    with process(NAME, tmp_path, running.settings, *running.options) as other:
        beside = ready(other)
        assert httpx.get(f"{beside}/publications/p-1", headers=READ).content == content
        assert publish(beside).json() == first.json()
        # What is stored is the signed card: the other process has another key, and the same bytes.
        cards = {
            httpx.get(f"{one}/publications/p-1/card", headers=READ).content
            for one in (url, beside)
        }
        assert cards == {canonical_json(card)}
        assert statement(beside)["spent_micro_epsilon"] == 250_000


def test_the_description_tells_a_client_developer_enough(running: Running) -> None:
    described = httpx.get(f"{running.url}/openapi.json").json()["info"]["description"]
    lines = [line.strip() for line in THIRD_PARTY.strip().splitlines()]
    assert lines[3].replace('"', "'") in described
    assert "noisefloor.publication.load_table" in described
    for text in ("**histogram.**", "`columns`", "`noise`", "`counts`", "noisefloor"):
        assert text in described


def test_bad_and_unpaid_requests_write_nothing(running: Running) -> None:
    url, record = running.url, "record-add-remove"
    anchor = running.folder / "anchor"
    before, wrote = anchor.read_bytes(), statement(url, "bad")
    wrong: tuple[dict[str, Any], ...] = (
        {"parameters": {}},
        {"parameters": {"columns": "town"}},
        {"parameters": {"columns": "age", "noise": "none"}},
        {"parameters": {"columns": "age", "depth": 3}},
        {"method": "network"},
        {"data_set": "films"},
        {"cost": {"epsilon": 0.25, "neighbours": "record-substitute"}},
        {"cost": {"epsilon": 0.25, "neighbours": "user"}},
        {"cost": {"epsilon": 0.25, "delta": 1e-12, "neighbours": record}},
    )
    for more in wrong:
        answer = publish(url, "b-1", **{"data_set": "bad", **more})
        assert answer.status_code == 422, (more, answer.text)
        assert "town" not in answer.text
    for epsilon, delta in ((1.5, 0.0), (0.99, 1e-3)):
        cost = {"epsilon": epsilon, "delta": delta, "neighbours": record}
        over = publish(url, "b-1", data_set="bad", cost=cost)
        assert (over.status_code, over.json()["error"]) == (409, "budget-exceeded")
    assert httpx.get(f"{url}/publications/b-1/state", headers=READ).status_code == 404
    assert (statement(url, "bad"), anchor.read_bytes()) == (wrote, before)
    cost = {"epsilon": 0.5, "delta": 1e-6, "neighbours": record}
    gauss = publish(url, "g-1", data_set="bad", cost=cost)
    assert "Gaussian" in gauss.json()["card"]["noise"]["law"]
    assert statement(url, "bad")["spent_delta"] == 1e-6


def test_without_its_anchor_nothing_is_spent(running: Running) -> None:
    url = running.url
    assert publish(url, "a-1", data_set="lost").status_code == 200
    before = (running.folder / "anchor").read_bytes()
    (running.folder / "anchor").unlink()
    answer = publish(url, "a-2", data_set="lost")
    assert (answer.status_code, answer.json()["error"]) == (503, "bad-anchor")
    command("create-ledger", running.settings)  # makes no empty one in its place
    assert publish(url, "a-2", data_set="lost").status_code == 503
    command("restore-ledger", running.settings)
    assert (running.folder / "anchor").read_bytes() == before
    assert publish(url, "a-2", data_set="lost").status_code == 200
    numbers = httpx.get(f"{url}/metrics", headers=READ).text
    assert 'ledger_spent_micro_epsilon{data_set="lost"} 500000' in numbers


@pytest.mark.slow
def test_a_restored_backup_is_refused_until_the_ledger_is_raised(
    place: Path, visits: Path, tmp_path: Path
) -> None:
    data_set = ("--data-set", f"visits={visits}")
    with valkeys.server(place) as store:
        settings = publisher_settings(store, tmp_path)
        command("create-ledger", settings)
        with process(NAME, tmp_path, settings, *data_set) as made:
            url = ready(made)
            kept = publish(url).json()
            shutil.copytree(place / "appendonlydir", tmp_path / "copy")  # as a backup would
            assert publish(url, "p-2").status_code == 200
    shutil.rmtree(place / "appendonlydir")
    shutil.copytree(tmp_path / "copy", place / "appendonlydir")
    with valkeys.server(place) as store:
        with process(NAME, tmp_path, settings, *data_set) as made:
            url = made.url
            for _ in range(500):
                lacks = httpx.get(f"{url}/readyz").json()["lacks"]
                if lacks != ["The service starts."]:
                    break
            assert lacks == ["The ledger holds less than its anchor says: run restore-ledger."]
            answer = publish(url, "p-3")
            assert (answer.status_code, answer.json()["error"]) == (503, "ledger-behind")
            assert answer.headers["retry-after"]
            assert "1 entries added" in command("restore-ledger", settings)
            ready(made)
            assert statement(url)["spent_micro_epsilon"] == 500_000
            releases = {one["release"] for one in statement(url)["what_spent_it"]}
            assert releases == {"histogram", "restored from the anchor"}
            assert publish(url).json() == kept
            assert publish(url, "p-3").status_code == 200
            assert publish(url, "p-4").status_code == 200
            assert publish(url, "p-5").status_code == 409  # 0.25 of p-2 is not forgotten
        assert "nothing was raised" in command("restore-ledger", settings)


@pytest.mark.slow
def test_a_killed_publisher_gives_one_draw_for_one_charge(
    place: Path, visits: Path, tmp_path: Path
) -> None:
    """Killed amid requests: whatever was sent is what is stored, and each id is paid once."""
    names = [f"p-{number}" for number in range(12)]
    sent: dict[str, set[str]] = {name: set() for name in names}

    def ask(url: str, name: str) -> None:
        with suppress(httpx.HTTPError):
            sent[name].add(publish(url, name).json()["card"]["content_sha256"])

    with valkeys.server(place) as store:
        settings = publisher_settings(store, tmp_path, LEDGER_EPSILON="100")
        command("create-ledger", settings)
        with process(NAME, tmp_path, settings, "--data-set", f"visits={visits}") as made:
            url = ready(made)
            with ThreadPoolExecutor(4) as pool:
                asked_ = [pool.submit(ask, url, name) for name in names]
                asked_[2].result()
                made.process.send_signal(signal.SIGKILL)
        assert any(sent.values()) and not all(sent.values())
        with process(NAME, tmp_path, settings, "--data-set", f"visits={visits}") as made:
            url = ready(made)
            for name in names:
                ask(url, name)
            assert all(len(hashes) == 1 for hashes in sent.values())
            assert statement(url)["spent_micro_epsilon"] == 12 * 250_000


@pytest.mark.slow
def test_films_are_published_by_name(
    place: Path,
    tmp_path: Path,
    real_data: Callable[[str], None],
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    real_data("movielens-100k")
    folder = real_data_sets.folder(pytestconfig, tmp_path_factory)
    with valkeys.server(place) as store:
        settings = publisher_settings(store, tmp_path)
        command("create-ledger", settings)
        settings["DATA"] = str(folder)
        with process(NAME, tmp_path, settings, "--data-set", "movielens-100k") as made:
            url = ready(made)
            answer = publish(url, data_set="movielens-100k", parameters={"columns": "rating"})
            assert "one rating of one film" in answer.json()["card"]["record"]
            content = httpx.get(f"{url}/publications/p-1", headers=READ).content
            assert hashlib.sha256(content).hexdigest() == answer.json()["card"]["content_sha256"]
            card = answer.json()["card"]
            counts = load_table(content, card, tmp_path / "signing.key.pub")["counts"]
            # Noise of scale 4: a cell is off by 150 once in e**37.
            assert abs(counts - [6110, 11370, 27145, 34174, 21201]).max() < 150


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["movielens-100k"], "noisefloor data fetch movielens-100k"),
        (["movielens"], "No data set is called 'movielens'. Did you mean 'movielens-100k'?"),
        (["Visits=x.csv"], "--data-set takes NAME or NAME=FILE"),
        (["visits="], "--data-set takes NAME or NAME=FILE"),
        (["visits=none.csv"], "none.csv: Expected a file, there is none of that name."),
        (["visits={}", "visits={}"], "--data-set names visits twice."),
        (["visits={}", "--data-folder", "{folder}"], "--data-set names visits twice."),
        (["--data-folder", "{folder}/none"], "/none: No such file or directory."),
        (["visits={bad}"], "bad.csv: column 'country': Expected one of its 2 categories"),
        (["visits={hole}"], "hole.csv: column 'age': Expected a value in every row, found none"),
    ],
)
def test_a_data_set_that_cannot_be_used_stops_the_start(
    visits: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path))
    rows = {"bad": "FR,3", "hole": "CH,"}
    files = {name: write_visits(tmp_path, row, name=name) for name, row in rows.items()}
    given = [one.format(str(visits), folder=visits.parent, **files) for one in arguments]
    at = given.index("--data-folder") if "--data-folder" in given else len(given)
    words = [word for one in given[:at] for word in ("--data-set", one)]
    assert main([NAME, *words, *given[at:]], {}) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("noisefloor: ") and errors.count("\n") == 1
    assert said in errors


def test_the_publisher_starts_with_a_key_of_its_own_only(
    visits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, variable = [NAME, "--data-set", f"visits={visits}"], "NOISEFLOOR_SIGNING_KEY_FILE"
    assert main(words, {}) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"noisefloor: {variable} has to name the key") and said.count("\n") == 1
    assert "make-signing-key PATH --name NAME" in said
    path = tmp_path / "own.key"
    assert main(["make-signing-key", str(path), "--name", "Example"], {}) == 0
    printed = capsys.readouterr().out
    assert printed == f"{path}.pub: {(tmp_path / 'own.key.pub').read_text()}"
    assert main(["make-signing-key", str(path)], {}) == 2
    assert "never written over" in capsys.readouterr().err
    path.chmod(0o644)
    assert main(words, {variable: str(path)}) == 2
    said = capsys.readouterr().err
    assert "others than its owner may read" in said and said.count("\n") == 1


def test_restore_ledger_wants_an_anchor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["restore-ledger"], {}) == 2
    assert "NOISEFLOOR_LEDGER_ANCHOR has to name" in capsys.readouterr().err
