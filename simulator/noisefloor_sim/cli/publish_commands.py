"""Commands that publish from a data set, and read what was published: parsed here, done elsewhere.

A publisher is a folder of this machine (``--store``), the services that ``noisefloor up`` started
(``--services``), or an address with a file of tokens. A token is never an argument: everybody on
the machine can read a command line.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from noisefloor.errors import BadParameter
from noisefloor_sim.cli.service_commands import INTERRUPTED

if TYPE_CHECKING:
    from noisefloor_sim.cli.publication_targets import TargetOptions

Store = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FOLDER",
        help="Publisher of this machine: budgets, ledgers and releases. [noisefloor-store]",
    ),
]
Services = Annotated[
    Path | None,
    typer.Option(
        "--services",
        metavar="FOLDER",
        help="Running services, by the folder of `noisefloor up`. [.noisefloor, if they run]",
    ),
]
Address = Annotated[
    str | None,
    typer.Option("--address", metavar="URL", help="A running publisher, with --token-file."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file", metavar="FILE", help="A token, or lines of name, roles and token."
    ),
]
DataSetName = Annotated[
    str | None,
    typer.Option("--data-set", metavar="NAME", help="The data set that the id is of."),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key", metavar="FILE", help="The publisher's public key. [that of the store or folder]"
    ),
]
Unsigned = Annotated[
    bool, typer.Option("--unsigned", help="Insist on a card whose signature is not checked.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="A table (.csv, .tsv, .parquet) with its schema beside it, or a name."
    ),
]
EntryId = Annotated[str, typer.Argument(metavar="ID", help="Of a publication.")]

ledger_app = typer.Typer(
    help="Privacy budgets: what is left, what spent it, and whether the chain of entries holds.",
    invoke_without_command=True,
)


def add(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (publish, fetch, cards, predict):
        app.command()(command)
    app.add_typer(ledger_app, name="ledger")


def publish(
    data: Data,
    method: Annotated[
        str,
        typer.Option(help="How: histogram, logistic, private-sgd, text-head, text-layers, ..."),
    ],
    epsilon: Annotated[float, typer.Option(help="What it may cost; this is charged.")],
    delta: Annotated[float, typer.Option(help="Likewise; Gaussian noise needs one.")] = 0.0,
    neighbours: Annotated[
        str | None,
        typer.Option(help="record-add-remove or record-substitute. [that of the budget]"),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method; repeatable."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that is predicted.")
    ] = None,
    publication_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="ID",
            help="Names the publication. The same request again gets the same bytes, free of "
            "charge; without an id it is made of the request.",
        ),
    ] = None,
    is_dry: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what it would cost and what accuracy to expect."),
    ] = False,
    as_json: AsJson = False,
    store: Store = None,
    services: Services = None,
    address: Address = None,
    token_file: TokenFile = None,
) -> None:
    """Publish from a data set: charged to its budget, drawn once, stored with a signed card.

    Exit code 1 if it is refused (budget, role, id), 2 for bad input. Nothing is spent then.
    """
    from noisefloor_sim.cli import publishing
    from noisefloor_sim.cli.published_data import RequestOptions

    asked = RequestOptions(method, epsilon, delta, settings or [], label, publication_id)
    try:
        with _options(store, services, address, token_file).opened() as target:
            code = publishing.publish(
                data, asked, target, neighbours=neighbours, is_dry=is_dry, as_json=as_json
            )
    except KeyboardInterrupt:
        sys.stderr.write("noisefloor: interrupted; the same command again is charged once.\n")
        code = INTERRUPTED
    raise typer.Exit(code)


def fetch(
    publication_id: EntryId,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write both.")] = Path("."),
    data_set: DataSetName = None,
    key: KeyFile = None,
    unsigned: Unsigned = False,
    store: Store = None,
    services: Services = None,
    address: Address = None,
    token_file: TokenFile = None,
) -> None:
    """Write a publication and its card, once the signature of the card is checked."""
    from noisefloor_sim.cli import publishing

    with _options(store, services, address, token_file).opened() as target:
        code = publishing.fetch(
            publication_id, target, data_set=data_set, out=out, key=key, unsigned=unsigned
        )
    raise typer.Exit(code)


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="As fetched: a file, or a folder with one.")
    ],
    rows: Annotated[
        str, typer.Argument(metavar="ROWS", help="A table with the other columns, or the texts.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Instead of standard output.")
    ] = None,
    key: KeyFile = None,
    unsigned: Unsigned = False,
    backbone: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The pretrained model under a model of texts. [that of this machine]",
        ),
    ] = None,
    store: Store = None,
    services: Services = None,
) -> None:
    """Predict the label of each row by a fetched model, and print them as CSV."""
    from noisefloor_sim.cli import publishing

    options = _options(store, services)
    code = publishing.predict(
        model, rows, options, key=key, out=out, unsigned=unsigned, backbone=backbone
    )
    raise typer.Exit(code)


def cards(
    publication_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="One card; all are listed without.")
    ] = None,
    data_set: DataSetName = None,
    as_json: AsJson = False,
    store: Store = None,
    services: Services = None,
    address: Address = None,
    token_file: TokenFile = None,
) -> None:
    """List what was published, or print one card."""
    from noisefloor_sim.cli import ledger_statements

    with _options(store, services, address, token_file).opened() as target:
        code = ledger_statements.cards(target, publication_id, data_set=data_set, as_json=as_json)
    raise typer.Exit(code)


@ledger_app.callback()
def _ledger(
    context: typer.Context,
    as_json: AsJson = False,
    store: Store = None,
    services: Services = None,
    address: Address = None,
    token_file: TokenFile = None,
) -> None:
    """Privacy budgets: what is left, what spent it, and whether the chain of entries holds."""
    if context.invoked_subcommand is None:
        show(None, as_json, store, services, address, token_file)
    elif as_json or any((store, services, address, token_file)):
        name = context.invoked_subcommand
        raise BadParameter("options", "<option>", f"after the command: noisefloor ledger {name}")


@ledger_app.command()
def show(
    data: Annotated[
        str | None, typer.Argument(metavar="[DATA]", help="One data set; all without.")
    ] = None,
    as_json: AsJson = False,
    store: Store = None,
    services: Services = None,
    address: Address = None,
    token_file: TokenFile = None,
) -> None:
    """Show the budgets and what spent them; `noisefloor ledger` alone does the same."""
    from noisefloor_sim.cli import ledger_statements

    with _options(store, services, address, token_file).opened() as target:
        code = ledger_statements.show(target, data, as_json=as_json)
    raise typer.Exit(code)


@ledger_app.command()
def explain(
    entry_id: EntryId,
    data_set: DataSetName = None,
    store: Store = None,
    services: Services = None,
    address: Address = None,
    token_file: TokenFile = None,
) -> None:
    """Say of one entry which release it is, when it was, and what it cost by every count."""
    from noisefloor_sim.cli import ledger_statements

    with _options(store, services, address, token_file).opened() as target:
        code = ledger_statements.explain(target, entry_id, data_set=data_set)
    raise typer.Exit(code)


@ledger_app.command()
def verify(
    data: Annotated[
        str | None, typer.Argument(metavar="[DATA]", help="One data set; all without.")
    ] = None,
    kept: Annotated[
        list[Path] | None,
        typer.Option(
            "--card",
            metavar="FILE",
            help="A card that was fetched before; a ledger that was set back since is found.",
        ),
    ] = None,
    store: Store = None,
    services: Services = None,
    address: Address = None,
    token_file: TokenFile = None,
) -> None:
    """Replay the chain of entries here and compare it with the cards.

    Exit code 1 if a record is missing, changed or swapped; the first one is named.
    """
    from noisefloor_sim.cli import ledger_statements

    with _options(store, services, address, token_file).opened() as target:
        code = ledger_statements.verify(target, data, kept or [])
    raise typer.Exit(code)


@ledger_app.command()
def budget(
    data: Data,
    epsilon: Annotated[
        float | None, typer.Option(help="Of all releases together; shown if left out.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Likewise.")] = 0.0,
    neighbours: Annotated[
        str, typer.Option(help="record-add-remove or record-substitute.")
    ] = "record-add-remove",
    publisher: Annotated[
        str, typer.Option(metavar="NAME", help="On the cards of a store that is made now.")
    ] = "publisher",
    store: Store = None,
    services: Services = None,
    address: Address = None,
    token_file: TokenFile = None,
) -> None:
    """Set the budget of a data set, once and for all its releases, or show it."""
    from noisefloor_sim.cli import ledger_statements

    with _options(store, services, address, token_file).opened() as target:
        code = ledger_statements.budget(
            target,
            data,
            epsilon=epsilon,
            delta=delta,
            neighbours=neighbours,
            publisher=publisher,
        )
    raise typer.Exit(code)


def _options(
    store: Path | None,
    services: Path | None,
    address: str | None = None,
    token_file: Path | None = None,
) -> "TargetOptions":
    from noisefloor_sim.cli.publication_targets import TargetOptions

    return TargetOptions(store, services, address, token_file)
