"""Every program of the services by name: what it takes, and what it does.

A program imports what it needs when it runs: a store does without FastAPI.
"""

import argparse
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from noisefloor.roles.collection import Collection, example
from noisefloor_services.listening import bound
from noisefloor_services.settings import Settings

if TYPE_CHECKING:
    from noisefloor_services.apps import Service


@dataclass(frozen=True, slots=True)
class Start:
    """What a program is started with.

    Attributes:
        given: Its arguments.
        settings: From the environment.
        environment: As the process got it.
    """

    given: argparse.Namespace
    settings: Settings
    environment: Mapping[str, str]

    @property
    def collection(self) -> Collection:
        """What is collected: from a file, or an example."""
        file: Path | None = self.given.collection
        return example() if file is None else Collection.read(file)


@dataclass(frozen=True, slots=True)
class Program:
    """One program.

    Attributes:
        text: What it is, for people.
        run: Runs it until it is done.
        options: Its own arguments.
    """

    text: str
    run: Callable[[Start], None]
    options: tuple[Callable[[argparse.ArgumentParser], None], ...] = ()


def _with_collection(parser: argparse.ArgumentParser) -> None:
    text = "file of JSON with catalogue, kinds and course; an example of 20 ads without"
    parser.add_argument("--collection", type=Path, metavar="FILE", help=text)


def _with_data_sets(parser: argparse.ArgumentParser) -> None:
    text = (
        "a data set that may be published from, by its name or as NAME=FILE, with FILE's schema "
        "beside it; may be given several times"
    )
    parser.add_argument("--data-set", action="append", default=[], metavar="NAME", help=text)
    text = "every table in it may be published from, by the name of its file; its schema is beside"
    parser.add_argument("--data-folder", type=Path, metavar="FOLDER", help=text)


def _with_folder(parser: argparse.ArgumentParser) -> None:
    text = "where to make them; nothing may be there yet"
    parser.add_argument("folder", type=Path, help=text)


def _serving(make: Callable[[Start], "Service"]) -> Callable[[Start], None]:
    """Return the program that serves what is made, once its address is known to be free."""

    def run(start: Start) -> None:
        with bound(start.settings.host, start.settings.port) as listening:
            from noisefloor_services.serving import serve

            serve(make(start), start.settings, listening)

    return run


def _ad_server(start: Start) -> "Service":
    from noisefloor_services import ad_server

    return ad_server.create(start.settings, start.collection, environment=start.environment)


def _aggregator(start: Start) -> "Service":
    from noisefloor_services import aggregator

    return aggregator.create(start.settings, start.collection, environment=start.environment)


def _model_publisher(start: Start) -> "Service":
    from noisefloor.adversary.models.plan_audit import audit_canary
    from noisefloor.roles.methods import methods_of
    from noisefloor_services import data_sets, model_publisher

    records = data_sets.read(start.given.data_set, start.given.data_folder)
    methods = methods_of(records, audit_canary)
    return model_publisher.create(
        start.settings, methods, data_sets=records, environment=start.environment
    )


def _create_ledger(start: Start) -> None:
    from noisefloor_services import model_publisher

    model_publisher.create_ledger(start.settings)


def _restore_ledger(start: Start) -> None:
    from noisefloor_services import model_publisher

    print(model_publisher.restore_ledger(start.settings))


def _store(start: Start) -> None:
    from noisefloor_services import store_process

    store_process.run(start.settings, start.collection.namespace)


def _make_secrets(start: Start) -> None:
    from noisefloor_services.secret_files import make_secrets

    folder, has_tokens = start.given.folder, start.settings.report_tokens
    namespace = start.collection.namespace
    made = make_secrets(folder, namespace=namespace, has_report_tokens=has_tokens)
    print(f"{folder}: {', '.join(made)}")


def _worker(start: Start) -> None:
    """Count beside other workers, without an API, until a signal."""
    from noisefloor_services.counting import Counting, CountingAll
    from noisefloor_services.registry import Registry
    from noisefloor_services.streams.durability import Durability
    from noisefloor_services.streams.keys import Layout
    from noisefloor_services.streams.server import Server
    from noisefloor_services.streams.store import EpochStore

    settings, first = start.settings, start.collection

    def counting(one: Collection) -> Counting:
        layout = Layout(one.namespace, settings.partitions)
        store = EpochStore(Server(settings.redis_url), layout, one.kinds.values())
        return Counting(store, Durability(settings.durability), one.first_epoch)

    signals = {signal.SIGTERM, signal.SIGINT}
    # Blocked before a thread starts, which inherits it: the signal waits for sigtimedwait.
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    layout = Layout(first.namespace, settings.partitions)
    registry = Registry(Server(settings.redis_url), layout)
    CountingAll(first, counting, registry).run(
        lambda pause_s: signal.sigtimedwait(signals, pause_s) is not None
    )


PROGRAMS: Mapping[str, Program] = MappingProxyType(
    {
        "ad-server": Program(
            "catalogue and model out, ad requests and reports in",
            _serving(_ad_server),
            (_with_collection,),
        ),
        "aggregator": Program(
            "counts reports, and shows what was counted",
            _serving(_aggregator),
            (_with_collection,),
        ),
        "model-publisher": Program(
            "publishes against a ledger", _serving(_model_publisher), (_with_data_sets,)
        ),
        "worker": Program(
            "counts beside the aggregator, without an API", _worker, (_with_collection,)
        ),
        "store": Program("an embedded Valkey server", _store, (_with_collection,)),
        "create-ledger": Program("makes the publisher's ledger, once", _create_ledger),
        "restore-ledger": Program(
            "raises a ledger that was set back to what its anchor says", _restore_ledger
        ),
        "make-secrets": Program(
            "makes the secrets of a topology in containers",
            _make_secrets,
            (_with_folder, _with_collection),
        ),
    }
)
