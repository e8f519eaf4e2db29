"""The page of the SUP.ML reproduction: verdicts first, then the curves behind them."""

from collections.abc import Mapping, Sequence

from noisefloor.collection import PhaseClaim
from noisefloor_sim.papers import supml_figures, verdicts
from noisefloor_sim.papers.output import figures_table, readings_table
from noisefloor_sim.papers.supml_runs import TITLES, Accuracies, SupmlSetting
from noisefloor_sim.report import ClaimRow, Curve, Page, Plot, RunCard, Section, headline

READINGS = (
    "Ranges are the smallest and the largest value of all records, test records included.",
    "Attributes are selected once, from all records, test records included.",
    "Epsilon is that of one phase: selection, training and each question have it each.",
    "Classes and responses are the corrected ones, and not those that are printed.",
    "A printed number is one run: it is set against where one more run of ours would fall.",
)

EXPECTATION = "Every printed figure comes out, however the text is read."
HOW_TO_READ = (
    "A gap is in points, paired by seed, and fits an order if its interval is above 0, does not "
    "if it is below, and is undecided if it contains 0; a crossing is an epsilon. One more run: "
    "where 95 of 100 further runs would fall."
)


def page_of(
    judged: Sequence[verdicts.JudgedFigure],
    runs: Accuracies,
    *,
    claims: Sequence[PhaseClaim],
    majority: dict[str, float],
    card: Sequence[tuple[str, str]],
) -> Page:
    """Return the whole page."""
    seeds = min(len(values) for values in runs.values())
    most = max(len(values) for values in runs.values())
    rows = [ClaimRow.of(one.claim, one.phase, pipeline="collection") for one in claims]
    larger = ", ".join(f"{TITLES[data]} {share:.1f} %" for data, share in majority.items())
    return Page(
        name="reproduce supml",
        question="Do the figures that the SUP.ML paper prints come out when they are run again?",
        expectation=EXPECTATION,
        verdict_sentence=f"{verdicts.sentence(judged)} {headline(rows)}",
        verdict_ok=verdicts.all_come_out(judged),
        claims=rows,
        sections=[
            Section(
                "Printed and run again",
                f"Each figure over {seeds} seeds, crossings over {most}. " + " ".join(READINGS),
                [
                    figures_table(judged, TITLES, larger),
                    readings_table(judged, TITLES, HOW_TO_READ),
                ],
            ),
            Section(
                "Curves",
                "Mean over seeds with its 95 % interval; accuracy against true labels.",
                _plots(runs, majority),
            ),
        ],
        run_card=RunCard(card),
    )


def _plots(runs: Accuracies, majority: dict[str, float]) -> list[Plot]:
    return [
        _curves(
            "WDBC",
            "DR.Rand; the paper sees (7,4) best above 21.4.",
            {
                f"({k},{size})": _series(runs, supml_figures.WDBC, "rand", (k, size))
                for k, size in supml_figures.WDBC_PAIRS
            },
            runs,
            majority[supml_figures.WDBC],
        ),
        _curves(
            "Ionosphere",
            "DR.Rand; the paper sees (2,3) best below 13 and (6,5) best above 36.",
            {
                f"({k},{size})": _series(runs, supml_figures.IONOSPHERE, "rand", (k, size))
                for k, size in supml_figures.IONOSPHERE_PAIRS
            },
            runs,
            majority[supml_figures.IONOSPHERE],
        ),
        _curves(
            "WDBC, selection by products",
            "DR.WA sees classes and labels without noise; the paper prints 90.29 at epsilon 10.",
            {
                f"({k},{size})": _series(runs, supml_figures.WDBC, "wa", (k, size))
                for k, size in ((2, 2), (4, 4))
            },
            runs,
            majority[supml_figures.WDBC],
        ),
        _bars(runs),
    ]


def _series(runs: Accuracies, data: str, select: str, pair: tuple[int, int]) -> list[SupmlSetting]:
    plain = SupmlSetting(data, select, *pair)
    found = [
        one
        for one in runs
        if (one.data, one.select, one.k, one.size) == (data, select, *pair)
        and (one.train, one.test, one.form) == (plain.train, plain.test, plain.form)
        and one.epsilon >= 10
    ]
    return sorted(found, key=lambda one: one.epsilon)


def best_at_the_ends(series: Mapping[str, Sequence[SupmlSetting]], runs: Accuracies) -> str:
    """Say which curve is best at the smallest and at the largest epsilon that all of them have."""
    points = [{one.epsilon: one for one in settings} for settings in series.values()]
    common = set.intersection(*(set(some) for some in points))
    ends = dict.fromkeys((min(common), max(common)))
    at = ({name: some[end] for name, some in zip(series, points, strict=True)} for end in ends)
    return ", ".join(
        f"{_best(settings, runs)} at epsilon {end:g}"
        for end, settings in zip(ends, at, strict=True)
    )


def _best(settings: Mapping[str, SupmlSetting], runs: Accuracies) -> str:
    """Name the setting whose paired gaps to all others have intervals above 0."""
    for name, one in settings.items():
        others = [other for other in settings.values() if other != one]
        if all(verdicts.paired_gap(one, other, runs)[1] > 0 for other in others):
            return f"{name} is best"
    return "none is clearly best"


def _curves(
    data: str,
    describes: str,
    series: dict[str, list[SupmlSetting]],
    runs: Accuracies,
    majority: float,
) -> Plot:
    curves = [_curve(name, settings, runs) for name, settings in series.items()]
    epsilons = curves[0].x
    base = Curve("larger class", epsilons, [majority] * len(epsilons), role="baseline")
    title = f"{data}: {best_at_the_ends(series, runs)}"
    return Plot(title, describes, "epsilon of each phase", "accuracy, %", [*curves, base])


def _curve(name: str, settings: Sequence[SupmlSetting], runs: Accuracies) -> Curve:
    found = [verdicts.interval(runs[one]) for one in settings]
    return Curve(
        name,
        [one.epsilon for one in settings],
        [mean for mean, _, _ in found],
        [mean - half for mean, half, _ in found],
        [mean + half for mean, half, _ in found],
    )


def cost_of_noise(settings: Sequence[SupmlSetting], runs: Accuracies) -> str:
    """Say what noise in training alone and in the test alone costs, from the four mixes."""
    without, in_training, _, in_test = settings
    words = []
    for name, one in (("training", in_training), ("the test", in_test)):
        _, low, high = verdicts.paired_gap(without, one, runs)
        words.append(f"in {name} {low:.1f} to {high:.1f}")
    return f"WDBC: points that noise costs: {', '.join(words)}"


def _bars(runs: Accuracies) -> Plot:
    settings = supml_figures.mixed(supml_figures.WDBC, "rand", (7, 4), 10.0)
    found = [verdicts.interval(runs[one]) for one in settings]
    names = [f"{one.train}/{one.test}" for one in settings]
    bars = Curve(
        "accuracy",
        names,
        [mean for mean, _, _ in found],
        [mean - half for mean, half, _ in found],
        [mean + half for mean, half, _ in found],
    )
    return Plot(
        cost_of_noise(settings, runs),
        "DR.Rand (7,4), epsilon 10, training/test; WA is without noise, and without privacy.",
        "training/test",
        "accuracy, %",
        [bars],
        kind="bar",
    )
