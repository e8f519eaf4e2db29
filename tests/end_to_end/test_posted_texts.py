"""Posts of users at running services: collected raw, published as made-up texts, then gone.

A word that every post has is sought in every key of the store, in its files, in all logs, in
what services answer, and in the metrics. It is found where it has to be: in the rows of its own
collection until the publisher has taken them, and in the log of the store until that is rewritten.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from redis import Redis

import text_worlds
from live_apps import LINES, TOKENS, Process, bearer, process
from noisefloor.publication.text import PseudoTexts, posted_texts_kind, posts_of
from noisefloor.randomness import SeededSource, new_run
from noisefloor.roles import CollectionConfig
from noisefloor.wire import encode_frame
from noisefloor_services.http.bodies import FRAME_TYPE
from noisefloor_services.security.credentials import Role
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_sim.deploy.hosting.remote_servers import RemoteHost
from noisefloor_sim.deploy.service_client import ServiceAddresses
from noisefloor_sim.deploy.starting import not_set
from noisefloor_sim.pipelines import PIPELINES, experiment_settings
from noisefloor_sim.pipelines.texts import made_up_posts, posts
from noisefloor_sim.pipelines.texts.collected_posts import CollectedPosts
from noisefloor_sim.pipelines.texts.pipeline import TextsPipeline
from noisefloor_sim.runs import execute, read_run
from noisefloor_sim.runs.engine import Engine, RunOutcome
from publisher_commands import command, ready
from text_worlds import CHEAP, texts_world
from word_search import files_with, keys_with, texts_with

WORD = "sentinel7f3a9c"
KIND = posted_texts_kind(2, 64)
SMALL: dict[str, Any] = {"population": {"users": 150, "cohort": 128}, "attacks": ["texts.lengths"]}
BLOCK: dict[str, Any] = {"rare_words": 20, "secrets": 4, "candidates": 4, "texts": 60}
DRAWN = ("utility.", "likeness.", "diversity.", "verbatim.", "residuals.", "counting.")
"""Metrics of what is published, which services draw from the operating system."""


@dataclass(frozen=True)
class Services:
    """All services as processes on a store that packs nothing."""

    store: EmbeddedServer
    processes: dict[str, Process]

    @property
    def addresses(self) -> ServiceAddresses:
        read, admin, publish, ledger = (
            TOKENS[role] for role in (Role.READ, Role.ADMIN, Role.PUBLISH, Role.LEDGER)
        )
        ad_server, aggregator, publisher = (one.url for one in self.processes.values())
        return ServiceAddresses(ad_server, aggregator, read, admin, publisher, publish, ledger)

    def texts(self) -> dict[str, str]:
        """Return logs, metrics and states, by what they are of."""
        found = {f"log of {name}": one.log.read_text() for name, one in self.processes.items()}
        for name, one in self.processes.items():
            for path in ("/metrics", "/readyz", "/state", "/conservation", "/data-sets"):
                answer = httpx.get(f"{one.url}{path}", headers=bearer(Role.READ))
                found[f"{path} of {name}"] = answer.text
        assert all(found[f"/metrics of {name}"].count("noisefloor_") for name in self.processes)
        return found


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    folder = tmp_path_factory.mktemp("services")
    public = made_up_posts.write_public(folder)
    with EmbeddedServer(folder / "store", settings={"rdbcompression": "no"}) as store:
        variables = {"REDIS_URL": store.url, "TOKENS": ";".join(LINES), "EXPERIMENTS": "on"}
        variables |= {"RATE": "5000", "BURST": "5000", "LEDGER_ANCHOR": str(folder / "anchor")}
        variables |= {"PUBLIC_TEXTS": str(public)}
        command("create-ledger", variables)
        with (
            process("ad-server", folder, variables) as serves,
            process("aggregator", folder, variables) as counts,
            process("model-publisher", folder, variables) as publishes,
        ):
            for one in (counts, serves, publishes):
                ready(one)
            names = ("ad-server", "aggregator", "model-publisher")
            yield Services(store, dict(zip(names, (serves, counts, publishes), strict=True)))


def run(
    hosting: RemoteHost | None, variant: str = "corrected"
) -> tuple[RunOutcome, TextsPipeline]:
    with new_run():
        scenario = texts_world(BLOCK, variant=variant, **SMALL)
        engine = Engine(scenario, PIPELINES, hosting=hosting)
        outcome = engine.run()
    pipeline = engine.pipelines["texts"]
    assert isinstance(pipeline, TextsPipeline)
    return outcome, pipeline


def wait(is_so: Callable[[], bool]) -> None:
    for _ in range(1500):
        if is_so():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come to pass")


def test_no_raw_post_is_anywhere_once_it_is_taken_and_the_search_would_find_it(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_word(texts: Sequence[str], most_bytes: int) -> list[str]:
        return [f"{text} {WORD}" for text in texts]

    before: list[tuple[set[str], set[str]]] = []
    take = CollectedPosts.take

    def looking(self: CollectedPosts, context: Any, day: int) -> None:
        before.append((keys_with(services.store, WORD), files_with(services.store, WORD)))
        take(self, context, day)

    monkeypatch.setattr(posts, "cut_to_bytes", with_word)
    monkeypatch.setattr(CollectedPosts, "take", looking)
    _, pipeline = run(RemoteHost(services.addresses))
    records = pipeline.collected.records
    assert records is not None and all(WORD in text for text in records.texts["post"])
    # The twin: before they were taken, posts were in rows of the one epoch, and nowhere else.
    ((keys, files),) = before
    assert keys and all("posted-texts" in key or key.endswith(":frames") for key in keys), keys
    assert files == {"rdb", "aof"}
    # Afterwards, with the data set and the collection dropped.
    assert keys_with(services.store, WORD) == set()
    assert texts_with(services.texts(), WORD) == set()
    with Redis.from_url(services.store.url) as client:
        client.bgrewriteaof()  # the aggregator has it done at most once a minute
    wait(lambda: files_with(services.store, WORD) == set())
    (release,) = pipeline.holder.releases
    published = PseudoTexts.read(release.content, records.schema)
    assert published.count == 60
    assert release.card["signature"] and release.card["method"] == "text-ngrams"
    assert texts_with({"file": release.content.decode(), "card": str(release.card)}, WORD) == set()


def test_the_search_finds_a_word_in_every_place(services: Services, tmp_path: Path) -> None:
    word = "planted5c1d"
    with Redis.from_url(services.store.url) as client:
        client.hset("leak", "text", f"a post with {word}")
        client.set(f"leak:{word}", "1")
        client.rpush("rows", *(["x"] * 9), word)
        client.xadd("frames", {"f": f"\0{word}".encode()})
        assert keys_with(services.store, word) == {"leak", f"leak:{word}", "rows", "frames"}
        assert files_with(services.store, word) >= {"rdb", "aof"}
        client.delete("leak", f"leak:{word}", "rows", "frames")
    with services.processes["aggregator"].log.open("a") as log:
        log.write(f'{{"event": "{word.upper()}"}}\n')
    assert texts_with(services.texts(), word) == {"log of aggregator"}


def test_the_same_posts_are_published_from_on_both_buses(services: Services) -> None:
    """As printed, noise is drawn here: all is equal. Otherwise all but the service's noise is."""
    host = RemoteHost(services.addresses)
    assert repr(run(host, "paper")[0]) == repr(run(None, "paper")[0])
    (here, local), (there, remote) = run(None), run(host)
    assert repr(there.world) == repr(here.world)
    assert repr(there.flows) == repr(here.flows)
    mine, theirs = local.collected.records, remote.collected.records
    assert mine is not None and theirs is not None
    assert (mine.texts["post"] == theirs.texts["post"]).all()
    assert (mine.labels == theirs.labels).all()
    chosen = [
        [one for one in found.findings["texts"].metrics if not one.name.startswith(DRAWN)]
        for found in (here, there)
    ]
    assert len(chosen[0]) > 20
    assert repr(chosen[0]) == repr(chosen[1])
    claims = [[one.claim.proved for one in it.findings["texts"].claims] for it in (here, there)]
    assert claims[0] == claims[1]


@pytest.mark.slow
def test_services_that_a_run_starts_have_the_made_up_public_texts(tmp_path: Path) -> None:
    gates = ["texts.releases.made == 1", "texts.residuals.planted_found == 1"]
    world = {**text_worlds.SMALL, **SMALL, "pipelines": {"texts": {**CHEAP, **BLOCK}}}
    text = json.dumps({**world, "gates": gates})
    (tmp_path / "posts.yaml").write_text(text, encoding="utf-8")
    options: dict[str, Any] = {"settings": [], "seed": None, "jobs": 1}
    with EmbeddedServer(tmp_path / "own") as store:
        directory, found = execute(
            tmp_path / "posts.yaml",
            out=tmp_path / "run",
            force=False,
            resume=False,
            bus=store.url,
            **options,
        )
    states = [(one.passed, one.skipped) for one in found.gates]
    assert found.passed and states == [(True, False), (False, True)]
    assert read_run(directory).gates == found.gates


def test_experiments_have_the_same_public_texts_in_every_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    paths = []
    for folder in folders:
        folder.mkdir()
        (path,) = experiment_settings(folder).values()
        paths.append(Path(path))
    paths.append(made_up_posts.made_up_public())
    assert len({path.read_bytes() for path in paths}) == 1
    assert not_set({"public_texts": "made-up"}) == {"public_texts": "made-up"}
    monkeypatch.setenv("NOISEFLOOR_PUBLIC_TEXTS", "reviews.tsv")  # an operator's own
    assert not_set({"public_texts": "made-up"}) == {}
    block = texts_world().pipelines["texts"]
    assert block.is_experiment("corrected"), "other publishers are refused before the run"


def frame(texts: list[str], collection: str, most_bytes: int = 64) -> bytes:
    kind = posted_texts_kind(2, most_bytes)
    labels = np.zeros(len(texts), dtype=np.int64)
    source = SeededSource(4, "frame", len(texts[0]), most_bytes)
    with new_run():
        return encode_frame(kind, 0, posts_of(texts, labels), source, collection=collection)


def test_hostile_posts_are_refused_by_one_line_without_a_text(services: Services) -> None:
    opened = RemoteHost(services.addresses).open(
        CollectionConfig(kinds={KIND.name: KIND}, minimum_batch=1)
    )
    name = opened.collection
    url = f"{services.addresses.ad_server}/collections/{name}/frames"
    good = frame([f"a post of {WORD}"], name)
    sent = {
        "too long": frame([f"{WORD} " * 9], name, 256),
        "a document of a megabyte": good + WORD.encode() * 80_000,
        "broken UTF-8": good.replace(WORD.encode(), b"\xff" + WORD[1:].encode()),
        "empty": good.replace(f"a post of {WORD}".encode(), b" " * (10 + len(WORD))),
    }
    odd = [
        "nul \0 and bell \a",
        "\U0001f600" * 16,
        "<script>alert(1)</script>",
        "\u202eright to left",
    ]
    try:
        for taken in (good, frame(odd, name)):
            answer = httpx.post(url, content=taken, headers={"Content-Type": FRAME_TYPE})
            assert answer.status_code == 202, answer.text
        for what, body in sent.items():
            assert body != good
            answer = httpx.post(url, content=body, headers={"Content-Type": FRAME_TYPE})
            expected = 413 if what == "a document of a megabyte" else 400
            assert answer.status_code == expected, (what, answer.text)
            assert answer.json()["action"] == "drop" and answer.json()["detail"]
            assert WORD not in answer.text and WORD[1:] not in answer.text
        assert texts_with(services.texts(), WORD[1:]) == set()
        opened.servers.aggregator.close(KIND.name, 0)
        batch = opened.servers.aggregator.release_rows(KIND.name, 0)
        assert sorted(batch["text"].to_pylist()) == sorted([f"a post of {WORD}", *odd])
    finally:
        opened.close()
