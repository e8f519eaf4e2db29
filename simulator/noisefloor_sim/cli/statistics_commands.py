"""Commands that close epochs and read their batches: parsed here, done in ``batch_reading``."""

import re
from pathlib import Path
from typing import Annotated

import typer

from noisefloor.errors import BadParameter
from noisefloor_sim.cli.service_commands import ServicesFolder

KindArgument = Annotated[str, typer.Argument(metavar="KIND", help="Of the reports.")]
EpochArgument = Annotated[int, typer.Argument(metavar="EPOCH", help="A number from 0 on.")]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Of an aggregator elsewhere (http://...), instead of --folder."
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Holds the token for --address; read: read, close: admin."),
]
CollectionName = Annotated[
    str, typer.Option("--collection", metavar="NAME", help="One beside the first, by its name.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

_SERVICES = Path(".noisefloor")
_KIND = re.compile(r"[a-z][a-z0-9-]{0,31}", re.ASCII)
_COLLECTION = re.compile(r"([a-z0-9][a-z0-9-]{0,63})?", re.ASCII)

statistics_app = typer.Typer(
    help="Sums and collected rows of closed epochs, from a running aggregator.",
    no_args_is_help=True,
)


def add(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(statistics_app, name="statistics")


def _check(kind: str, epoch: int, collection: str) -> None:
    if not _KIND.fullmatch(kind):
        raise BadParameter("kind", "<name>", f"to match {_KIND.pattern}")
    if not 0 <= epoch < 10**10:
        raise BadParameter("epoch", epoch, "a whole number of at most ten digits")
    if not _COLLECTION.fullmatch(collection):
        raise BadParameter("collection", "<name>", f"to match {_COLLECTION.pattern}")


@statistics_app.command("close")
def close(
    kind: KindArgument,
    epoch: EpochArgument,
    folder: ServicesFolder = _SERVICES,
    address: Address = None,
    token_file: TokenFile = None,
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Close an epoch, once or again: every frame that was taken counts, and no further one.

    Exit code 1 if the aggregator refuses, 2 for bad input or if nothing runs.
    """
    from noisefloor_sim.cli import batch_reading

    _check(kind, epoch, collection)
    access = batch_reading.AggregatorAccess(folder, address, token_file, collection)
    raise typer.Exit(batch_reading.close(access, kind, epoch, as_json=as_json))


@statistics_app.command("read")
def read(
    kind: KindArgument,
    epoch: EpochArgument,
    folder: ServicesFolder = _SERVICES,
    address: Address = None,
    token_file: TokenFile = None,
    collection: CollectionName = "",
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the answer's own bytes: JSON, or Arrow IPC."),
    ] = None,
) -> None:
    """Read the batch of a closed epoch, with the parameters under which it is released.

    The same bytes at every call. An epoch with fewer reports than the minimum is refused.
    Exit code 1 if the aggregator refuses, 2 for bad input or if nothing runs.
    """
    from noisefloor_sim.cli import batch_reading

    _check(kind, epoch, collection)
    access = batch_reading.AggregatorAccess(folder, address, token_file, collection)
    raise typer.Exit(batch_reading.read(access, kind, epoch, as_json=as_json, out=out))
