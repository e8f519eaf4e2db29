"""What ``noisefloor reproduce`` takes, paper by paper."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from noisefloor_sim.cli.service_commands import INTERRUPTED

reproduce_app = typer.Typer(
    help="Papers' printed claims, run again with a verdict for each.", no_args_is_help=True
)


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
    The full run takes about seven hours on two cores, --records 5000 two; what is finished is
    kept, and --resume goes on.
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
