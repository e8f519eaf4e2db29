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

from noisefloor.roles import CollectionConfig, example_collection
from noisefloor_services.listening import bound
from noisefloor_services.settings import SIGNING_KEY_FILE, BadSetting, Settings

if TYPE_CHECKING:
    from noisefloor_services.http import Service


@dataclass(frozen=True, slots=True)
class ProgramContext:
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
    def collection(self) -> CollectionConfig:
        """What is collected: from a file, or an example."""
        file: Path | None = self.given.collection
        return example_collection() if file is None else CollectionConfig.read(file)


@dataclass(frozen=True, slots=True)
class Program:
    """One program.

    Attributes:
        text: What it is, for people.
        run: Runs it until it is done.
        options: Its own arguments.
    """

    text: str
    run: Callable[[ProgramContext], None]
    options: tuple[Callable[[argparse.ArgumentParser], None], ...] = ()


def _with_collection(parser: argparse.ArgumentParser) -> None:
    text = "file of JSON with catalogue, kinds and training task; an example of 20 ads without"
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


def _with_key(parser: argparse.ArgumentParser) -> None:
    text = "where to write it; the public key is written to PATH.pub. A key is never written over"
    parser.add_argument("path", type=Path, metavar="PATH", help=text)
    text = "who publishes, as every card says it (default: noisefloor)"
    parser.add_argument(
        "--name", dest="publisher", default="noisefloor", metavar="NAME", help=text
    )


def _serving(make: Callable[[ProgramContext], "Service"]) -> Callable[[ProgramContext], None]:
    """Return the program that serves what is made, once its address is known to be free."""

    def run(start: ProgramContext) -> None:
        with bound(start.settings.host, start.settings.port) as listening:
            from noisefloor_services.http import serve

            serve(make(start), start.settings, listening)

    return run


def _ad_server(start: ProgramContext) -> "Service":
    from noisefloor_services import ad_server

    return ad_server.create(start.settings, start.collection, environment=start.environment)


def _aggregator(start: ProgramContext) -> "Service":
    from noisefloor_services import aggregator

    return aggregator.create(start.settings, start.collection, environment=start.environment)


def _model_publisher(start: ProgramContext) -> "Service":
    from noisefloor.adversary.models import audit_plan
    from noisefloor.roles import methods_of
    from noisefloor_services import publisher
    from noisefloor_services.publisher import read_data_sets

    records = read_data_sets(start.given.data_set, start.given.data_folder)
    if start.settings.signing_key_file is None:
        rule = "has to name the key that signs cards; make one, once, by"
        command = "python -m noisefloor_services make-signing-key PATH --name NAME"
        raise BadSetting(SIGNING_KEY_FILE, f"{rule} {command}")
    methods = methods_of(records, audit_plan)
    return publisher.create(
        start.settings,
        methods,
        data_sets=records,
        environment=start.environment,
        audit=audit_plan,
    )


def _create_ledger(start: ProgramContext) -> None:
    from noisefloor_services import publisher

    publisher.create_ledger(start.settings)


def _restore_ledger(start: ProgramContext) -> None:
    from noisefloor_services import publisher

    print(publisher.restore_ledger(start.settings))


def _migrate_ledger(start: ProgramContext) -> None:
    from noisefloor_services import publisher

    print(publisher.migrate_ledger(start.settings))


def _store(start: ProgramContext) -> None:
    from noisefloor_services.store import run_store

    run_store(start.settings, start.collection.namespace)


def _make_secrets(start: ProgramContext) -> None:
    from noisefloor_services.security import make_secrets

    folder, has_tokens = start.given.folder, start.settings.report_tokens
    namespace = start.collection.namespace
    made = make_secrets(folder, namespace=namespace, has_report_tokens=has_tokens)
    print(f"{folder}: {', '.join(made)}")


def _make_signing_key(start: ProgramContext) -> None:
    from noisefloor.cards import SigningKey

    key = SigningKey.create(start.given.path, start.given.publisher)
    print(f"{start.given.path}.pub: {key.public.line}", end="")


def _worker(start: ProgramContext) -> None:
    """Count beside other workers, without an API, until a signal."""
    from noisefloor_services.store import CollectionRegistry, Durability, Layout, Server
    from noisefloor_services.streams import CountingThread, CountingThreads, EpochStore

    settings = start.settings
    first = start.collection.at_least(settings.minimum_batch)

    def counting(one: CollectionConfig) -> CountingThread:
        layout = Layout(one.namespace, settings.partitions)
        store = EpochStore.of(Server(settings.redis_url), layout, one)
        return CountingThread(store, Durability(settings.durability), one.first_epoch)

    signals = {signal.SIGTERM, signal.SIGINT}
    # Blocked before a thread starts, which inherits it: the signal waits for sigtimedwait.
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    layout = Layout(first.namespace, settings.partitions)
    server = Server(settings.redis_url)
    registry = CollectionRegistry(server, layout, default_minimum=settings.minimum_batch)
    CountingThreads(first, counting, registry).run(
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
        "migrate-ledger": Program(
            "carries ledgers and anchors of an older format over", _migrate_ledger
        ),
        "make-signing-key": Program(
            "makes the key that signs the publisher's cards", _make_signing_key, (_with_key,)
        ),
        "make-secrets": Program(
            "makes the secrets of a topology in containers",
            _make_secrets,
            (_with_folder, _with_collection),
        ),
    }
)
