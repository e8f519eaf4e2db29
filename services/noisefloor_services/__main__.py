"""Run one service: ``python -m noisefloor_services NAME``; settings are in the environment."""

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from redis.exceptions import RedisError

from noisefloor.errors import NoisefloorError
from noisefloor.roles.collection import Collection, example
from noisefloor_services import ad_server, aggregator, logs, model_publisher, store_process
from noisefloor_services.apps import Service
from noisefloor_services.counting import Counting, CountingAll
from noisefloor_services.registry import Registry
from noisefloor_services.secret_files import make_secrets
from noisefloor_services.security.secure_start import check_environment, secure_source
from noisefloor_services.serving import serve
from noisefloor_services.settings import Settings
from noisefloor_services.streams.durability import Durability
from noisefloor_services.streams.keys import Layout
from noisefloor_services.streams.server import Server
from noisefloor_services.streams.store import EpochStore

WORKER, LEDGER, SECRETS = "worker", "create-ledger", "make-secrets"
NAMES = (
    *(ad_server.NAME, aggregator.NAME, model_publisher.NAME),
    *(store_process.NAME, WORKER, LEDGER, SECRETS),
)


def main(
    arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ
) -> int:
    """Run what is named; 2 for a start that is refused, with the reason in one line."""
    given = read_arguments(arguments)
    try:
        check_environment(environment)
        settings = Settings.read(environment)
        settings.credentials.check_absent(sys.argv[1:] if arguments is None else arguments)
        secure_source(environment, settings)
        collection = Collection.read(given.collection) if given.collection else example()
        logs.configure(settings.log_level)
        _run(given, settings, collection, environment)
    except NoisefloorError as error:
        print(f"noisefloor: {error}", file=sys.stderr)
        return 2
    except (OSError, RedisError) as error:
        print(f"noisefloor: cannot start: {type(error).__name__}", file=sys.stderr)
        return 2
    return 0


def read_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line, or end with what is wrong with it."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if (given.folder is None) == (given.name == SECRETS):
        parser.error(f"{SECRETS} takes a folder, and nothing else does")
    return given


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m noisefloor_services",
        description="Run one service. Settings are variables that begin with NOISEFLOOR_.",
    )
    parser.add_argument("name", choices=NAMES, help="what to run")
    text = "where to make the secrets of a topology in containers; nothing may be there yet"
    parser.add_argument("folder", nargs="?", type=Path, help=text)
    text = "file of JSON with catalogue and kinds; an example of 20 ads without"
    parser.add_argument("--collection", type=Path, metavar="FILE", help=text)
    text = "a data set that may be published from; may be given several times"
    parser.add_argument("--data-set", action="append", default=[], metavar="NAME", help=text)
    return parser


def _run(
    given: argparse.Namespace,
    settings: Settings,
    collection: Collection,
    environment: Mapping[str, str],
) -> None:
    if given.name == SECRETS:
        namespace, has_tokens = collection.namespace, settings.report_tokens
        made = make_secrets(given.folder, namespace=namespace, has_report_tokens=has_tokens)
        print(f"{given.folder}: {', '.join(made)}")
    elif given.name == LEDGER:
        model_publisher.create_ledger(settings)
    elif given.name == WORKER:
        _work(settings, collection)
    elif given.name == store_process.NAME:
        store_process.run(settings, collection.namespace)
    else:
        serve(_service(given, settings, collection, environment), settings)


def _service(
    given: argparse.Namespace,
    settings: Settings,
    collection: Collection,
    environment: Mapping[str, str],
) -> Service:
    if given.name == ad_server.NAME:
        return ad_server.create(settings, collection, environment=environment)
    if given.name == aggregator.NAME:
        return aggregator.create(settings, collection, environment=environment)
    return model_publisher.create(settings, {}, data_sets=given.data_set, environment=environment)


def _work(settings: Settings, collection: Collection) -> None:
    """Count beside other workers, without an API, until a signal."""

    def counting(one: Collection) -> Counting:
        layout = Layout(one.namespace, settings.partitions)
        store = EpochStore(Server(settings.redis_url), layout, one.kinds.values())
        return Counting(store, Durability(settings.durability), one.first_epoch)

    signals = {signal.SIGTERM, signal.SIGINT}
    # Blocked before a thread starts, which inherits it: the signal waits for sigtimedwait.
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    layout = Layout(collection.namespace, settings.partitions)
    registry = Registry(Server(settings.redis_url), layout)
    CountingAll(collection, counting, registry).run(
        lambda pause_s: signal.sigtimedwait(signals, pause_s) is not None
    )


if __name__ == "__main__":
    sys.exit(main())
