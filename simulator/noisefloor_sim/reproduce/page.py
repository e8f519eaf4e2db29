"""The page of the SUP.ML reproduction: verdicts first, then the curves behind them."""

from collections.abc import Sequence

from noisefloor.collection.claims import PhaseClaim
from noisefloor_sim.report.spec import ClaimRow, Curve, Page, Plot, RunCard, Section
from noisefloor_sim.reproduce import supml
from noisefloor_sim.reproduce.running import Accuracies
from noisefloor_sim.reproduce.settings import Setting
from noisefloor_sim.reproduce.sources import TITLES
from noisefloor_sim.reproduce.tables import figures_table, readings_table
from noisefloor_sim.reproduce.verdicts import Judged, interval, sentence

READINGS = (
    "Ranges are the smallest and the largest value of all records, test records included.",
    "Attributes are selected once, from all records, test records included.",
    "Epsilon is that of one phase: selection, training and each question have it each.",
    "Classes and responses are the corrected ones; as printed, they have no guarantee at all.",
    "A printed number is one run: it is set against where one more run of ours would fall.",
)

HOW_TO_READ = (
    "A gap is in points, paired by seed, and fits an order if its interval is above 0; a crossing "
    "is an epsilon. One more run: where 95 of 100 further runs would fall."
)


def page_of(
    judged: Sequence[Judged],
    runs: Accuracies,
    *,
    claims: Sequence[PhaseClaim],
    majority: dict[str, float],
    card: Sequence[tuple[str, str]],
) -> Page:
    """Return the whole page."""
    seeds = min(len(values) for values in runs.values())
    most = max(len(values) for values in runs.values())
    larger = ", ".join(f"{TITLES[data]} {share:.1f} %" for data, share in majority.items())
    return Page(
        name="reproduce supml",
        question="Do the figures that the SUP.ML paper prints come out when they are run again?",
        expectation="Some do and some do not: the text leaves much open.",
        verdict_sentence=sentence(judged),
        verdict_ok=True,
        claims=[ClaimRow.of(one.claim, one.phase, pipeline="collection") for one in claims],
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
            "WDBC: more attributes and classes win as epsilon grows",
            "DR.Rand; the paper sees (7,4) best above 21.4.",
            {
                f"({k},{size})": _series(runs, supml.WDBC, "rand", (k, size))
                for k, size in supml.WDBC_PAIRS
            },
            runs,
            majority[supml.WDBC],
        ),
        _curves(
            "Ionosphere: they do there as well",
            "DR.Rand; the paper sees (2,3) best below 13 and (6,5) best above 36.",
            {
                f"({k},{size})": _series(runs, supml.IONOSPHERE, "rand", (k, size))
                for k, size in supml.IONOSPHERE_PAIRS
            },
            runs,
            majority[supml.IONOSPHERE],
        ),
        _curves(
            "WDBC: selection by products, without privacy, gains most at small epsilon",
            "DR.WA sees classes and labels without noise; the paper prints 90.29 at epsilon 10.",
            {
                f"({k},{size})": _series(runs, supml.WDBC, "wa", (k, size))
                for k, size in ((2, 2), (4, 4))
            },
            runs,
            majority[supml.WDBC],
        ),
        _bars(runs),
    ]


def _series(runs: Accuracies, data: str, select: str, pair: tuple[int, int]) -> list[Setting]:
    plain = Setting(data, select, *pair)
    found = [
        one
        for one in runs
        if (one.data, one.select, one.k, one.size) == (data, select, *pair)
        and (one.train, one.test, one.form) == (plain.train, plain.test, plain.form)
        and one.epsilon >= 10
    ]
    return sorted(found, key=lambda one: one.epsilon)


def _curves(
    title: str,
    reading: str,
    series: dict[str, list[Setting]],
    runs: Accuracies,
    majority: float,
) -> Plot:
    curves = [_curve(name, settings, runs) for name, settings in series.items()]
    epsilons = curves[0].x
    base = Curve("larger class", epsilons, [majority] * len(epsilons), role="baseline")
    return Plot(title, reading, "epsilon of each phase", "accuracy, %", [*curves, base])


def _curve(name: str, settings: Sequence[Setting], runs: Accuracies) -> Curve:
    found = [interval(runs[one]) for one in settings]
    return Curve(
        name,
        [one.epsilon for one in settings],
        [mean for mean, _, _ in found],
        [mean - half for mean, half, _ in found],
        [mean + half for mean, half, _ in found],
    )


def _bars(runs: Accuracies) -> Plot:
    settings = supml.mixed(supml.WDBC, "rand", (7, 4), 10.0)
    found = [interval(runs[one]) for one in settings]
    names = [f"{one.train}/{one.test}" for one in settings]
    bars = Curve(
        "accuracy",
        names,
        [mean for mean, _, _ in found],
        [mean - half for mean, half, _ in found],
        [mean + half for mean, half, _ in found],
    )
    return Plot(
        "WDBC: noise in the test hurts far more than noise in training",
        "DR.Rand (7,4), epsilon 10, training/test; WA is without noise, and without privacy.",
        "training/test",
        "accuracy, %",
        [bars],
        kind="bar",
    )
