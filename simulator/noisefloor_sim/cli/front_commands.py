"""Commands for newcomers: the shipped scenarios, a new one, and what is installed."""

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (scenarios, new, doctor):
        app.command()(command)


def print_version(show_version: bool) -> None:
    """Print the version and end, if the option is given."""
    if show_version:
        from noisefloor_sim.cli.doctor import version_text

        print(version_text())
        raise typer.Exit


def scenarios(as_json: AsJson = False) -> None:
    """List the shipped scenarios: what each asks, what it needs, and how long it takes."""
    from noisefloor_sim.cli.shipped_table import list_shipped

    raise typer.Exit(list_shipped(as_json=as_json))


def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Of the scenario; the file is NAME.yaml.")
    ],
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="SCENARIO", help="A shipped scenario to copy."),
    ] = None,
) -> None:
    """Write a scenario with comments into this folder; an existing file is left as it is."""
    from noisefloor_sim.cli import new_scenario

    raise typer.Exit(new_scenario.new(name, source=source))


def doctor(as_json: AsJson = False) -> None:
    """Say what is installed here, what is missing, and which scenarios run.

    Exit code 0 if the core works, 1 if not.
    """
    from noisefloor_sim.cli.doctor import doctor

    raise typer.Exit(doctor(as_json=as_json))
