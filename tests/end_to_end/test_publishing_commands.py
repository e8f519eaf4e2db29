"""Publishing by command at a running publisher: the same commands, refusals in words."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from live_apps import LINES, TOKENS, credentials
from noisefloor.cards import SigningKey
from noisefloor.roles.publication_methods import methods_of
from noisefloor.tables import load_records
from noisefloor_services import publisher
from noisefloor_services.ledger import LedgerKeys
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.embedded import EmbeddedServer
from publishing_runs import run, write_table
from served import served

LOGISTIC = ("--method", "logistic", "--epsilon", "1", "--delta", "1e-6", "--set", "size=300")
SWAP = ("--neighbours", "record-substitute")
COUNTS = ("--method", "histogram", "--set", "columns=country", "--epsilon", "0.5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table, a key and tokens."""
    made = tmp_path_factory.mktemp("publishing")
    write_table(made, 300)
    SigningKey.create(made / "signing.key", "a clinic")
    (made / "tokens").write_text("\n".join(LINES))
    (made / "reader").write_text(TOKENS[Role.READ])
    return made


@pytest.fixture(scope="module")
def valkey(folder: Path) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(folder / "valkey") as embedded:
        yield embedded


@pytest.fixture(scope="module")
def url(folder: Path, valkey: EmbeddedServer) -> Iterator[str]:
    """Run a publisher with a data set of the operator's."""
    settings = Settings(
        redis_url=valkey.url,
        ledger_epsilon=1.0,
        credentials=credentials(),
        signing_key_file=folder / "signing.key",
        rate=1e6,
        burst=10**6,
    )
    publisher.create_ledger(settings)
    records = {"films": load_records(folder / "visits.csv")}
    service = publisher.create(settings, methods_of(records), data_sets=records)
    with served(service, settings) as address:
        yield address


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in the folder."""
    monkeypatch.chdir(folder)


def at(url: str, file: str = "tokens") -> tuple[str, ...]:
    return "--address", url, "--token-file", file


def test_a_file_is_registered_uploaded_published_fetched_and_used(url: str) -> None:
    words = ("publish", "visits.csv", *LOGISTIC, "--id", "m-1")
    refused = run(*words, *at(url))
    assert refused.code == 1 and "noisefloor ledger budget visits.csv --epsilon" in refused.error
    budget = ("ledger", "budget", "visits.csv", "--epsilon", "2", "--delta", "1e-5")
    assert "a budget of epsilon 2.000000" in run(*budget, *at(url)).out
    dry = run(*words, "--dry-run", *at(url))
    assert dry.code == 0 and "epsilon 1.000000, delta 9e-06 after it" in dry.out
    assert "stand-in records of this schema" in dry.out
    made = run(*words, *at(url))
    assert made.code == 0 and "published from visits by logistic" in made.out, made.error
    assert "was published before" in run(*words, *at(url)).out
    assert "charged before" in run(*words, "--dry-run", *at(url)).out
    key = ("--key", "signing.key.pub")
    assert "which is none of the 0 trusted ones" in run("fetch", "m-1", *at(url)).error
    assert run("fetch", "m-1", *key, *at(url)).code == 0
    assert run("predict", "m-1.safetensors", "new-visits.csv", *key).out.startswith("buys\n")
    assert "m-1  visits  logistic" in run("cards", *at(url)).out
    assert json.loads(run("cards", "m-1", *at(url)).out)["publisher"]["name"] == "a clinic"
    assert "m-1 is entry 1 of visits" in run("ledger", "explain", "m-1", *at(url)).out
    assert (
        "every link holds, entries: 1, cards that agree: 1"
        in run("ledger", "verify", *at(url)).out
    )


def test_the_operators_data_set_is_named_and_a_refusal_names_what_ran_out(url: str) -> None:
    dry = run("publish", "films", *COUNTS, "--id", "f-0", "--dry-run", *at(url))
    assert "left: epsilon 1.000000" in dry.out and "the schema of films is not on" in dry.out
    for number in range(2):
        assert run("publish", "films", *COUNTS, "--id", f"f-{number}", *at(url)).code == 0
    refused = run("publish", "films", *COUNTS, "--id", "f-2", *at(url))
    assert refused.code == 1 and refused.error.count("\n") == 1
    assert "epsilon ran out: 0.5 asked for, 0 left" in refused.error
    dry = run("publish", "films", *COUNTS, "--id", "f-2", "--dry-run", *at(url))
    assert dry.code == 1 and "ran out" in dry.out
    taken = run("publish", "films", *COUNTS[:-1], "0.25", "--id", "f-1", *at(url))
    assert taken.code == 1 and "another request" in taken.error
    assert "films has spent epsilon 1.000000" in run("ledger", "show", "films", *at(url)).out


def test_a_token_without_the_role_is_refused_by_its_name(url: str) -> None:
    refused = run("publish", "films", *COUNTS, "--id", "f-9", *at(url, "reader"))
    assert refused.code == 1 and "lacks the role publish" in refused.error
    assert "lacks the role ledger" in run("ledger", *("show", *at(url, "reader"))).error
    refused = run(
        "publish", "visits.csv", *COUNTS, "--neighbours", "record-add-remove", *at(url, "reader")
    )
    assert "lacks the role admin" in refused.error
    Path("stranger").write_text("x" * 40)
    refused = run("ledger", "show", *at(url, "stranger"))
    assert refused.code == 1 and "bearer token that is known here" in refused.error


def test_bad_input_is_found_by_the_service_and_said_in_one_line(url: str) -> None:
    for words, named in (
        (("--method", "magic", "--epsilon", "1"), "one of anonymised-learning"),
        (("--method", "histogram", "--epsilon", "1", "--set", "columns=none"), "some of country"),
        (
            ("--method", "histogram", "--epsilon", "1", "--neighbours", "record-substitute"),
            "relation",
        ),
        (("--method", "histogram", "--epsilon", "1e7"), "epsilon"),
        (("--method", "histogram", "--epsilon", "1", "--set", f"columns={'a' * 2000}"), "columns"),
    ):
        found = run("publish", "films", *words, *at(url))
        assert (found.code, found.out) == (2, ""), found.error
        assert named in found.error and found.error.count("\n") == 1
    found = run("ledger", "budget", "films", "--epsilon", "1", *at(url))
    assert found.code == 2 and "a file with its schema" in found.error


def test_a_changed_record_on_the_server_is_found_by_the_client(
    url: str, valkey: EmbeddedServer
) -> None:
    for number in range(2):
        run("publish", "films", *COUNTS, "--id", f"f-{number}", *at(url))
    key = LedgerKeys(Settings().ledger).log("films")
    with Redis.from_url(valkey.url) as client:
        for place, named in ((0, "record 2 does not follow"), (1, "another than the card of")):
            whole = client.lindex(key, place)
            assert isinstance(whole, bytes)
            client.lset(key, place, re.sub(rb'"at":(\d)', rb'"at":9\1', whole))
            refused = run("ledger", "verify", "films", *at(url))
            assert refused.code == 1 and named in refused.error
            client.lset(key, place, whole)
    assert run("ledger", "verify", "films", *at(url)).code == 0


def test_a_publisher_that_is_away_is_to_be_tried_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from noisefloor_sim.deploy.hosting import publisher_client

    monkeypatch.setattr(publisher_client, "PATIENCE_S", 0.1)
    found = run("ledger", "show", *at("http://127.0.0.1:9"))
    assert found.code == 1 and "Try again later" in found.error
