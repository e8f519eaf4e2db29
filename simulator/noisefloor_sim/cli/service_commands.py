"""Commands that start, show, stop and torment the services: parsed here, done elsewhere."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from noisefloor.errors import BadParameter

INTERRUPTED = 130
"""What shells expect of a program that was stopped by Ctrl-C."""

ServicesFolder = Annotated[
    Path, typer.Option("--folder", metavar="FOLDER", help="Data, logs and tokens of the services.")
]
LedgerAnchor = Annotated[
    Path | None,
    typer.Option(
        "--anchor",
        metavar="PATH",
        envvar="NOISEFLOOR_LEDGER_ANCHOR",
        help="File that says what was spent at least. It has to be outside of the folder and its "
        "backups; by default it is in ~/.local/state/noisefloor/anchors.",
    ),
]
RedisUrl = Annotated[
    str | None,
    typer.Option(
        "--redis",
        metavar="URL",
        envvar="NOISEFLOOR_REDIS_URL",
        help="A Redis or Valkey server to use; embedded ones are started without it. An "
        "address with a password belongs in the variable, not on the command line.",
    ),
]
_SERVICES = Path(".noisefloor")


def add(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (up, status, down, restore_ledger, stress, chaos):
        app.command()(command)


def up(
    folder: ServicesFolder = _SERVICES,
    redis_url: RedisUrl = None,
    durability: Annotated[
        str, typer.Option(help="disk: what is acknowledged is on disk; memory: Redis has it.")
    ] = "disk",
    collection: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Catalogue and kinds; an example of 20 ads without."),
    ] = None,
    data_sets: Annotated[
        list[str] | None,
        typer.Option(
            "--data-set",
            metavar="NAME",
            help="May be published from: a known name, or NAME=FILE; repeatable.",
        ),
    ] = None,
    anchor: LedgerAnchor = None,
    experiments: Annotated[
        bool,
        typer.Option(
            "--experiments",
            help="Let runs publish what has no guarantee; not together with --data-set.",
        ),
    ] = False,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay, and stop everything on Ctrl-C.")
    ] = False,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Start again what has ended of running services; the rest is left."
        ),
    ] = False,
) -> None:
    """Start all services on this machine: ad server, aggregator, model publisher, and stores."""
    from noisefloor_sim.cli import services

    if repair and (collection or data_sets or foreground or experiments):
        rule = "without --collection, --data-set, --experiments and --foreground"
        raise BadParameter("repair", True, rule)
    if experiments and data_sets:
        raise BadParameter("experiments", True, "without --data-set: it is for simulated data")
    try:
        if repair:
            code = services.repair_up(folder, redis_url=redis_url)
        else:
            code = services.up(
                folder,
                redis_url=redis_url,
                durability=durability,
                collection=collection,
                data_sets=data_sets or [],
                anchor=anchor,
                foreground=foreground,
                experiments=experiments,
            )
    except KeyboardInterrupt:
        sys.stderr.write("noisefloor: interrupted; noisefloor status says what runs.\n")
        code = INTERRUPTED
    raise typer.Exit(code)


def chaos(
    reports: Annotated[int, typer.Option(help="Of the workers' storm.")] = 1_000_000,
    seeds: Annotated[str, typer.Option(help="With commas between.")] = "1,2,3",
    quick: Annotated[bool, typer.Option("--quick", help="Everything in small.")] = False,
    durability: Annotated[str, typer.Option(help="disk or memory.")] = "disk",
    outage_s: Annotated[float, typer.Option(help="How long the store is away.")] = 30.0,
    only: Annotated[
        str, typer.Option(help="Some of streams,services,closing,outage,termination,ledger.")
    ] = "",
    naive: Annotated[
        bool, typer.Option("--naive", help="Count and spend as one should not: has to fail.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Run directory; runs/chaos-HASH if left out.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing run.")] = False,
) -> None:
    """Kill, stop and pause the services under load, and compare every sum with the truth.

    Exit code 1 if anything is not exact.
    """
    from noisefloor_sim.cli import chaos

    options = ["--reports", str(reports), "--seeds", seeds, "--durability", durability]
    options += ["--outage-s", str(outage_s), *(["--only", only] if only else [])]
    options += [*(["--quick"] if quick else []), *(["--naive"] if naive else [])]
    try:
        code = chaos.chaos(options, out=out, force=force)
    except KeyboardInterrupt:
        sys.stderr.write("noisefloor: interrupted; whatever was started is ended.\n")
        code = INTERRUPTED
    raise typer.Exit(code)


def stress(
    scenario: Annotated[
        Path,
        typer.Argument(metavar="SCENARIO", help="A scenario file, or the name of a shipped one."),
    ],
    services: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Services that run there; some are started without it."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Run directory; runs/stress-NAME-HASH if left out.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Instead of the scenario's.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Each step once, after a shorter warm-up.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing run.")] = False,
) -> None:
    """Send the load of a scenario to the services, and find the rate at which they give way.

    Exit code 1 if a gate of the load fails.
    """
    from noisefloor_sim.cli import stress
    from noisefloor_sim.stress import LoadOptions

    options = LoadOptions(services, out, seed, quick, force)
    try:
        code = stress.stress(scenario, options)
    except KeyboardInterrupt:
        sys.stderr.write("noisefloor: interrupted; whatever was started is ended.\n")
        code = INTERRUPTED
    raise typer.Exit(code)


def status(
    folder: ServicesFolder = _SERVICES,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show the services: health, lag, promises, conservation and the ledger.

    Exit code 0 if all are ready and every frame is accounted for, 1 if not, 2 if nothing runs.
    """
    from noisefloor_sim.cli import services

    raise typer.Exit(services.status(folder, as_json=as_json))


def down(folder: ServicesFolder = _SERVICES) -> None:
    """Let what waits be counted, and stop the services in order.

    Exit code 0 if all stopped as they should, 1 if not, 2 if nothing runs.
    """
    from noisefloor_sim.cli import services

    raise typer.Exit(services.down(folder))


def restore_ledger(
    folder: ServicesFolder = _SERVICES, redis_url: RedisUrl = None, anchor: LedgerAnchor = None
) -> None:
    """Raise the ledger of a stopped topology to what its anchor says was spent.

    For a folder that was restored from a backup: nothing is ever lowered.
    """
    from noisefloor_sim.cli import services

    raise typer.Exit(services.restore_ledger(folder, redis_url=redis_url, anchor=anchor))
