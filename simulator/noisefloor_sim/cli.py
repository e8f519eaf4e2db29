"""The command line: it parses and calls, nothing more.

Exit codes: 0 fine; 1 a verdict went against us or the program refused; 2 bad input.
"""

import sys
from typing import Annotated

import typer

from noisefloor.errors import BadParameter, NoisefloorError, OutOfDomain, UnknownMechanism

_BAD_INPUT = (BadParameter, OutOfDomain, UnknownMechanism)

app = typer.Typer(
    name="noisefloor",
    help="What is this epsilon worth? Claimed, proved and audited, side by side.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _noisefloor() -> None:
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
    seed: Annotated[int, typer.Option(help="Of all coins: the same seed, the same table.")] = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, one object a mechanism.")
    ] = False,
) -> None:
    """Attack every mechanism: what is claimed, what is proved, what an adversary reached.

    Each row also holds a null (the same input twice) and a planted fault (noise a quarter too
    small). Exit code 1 if a mechanism that is not marked as faulty breaks what is proved of it.
    """
    from noisefloor_sim.audit_table import run_audit  # lazy: numpy and scipy are slow to import

    raise typer.Exit(run_audit(mechanisms or [], trials=trials, seed=seed, as_json=as_json))


def main() -> None:
    """Run the command line; errors raised on purpose become one line."""
    try:
        app()
    except NoisefloorError as error:
        sys.stderr.write(f"noisefloor: {error}\n")
        sys.exit(2 if isinstance(error, _BAD_INPUT) else 1)


if __name__ == "__main__":
    main()
