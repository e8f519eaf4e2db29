"""Run one service: ``python -m noisefloor_services NAME``; settings are in the environment."""

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from redis.exceptions import RedisError

from noisefloor.errors import NoisefloorError
from noisefloor.roles.methods import methods_of
from noisefloor_services import ad_server, aggregator, data_sets, logs, model_publisher
from noisefloor_services.apps import Service
from noisefloor_services.collection import Collection, example
from noisefloor_services.counting import Counting
from noisefloor_services.security.secure_start import check_environment, secure_source
from noisefloor_services.serving import serve
from noisefloor_services.settings import Settings
from noisefloor_services.streams.durability import Durability
from noisefloor_services.streams.keys import Layout
from noisefloor_services.streams.server import Server
from noisefloor_services.streams.store import EpochStore

WORKER, LEDGER, RESTORE = "worker", "create-ledger", "restore-ledger"
NAMES = (ad_server.NAME, aggregator.NAME, model_publisher.NAME, WORKER, LEDGER, RESTORE)


def main(
    arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ
) -> int:
    """Run what is named; 2 for a start that is refused, with the reason in one line."""
    given = _parser().parse_args(arguments)
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m noisefloor_services",
        description="Run one service. Settings are variables that begin with NOISEFLOOR_.",
    )
    parser.add_argument("name", choices=NAMES, help="what to run")
    text = "file of JSON with catalogue and kinds; an example of 20 ads without"
    parser.add_argument("--collection", type=Path, metavar="FILE", help=text)
    text = (
        "a data set that may be published from, by its name or as NAME=FILE, with FILE's schema "
        "beside it; may be given several times"
    )
    parser.add_argument("--data-set", action="append", default=[], metavar="NAME", help=text)
    return parser


def _run(
    given: argparse.Namespace,
    settings: Settings,
    collection: Collection,
    environment: Mapping[str, str],
) -> None:
    if given.name == LEDGER:
        model_publisher.create_ledger(settings)
    elif given.name == RESTORE:
        print(model_publisher.restore_ledger(settings))
    elif given.name == WORKER:
        _work(settings, collection)
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
    records = data_sets.read(given.data_set)
    methods = methods_of(records)
    return model_publisher.create(settings, methods, data_sets=records, environment=environment)


def _work(settings: Settings, collection: Collection) -> None:
    """Count beside other workers, without an API, until a signal."""
    store = EpochStore(
        Server(settings.redis_url),
        Layout(collection.namespace, settings.partitions),
        collection.kinds.values(),
    )
    signals = {signal.SIGTERM, signal.SIGINT}
    # Blocked before the thread starts, which inherits it: the signal waits for sigwait.
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    counting = Counting(store, Durability(settings.durability), collection.first_epoch)
    counting.start()
    signal.sigwait(signals)
    counting.stop()


if __name__ == "__main__":
    sys.exit(main())
