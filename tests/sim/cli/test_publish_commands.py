"""Publishing by command into a folder of this machine: exit codes, one line, nothing half done."""

import json
import shutil
from pathlib import Path

import pytest

from noisefloor.errors import BadParameter
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SecureSource
from noisefloor.roles.file_publisher import FilePublisher
from noisefloor.tables import load_records
from noisefloor_sim.cli.published_data import PublishedData, RequestOptions
from publishing_runs import VISITS, run, write_table

HISTOGRAM = ("--method", "histogram", "--set", "columns=country")
LOGISTIC = ("--method", "logistic", "--set", "size=300", "--delta", "1e-6")
STORE = Path("noisefloor-store")
LOG = STORE / "visits" / "ledger" / "visits.log"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a table and a budget."""
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path, 300)
    run("ledger", "budget", "visits", "--epsilon", "2", "--delta", "1e-5")
    return tmp_path


def published(name: str = "a-1", epsilon: str = "0.25") -> str:
    found = run("publish", "visits.csv", *HISTOGRAM, "--epsilon", epsilon, "--id", name)
    assert found.code == 0, found.error
    return found.out


def refused(code: int, *words: str) -> str:
    """Run a command that has to be refused, in one line that spends nothing."""
    before = LOG.read_bytes() if LOG.exists() else b""
    found = run(*words)
    assert (found.code, found.out) == (code, ""), (found.out, found.error)
    assert found.error.startswith("noisefloor: ") and found.error.count("\n") == 1
    assert (LOG.read_bytes() if LOG.exists() else b"") == before
    return found.error


def test_what_is_published_is_listed_explained_verified_and_fetched() -> None:
    published()
    assert "by histogram" in published("a-2")
    shown = run("ledger", "--store", str(STORE)).out
    assert "visits has spent epsilon 0.500000 of epsilon 2.000000, delta 1e-05" in shown
    assert run("ledger", "show", "visits").out == shown
    (listed,) = json.loads(run("ledger", "show", "--json").out)
    assert (listed["data_set"], listed["entries"]) == ("visits", 2)
    assert listed["spent"] == {"epsilon": 0.5, "delta": 0.0}
    assert listed["what_spent_it"][0]["release"] == "histogram"
    explained = run("ledger", "explain", "a-2").out
    assert "a-2 is entry 2 of visits" in explained and "Renyi divergence" in explained
    verified = run("ledger", "verify").out
    assert "visits: every link holds, entries: 2, cards that agree: 2" in verified
    assert listed["head"] in verified
    assert [line.split()[0] for line in run("cards").out.splitlines()] == ["a-1", "a-2"]
    card = json.loads(run("cards", "a-2").out)
    assert card["ledger"]["position"] == 2 and card["signature"]
    assert [one["state"] for one in json.loads(run("cards", "--json").out)] == ["stored"] * 2
    assert run("fetch", "a-2", "--out", "here").code == 0
    assert json.loads(Path("here/a-2.card.json").read_text()) == card
    assert run("fetch", "a-2", "--out", "here").code == 0  # the same again
    assert "a budget of epsilon 2.000000" in run("ledger", "budget", "visits").out


def test_a_request_without_an_id_is_the_same_one_when_repeated() -> None:
    words = ("publish", "visits.csv", *HISTOGRAM, "--epsilon", "0.25")
    first, again = run(*words), run(*words)
    assert "published from visits" in first.out
    assert "was published before" in again.out and "nothing was charged" in again.out
    assert "visits has spent epsilon 0.250000" in run("ledger").out


def test_a_dry_run_costs_nothing_and_says_what_to_expect() -> None:
    words = ("publish", "visits.csv", *HISTOGRAM, "--epsilon", "0.25", "--id", "a", "--dry-run")
    found = run(*words)
    assert found.code == 0 and not LOG.exists()
    assert "cost: epsilon 0.250000 of the budget of visits; it would be accepted" in found.out
    assert "left: epsilon 2.000000, delta 1e-05 now, epsilon 1.750000" in found.out
    assert "expect: a count: standard error 5.642, within 12 of the true count" in found.out
    as_json = json.loads(run(*words, "--json").out)
    assert as_json["is_allowed"] and as_json["after"]["epsilon"] == 1.75
    assert as_json["expected"]["errors"]["counts"]["half_width"] == 12
    table = run(
        "publish", "visits.csv", "--method", "synthetic-table", "--epsilon", "1", "--dry-run"
    )
    assert "a count of the tables 'ones': standard error" in table.out
    published("a")
    assert "cost: nothing, it was charged before" in run(*words).out


def test_a_dry_run_that_would_be_refused_says_what_runs_out() -> None:
    words = ("publish", "visits.csv", *LOGISTIC, "--epsilon", "5", "--dry-run")
    found = run(*words)
    assert found.code == 1 and "refused (epsilon ran out: 5 asked for, 2 left" in found.out
    assert "stand-in records of this schema" in found.out
    assert json.loads(run(*words, "--json").out)["expected"]["kind"] == "stand-in records"


BAD: list[tuple[str, int, tuple[str, ...], str]] = [
    ("missing file", 2, ("publish", "gone.csv", *HISTOGRAM, "--epsilon", "1"), "gone"),
    ("name", 1, ("publish", "films", *HISTOGRAM, "--epsilon", "1"), "films has no budget"),
    ("method", 2, ("publish", "visits.csv", "--method", "magic", "--epsilon", "1"), "histogram"),
    ("zero", 2, ("publish", "visits.csv", *HISTOGRAM, "--epsilon", "0"), "epsilon=0.0 > 0"),
    ("negative", 2, ("publish", "visits.csv", *HISTOGRAM, "--epsilon", "-1"), "epsilon=-1.0"),
    ("nan", 2, ("publish", "visits.csv", *HISTOGRAM, "--epsilon", "nan"), "epsilon=nan"),
    ("inf", 2, ("publish", "visits.csv", *HISTOGRAM, "--epsilon", "inf"), "epsilon=inf"),
    (
        "delta",
        2,
        ("publish", "visits.csv", *HISTOGRAM, "--epsilon", "1", "--delta", "nan"),
        "delta",
    ),
    (
        "no delta",
        2,
        ("publish", "visits.csv", *LOGISTIC[:4], "--epsilon", "1"),
        "delta=0.0 > 0: the noise of this method needs one",
    ),
    ("setting", 2, ("publish", "visits.csv", *HISTOGRAM, "--epsilon", "1", "--set", "a"), "set"),
    (
        "label",
        2,
        ("publish", "visits.csv", *LOGISTIC, "--epsilon", "1", "--label", "none"),
        "country, age, pages, buys",
    ),
    (
        "relation",
        2,
        ("publish", "visits.csv", *HISTOGRAM, "--epsilon", "1", "--neighbours", "user"),
        "record-add-remove, record-substitute",
    ),
    (
        "other relation",
        2,
        (
            "publish",
            "visits.csv",
            *HISTOGRAM,
            "--epsilon",
            "1",
            "--neighbours",
            "record-substitute",
        ),
        "the relation of the budget",
    ),
    ("id", 2, ("publish", "visits.csv", *HISTOGRAM, "--epsilon", "1", "--id", "A B"), "id"),
    ("budget", 1, ("publish", "visits.csv", *HISTOGRAM, "--epsilon", "2.5"), "epsilon ran out"),
    ("two targets", 2, ("ledger", "show", "--store", "a", "--services", "b"), "--store"),
    ("no token", 2, ("ledger", "show", "--address", "http://127.0.0.1:9"), "token-file"),
    ("nothing runs", 1, ("ledger", "show", "--services", "none"), "noisefloor up"),
    ("early option", 2, ("ledger", "--store", "a", "verify"), "after the command"),
    ("mistyped", 2, ("ledger", "budget", "vists.csv", "--epsilon", "1"), "vists.csv"),
    ("no store", 2, ("ledger", "show", "--store", "none"), "there is no store"),
    ("no publication", 2, ("fetch", "none"), "noisefloor cards"),
    ("no entry", 2, ("ledger", "explain", "none"), "noisefloor cards"),
    ("no model", 2, ("predict", "none.safetensors", "new-visits.csv"), "noisefloor fetch"),
    ("zero budget", 2, ("ledger", "budget", "more", "--epsilon", "0"), "epsilon=0.0"),
    ("budget again", 1, ("ledger", "budget", "visits", "--epsilon", "9"), "never changes"),
    ("no budget", 1, ("ledger", "budget", "more"), "noisefloor ledger budget more"),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case[0])
def test_bad_input_is_one_line_that_names_the_rule(
    case: tuple[str, int, tuple[str, ...], str],
) -> None:
    _, code, words, named = case
    assert named in refused(code, *words)


def test_a_missing_schema_is_answered_by_one_to_fill_in(folder: Path) -> None:
    (folder / "visits.schema.json").unlink()
    said = refused(2, "publish", "visits.csv", *HISTOGRAM, "--epsilon", "1")
    assert "visits.csv: Expected a schema beside it, visits.schema.json." in said
    draft = json.loads(said[said.index('{"record"') :])
    assert list(draft["columns"]) == list(VISITS["columns"])
    assert all(one == {"categories": ["..."]} for one in draft["columns"].values())
    for value in ("CH", "yes"):
        assert f'"{value}"' not in said  # nothing of the rows
    (folder / "visits.csv").write_text("CH,17\nDE,40\n")
    said = refused(2, "publish", "visits.csv", *HISTOGRAM, "--epsilon", "1")
    assert "first row has to hold the names" in said and "17" not in said


def test_an_id_of_another_request_is_refused() -> None:
    published("a-1")
    words = ("publish", "visits.csv", *HISTOGRAM, "--id", "a-1", "--epsilon", "0.5")
    assert "another request" in refused(1, *words)
    assert "another request" in refused(1, *words, "--dry-run")


def test_a_tampered_ledger_is_refused_and_the_first_wrong_record_is_named() -> None:
    for number in range(3):
        published(f"a-{number}")
    whole = LOG.read_bytes()
    first, second, third = whole.splitlines(keepends=True)
    for changed, named in (
        (first + second.replace(b'"a-1"', b'"a-9"') + third, "record 2: A record of the ledger"),
        (first + third, "record 2 says that it is record 3: one is missing"),
        (first + third + second, "record 2 says that it is record 3"),
        (first + second, "a-2 is stored and has no record: the ledger was cut off"),
    ):
        LOG.write_bytes(changed)
        assert named in refused(1, "ledger", "verify")
    LOG.write_bytes(whole)
    assert run("ledger", "verify").code == 0


def test_another_history_with_hashes_of_its_own_disagrees_with_the_cards() -> None:
    published("a-0")
    LOG.unlink()
    records = load_records("visits.csv")
    asked = RequestOptions("histogram", 0.1, 0.0, ["columns=country"], None, "a-0")
    request = asked.request("visits", Neighbours.RECORD_ADD_REMOVE)
    FilePublisher.open(STORE).role("visits", records).charge(request)
    assert "the ledger or the card was changed" in refused(1, "ledger", "verify")


def test_a_store_that_was_set_back_is_found_by_a_card_that_was_kept() -> None:
    published("a-0")
    shutil.copytree(STORE, "old")
    published("a-1")
    run("fetch", "a-1", "--out", "kept")
    words = ("ledger", "verify", "--card", "kept/a-1.card.json")
    assert run(*words).code == 0
    shutil.rmtree(STORE)
    shutil.move("old", STORE)
    assert run("ledger", "verify").code == 0  # nothing in the store itself shows it
    said = refused(1, *words)
    assert "names record 2, which the ledger with its 1 records does not have" in said
    assert "a file of a card" in refused(2, "ledger", "verify", "--card", "none")


def test_a_tampered_release_or_card_is_refused_each_in_its_own_words() -> None:
    published("a-1")
    path = STORE / "visits" / "releases" / "a-1.release"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert "damaged" in refused(1, "fetch", "a-1")
    path.write_bytes(whole)
    run("fetch", "a-1")
    file, card = Path("a-1.safetensors"), Path("a-1.card.json")
    content, said = file.read_bytes(), card.read_bytes()
    predict = ("predict", "a-1.safetensors", "new-visits.csv")
    file.write_bytes(content + b"!")
    assert "not the one of this card" in refused(1, *predict)
    file.write_bytes(content)
    card.write_bytes(said.replace(b"histogram", b"logistic"))
    assert "changed after it was signed" in refused(1, *predict)
    newer = json.loads(said) | {"card_format": 99}
    card.write_text(json.dumps(newer))
    assert "format 99" in refused(1, *predict)
    card.write_bytes(said)
    assert "another file. Name another --out" in _other_file(file)


def test_an_honest_release_under_another_id_is_refused() -> None:
    published("a-1")
    published("a-2")
    folder = STORE / "visits" / "releases"
    (folder / "a-1.release").write_bytes((folder / "a-2.release").read_bytes())
    assert "another publication" in refused(1, "fetch", "a-1")
    assert "the ledger or the card was changed" in refused(1, "ledger", "verify")


def _other_file(file: Path) -> str:
    file.write_bytes(b"mine")
    said = refused(2, "fetch", "a-1")
    assert file.read_bytes() == b"mine"
    return said


def test_another_key_is_refused_unless_one_insists() -> None:
    words = ("publish", "visits.csv", *LOGISTIC, "--epsilon", "1", "--id", "m-1")
    assert run(*words).code == 0
    run("ledger", "budget", "more", "--epsilon", "1", "--store", "other")
    other = ("--key", "other/publisher.key.pub")
    assert "none of the 1 trusted ones" in refused(1, "fetch", "m-1", *other)
    assert run("fetch", "m-1", "--unsigned", *other).code == 0
    assert "none of the 1" in refused(1, "predict", "m-1.safetensors", "new-visits.csv", *other)
    assert run("predict", ".", "new-visits.csv", "--unsigned").code == 0
    found = run("predict", ".", "new-visits.csv", "--out", "predicted.csv")
    assert found.out == "predicted.csv: 2 predictions of buys\n"
    assert Path("predicted.csv").read_text().splitlines()[0] == "buys"
    elsewhere = refused(1, "predict", ".", "new-visits.csv", "--store", "none")
    assert "Get the publisher's public key" in elsewhere and "--key" in elsewhere
    assert "secret.key" in refused(2, "fetch", "m-1", "--key", "secret.key")
    Path("odd.csv").write_text("country,age,pages\nFR,70,15\n")
    said = refused(2, "predict", ".", "odd.csv")
    assert "odd.csv: column 'country'" in said and "FR" not in said


def test_a_store_of_another_format_and_a_clock_that_went_back_are_refused() -> None:
    later = FilePublisher.open(STORE, lambda: 4e9)
    asked = RequestOptions("histogram", 0.25, 0.0, ["columns=country"], None, "a-1")
    request = asked.request("visits", Neighbours.RECORD_ADD_REMOVE)
    later.publish(request, load_records("visits.csv"), SecureSource())
    words = ("publish", "visits.csv", *HISTOGRAM, "--epsilon", "0.25", "--id", "a-2")
    assert "The clock says" in refused(1, *words)
    (STORE / "store.json").write_text('{"format": 7, "what": "noisefloor store"}')
    assert "is a store of format 7" in refused(2, *words)


def test_names_of_files_become_names_of_data_sets() -> None:
    assert PublishedData("/data/Visits 2026.csv").name == "visits-2026"
    assert PublishedData("visits.tar.parquet").name == "visits"
    assert PublishedData("adult").name == "adult"
    for named in ("...csv", "Adult", "a/b"):
        with pytest.raises(BadParameter):
            PublishedData(named).name  # noqa: B018  the property checks


def test_settings_are_read_as_numbers_bits_or_texts() -> None:
    listed = ["a=1", "b=1.5", "c=true", "d=1,2", "e=nan", "f="]
    request = RequestOptions("histogram", 1.0, 0.0, listed).request(
        "visits", Neighbours.RECORD_ADD_REMOVE
    )
    assert dict(request.parameters) == {
        **{"a": 1, "b": 1.5, "c": True},
        **{"d": "1,2", "e": "nan", "f": ""},
    }
