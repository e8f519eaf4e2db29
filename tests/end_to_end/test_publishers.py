"""Models published in this process and by the publisher service: all but the noise is equal."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from live_apps import LINES, TOKENS, bearer, credentials, process
from model_worlds import EVERY_TWO, WEEKLY, model_world
from noisefloor.accounting import LedgerEntry
from noisefloor.errors import BadParameter, BudgetExceeded, ServicesRefused
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.methods import PlainPlan
from noisefloor.randomness import new_run
from noisefloor.roles import Artefact
from noisefloor.roles.model_publisher import ReleaseRequest
from noisefloor.roles.publication_methods import methods_of
from noisefloor.tables import decode_records, schema_of
from noisefloor.wire.messages import DataSetBudget, DataSetMessage
from noisefloor_services import publisher
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_sim.cli import commands, run_commands
from noisefloor_sim.deploy.hosting.buses import BusConnection
from noisefloor_sim.deploy.hosting.remote_publisher import RemotePublisher
from noisefloor_sim.deploy.hosting.remote_servers import RemoteHost
from noisefloor_sim.deploy.service_client import ServiceAddresses
from noisefloor_sim.deploy.starting import start
from noisefloor_sim.pipelines import PIPELINES
from noisefloor_sim.pipelines.models.pipeline import ModelsPipeline
from noisefloor_sim.pipelines.releases import check_card
from noisefloor_sim.runs.engine import Engine, RunOutcome
from publisher_commands import command, ready
from served import served

RANDOM = ("content_sha256", "data_set", "request_sha256")
"""Fields of a card that follow from the noise, or from the data set's name, which is drawn."""

EQUAL = ("releases.", "spent.", "model.", "data.")
"""Metrics that follow from the ledger and from public plans."""

ROOT = Path(__file__).resolve().parents[2]


def addresses(ad_server: str, aggregator: str, publishing: str) -> ServiceAddresses:
    roles = (Role.READ, Role.ADMIN, Role.PUBLISH, Role.LEDGER)
    read, admin, publish, ledger = (TOKENS[role] for role in roles)
    return ServiceAddresses(ad_server, aggregator, read, admin, publishing, publish, ledger)


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceAddresses]:
    """Run all three services as processes on a real store."""
    folder = tmp_path_factory.mktemp("services")
    with EmbeddedServer(folder / "store") as store:
        variables = {"REDIS_URL": store.url, "TOKENS": ";".join(LINES), "EXPERIMENTS": "on"}
        variables |= {"RATE": "5000", "BURST": "5000", "LEDGER_ANCHOR": str(folder / "anchor")}
        command("create-ledger", variables)
        with (
            process("aggregator", folder, variables) as counts,
            process("ad-server", folder, variables) as serves,
            process("model-publisher", folder, variables) as publishes,
        ):
            yield addresses(ready(serves), ready(counts), ready(publishes))


def run(method: str, hosting: RemoteHost | None) -> tuple[RunOutcome, ModelsPipeline]:
    scenario = model_world({**EVERY_TWO, "method": method}, **WEEKLY)
    with new_run():
        engine = Engine(scenario, PIPELINES, hosting=hosting)
        outcome = engine.run()
    pipeline = engine.pipelines["models"]
    assert isinstance(pipeline, ModelsPipeline)
    return outcome, pipeline


def outcomes(url: str) -> dict[str, int]:
    text = httpx.get(f"{url}/metrics", headers=bearer(Role.READ)).text
    found = re.findall(r'noisefloor_publications\{outcome="([a-z-]+)"\} (\d+)', text)
    return {name: int(number) for name, number in found}


def entries(pipeline: ModelsPipeline) -> list[LedgerEntry]:
    """Return the entries of a run's ledger, whatever its data set is called."""
    name = pipeline.holder.publisher.data_set
    return [replace(one, subject="") for one in pipeline.holder.account().entries(name)]


@pytest.mark.parametrize("method", ["plain", "logistic", "anonymising-first"])
def test_all_but_the_noise_is_as_in_memory(services: ServiceAddresses, method: str) -> None:
    before = outcomes(services.publisher)
    (here, local), (outcome, there) = (run(method, one) for one in (None, RemoteHost(services)))
    assert entries(there) == entries(local)  # the data set is dropped, its ledger is there
    made = 2 if method == "plain" else 3  # without noise there is nothing for the filter
    assert len(entries(there)) == made
    remote = there.holder.publisher
    assert isinstance(remote, RemotePublisher)
    remote.close()
    assert there.holder.refused == local.holder.refused == [5, 7][made - 2 :]
    for mine, theirs in zip(local.holder.releases, there.holder.releases, strict=True):
        cards = [json.loads(json.dumps(one.card)) for one in (mine, theirs)]
        assert all(card.pop(name) for card in cards for name in RANDOM)
        # A service has a key, and a ledger with a clock and a chain; a simulation has neither.
        signed = [{name: card.pop(name) for name in ("publisher", "signature")} for card in cards]
        assert [bool(one["signature"] and one["publisher"]) for one in signed] == [False, True]
        clocks = [(card["ledger"].pop("at"), card["ledger"].pop("head")) for card in cards]
        assert [all(one) for one in clocks] == [False, True]
        assert cards[0] == cards[1]
        assert (mine.day, mine.spent, mine.left) == (theirs.day, theirs.spent, theirs.left)
        assert mine.proved == theirs.proved
        assert (mine.owners == theirs.owners).all()
        assert mine.content != theirs.content  # the operating system's noise, and not the seed's
    assert repr(outcome.world) == repr(here.world)
    chosen = [
        [one for one in found.findings["models"].metrics if one.name.startswith(EQUAL)]
        for found in (here, outcome)
    ]
    assert repr(chosen[0]) == repr(chosen[1])
    assert len(chosen[0]) > 10
    local_seen, remote_seen = (
        found.findings["models"].claims[0].claim.evidence[0] for found in (here, outcome)
    )
    assert (local_seen.causes, remote_seen.causes) == ((), ())
    assert (local_seen.tests > 0) == (method != "plain")
    # A service hands out nothing: its noise is not tested, and nothing is said of it.
    assert (remote_seen.tests, remote_seen.verdict) == (0, "blind")
    counted = {
        name: number - before[name] for name, number in outcomes(services.publisher).items()
    }
    assert {name: counted[name] for name in ("stored", "taken", "refused")} == {
        "stored": made,
        "taken": made,
        "refused": 4 - made,
    }
    left = httpx.get(f"{services.publisher}/data-sets", headers=bearer(Role.ADMIN)).json()
    assert left == {"data_sets": [], "experiments": True}


DECLARED = {"record": "one", "columns": {"buys": {"categories": ["no", "yes"]}}, "label": "buys"}
SWAPPED = Neighbours.RECORD_SUBSTITUTE
COST = Guarantee(0.25, SWAPPED, model=TrustModel.CENTRAL)
REQUEST = {"columns": "buys"}


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[ServiceAddresses]:
    """Serve a publisher that takes no experiments, and small bodies only."""
    with EmbeddedServer(tmp_path / "store") as store:
        settings = Settings(
            redis_url=store.url, credentials=credentials(), rate=1e6, burst=10**6, body_bytes=1024
        )
        publisher.create_ledger(settings)
        with served(publisher.create(settings, methods_of({}), data_sets=())) as url:
            yield addresses(url, url, url)


def message(**more: Any) -> DataSetMessage:
    budget = DataSetBudget(epsilon=0.5, neighbours=SWAPPED)
    return DataSetMessage(declaration=DECLARED, budget=budget, **more)


def test_a_refusal_is_the_error_of_the_role_and_an_ended_run_leaves_no_data(
    alone: ServiceAddresses,
) -> None:
    remote = RemotePublisher(alone, message())
    records = decode_records(bytes([0, 1] * 20), schema_of(DECLARED))
    request = ReleaseRequest("p-0", remote.data_set, "histogram", COST, REQUEST)
    with pytest.raises(ServicesRefused, match="records are not here"):
        remote.publish(request)
    remote.update(records)
    for number in range(2):
        made = remote.publish(replace(request, publication_id=f"p-{number}"))
        assert made.card["data_set"] == remote.data_set
    assert remote.publish(request).card["publication_id"] == "p-0"  # a retry costs nothing
    with pytest.raises(BudgetExceeded) as refusal:
        remote.publish(replace(request, publication_id="p-2"))
    (short,) = refusal.value.short
    assert (short.quantity, short.requested, short.left) == ("epsilon", 0.25, 0.0)
    with pytest.raises(ServicesRefused, match="NOISEFLOOR_BODY_BYTES"):
        remote.update(decode_records(bytes(2000), schema_of(DECLARED)))
    remote.close()
    listed = httpx.get(f"{alone.publisher}/data-sets", headers=bearer(Role.ADMIN)).json()
    assert listed["data_sets"] == []


def test_services_without_experiments_are_refused_before_a_run(alone: ServiceAddresses) -> None:
    with pytest.raises(BadParameter, match="noisefloor up --experiments: point-1 publishes"):
        BusConnection(alone, {}).check_experiments("point-1")
    with pytest.raises(ServicesRefused, match="takes no experiments"):
        RemotePublisher(alone, message(experiment=True))
    BusConnection(None, {}).check_experiments("point-1")  # in memory everything is simulated


def test_experiments_are_not_started_beside_data_of_the_operator(tmp_path: Path) -> None:
    for option in ("--data-set=adult", "--repair"):
        words = ["up", "--folder", str(tmp_path / "up"), "--experiments", option]
        result = CliRunner().invoke(commands.app, words)
        assert isinstance(result.exception, BadParameter)
        assert "without" in str(result.exception)
    assert not (tmp_path / "up").exists()


def test_a_card_that_contradicts_the_plan_is_found() -> None:
    _, pipeline = run("plain", None)
    release = pipeline.holder.releases[0]
    assert isinstance(release.plan, PlainPlan)
    good = Artefact(release.content, "application/octet-stream", dict(release.card))
    check_card(good, release.plan)
    for name in ("public_size", "training", "privacy", "architecture"):
        with pytest.raises(ServicesRefused, match=f"differs from the plan in {name}"):
            check_card(replace(good, card={**release.card, name: "other"}), release.plan)


SMALL = (
    *("population.users=600", "days=14", "pipelines.models.epochs=2", "pipelines.models.pool=50"),
    *("pipelines.models.canaries=500", 'pipelines.models.hidden="4"'),
)


@pytest.mark.slow
def test_a_weekly_scenario_runs_through_the_publisher_of_a_topology(tmp_path: Path) -> None:
    (scenario,) = ROOT.glob("**/models-weekly.yaml")
    options: dict[str, Any] = {"seed": None, "jobs": 1, "force": False, "resume": False}
    options |= {"settings": [*SMALL, "pipelines.models.release_every_days=7"]}
    for name, more in (("plain", {}), ("open", {"experiments": "on"})):
        topology = start(tmp_path / name, settings={"rate": "10000", "burst": "10000", **more})
        bus = f"services:{tmp_path / name}"
        try:
            if name == "plain":
                with pytest.raises(BadParameter, match="noisefloor up --experiments"):
                    run_commands.run(scenario, out=tmp_path / "run", bus=bus, **options)
                assert not (tmp_path / "run").exists()
                continue
            run_commands.run(scenario, out=tmp_path / "run", bus=bus, **options)
            token = {"Authorization": f"Bearer {topology.token('read')}"}
            text = httpx.get(f"{topology.url('model-publisher')}/metrics", headers=token).text
            assert (
                'noisefloor_publications{outcome="stored"} 6' in text
            )  # two weeks, three methods
        finally:
            topology.stop()
