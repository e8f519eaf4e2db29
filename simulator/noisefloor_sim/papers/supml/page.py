"""The page of the SUP.ML reproduction: verdicts first, then the curves behind them."""

from collections.abc import Iterable, Mapping, Sequence

from noisefloor.collection import PhaseClaim
from noisefloor_sim.papers import intervals, verdicts
from noisefloor_sim.papers.output import claims_table, tests_table
from noisefloor_sim.papers.supml import figures
from noisefloor_sim.papers.supml.runs import TITLES, Accuracies, SupmlSetting
from noisefloor_sim.report import ClaimRow, Curve, Page, Plot, RunCard, Section, headline

READINGS = (
    "Ranges are the smallest and the largest value of all records, test records included.",
    "Attributes are selected once, from all records, test records included.",
    "Lies of the printed response are drawn from the symbols 0 to L, as algorithm 2 has them.",
    "Epsilon is that of one phase: selection, training and each question have it each.",
    "A printed number is one run: it agrees if it is at most two standard deviations (SD) of one "
    "run away from our mean.",
    'Gaps are in points, paired by seed. "Hardly" and "little" are at most 3.57 points, the '
    'largest loss that the paper calls small; "best" and "at least as good" may be missed by 1 '
    "point.",
)

EXPECTATION = "Every printed claim holds of the algorithms as they are printed."


def page_of(
    judged: verdicts.Judged,
    runs: Accuracies,
    *,
    judge: verdicts.Judge,
    claims: Sequence[PhaseClaim],
    majority: Mapping[str, float],
    card: Sequence[tuple[str, str]],
) -> Page:
    """Return the whole page."""
    rows = [ClaimRow.of(one.claim, one.phase, pipeline="collection") for one in claims]
    (_, first), *others = judged.items()
    return Page(
        name="reproduce supml",
        question="Do the claims that the SUP.ML paper prints hold when they are run again?",
        expectation=EXPECTATION,
        verdict_sentence=f"{verdicts.sentence(judged)} {headline(rows)}",
        verdict_ok=verdicts.all_hold(first),
        claims=rows,
        sections=[
            Section(
                "The printed algorithms",
                f"{_how_decided(judge, runs)} {' '.join(READINGS)} {_larger_class(majority)}",
                [claims_table(first, TITLES, "Every printed claim")],
            ),
            Section(
                "Corrected variants and other readings",
                "Not what is printed: classes without a class 0 and responses over the classes "
                "alone; and what the text can mean as well, one at a time.",
                [claims_table(some, TITLES, name) for name, some in others if some],
            ),
            Section(
                "Curves",
                "The printed algorithms: means over seeds and gaps paired by seed, with intervals "
                "of the error that decides the claims. Accuracy is against true labels.",
                _plots(runs, majority, judge.error),
            ),
            Section(
                "Every test",
                "A claim holds if all of its tests do.",
                [
                    tests_table(some, TITLES, name, "In the order of the claims.")
                    for name, some in judged.items()
                    if some
                ],
            ),
        ],
        run_card=RunCard(card),
    )


def _how_decided(judge: verdicts.Judge, runs: Accuracies) -> str:
    fewest, most = (end(map(len, runs.values())) for end in (min, max))
    more = "" if fewest == most else f" ({most} where random attributes are compared)"
    seeds = f"{fewest} seeds{more}"
    return (
        f"Over {seeds}. A claim is decided only if the interval shown lies on one side of what "
        f"it needs; otherwise it is undecided. Intervals have the error {judge.error:.1e}: "
        f"{verdicts.FALSE_DECISION:g} for any false decision, over {judge.tests} tests."
    )


def _larger_class(majority: Mapping[str, float]) -> str:
    shares = ", ".join(f"{TITLES[data]} {share:.1f} %" for data, share in majority.items())
    return f"Always telling the larger class gets: {shares}."


def _plots(runs: Accuracies, majority: Mapping[str, float], error: float) -> list[Plot]:
    wdbc, ionosphere = figures.WDBC, figures.IONOSPHERE
    w, i = (
        _series(runs, data, "rand", pairs)
        for data, pairs in (
            (wdbc, figures.WDBC_PAIRS),
            (ionosphere, figures.IONOSPHERE_PAIRS),
        )
    )
    wa = _series(runs, wdbc, "wa", ((2, 2), (4, 4)))
    return [
        _curves("WDBC", "DR.Rand; the paper sees (7,4) best above 21.4.",
            w, runs, majority[wdbc], error),
        _gap_plot("WDBC", w, runs, error, (("(7,4)", "(6,3)"), ("(7,4)", "(5,2)"))),
        _curves("Ionosphere",
            "DR.Rand; the paper sees (2,3) best below 13 and (6,5) best above 36.",
            i, runs, majority[ionosphere], error),
        _gap_plot("Ionosphere", i, runs, error, (("(4,4)", "(2,3)"), ("(6,5)", "(4,4)"))),
        _curves("WDBC, selection by products",
            "DR.WA sees classes and labels without noise; the paper prints 90.29 at epsilon 10.",
            wa, runs, majority[wdbc], error),
        _bars(runs, error),
    ]  # fmt: skip


Series = Mapping[str, Sequence[SupmlSetting]]


def _series(
    runs: Accuracies, data: str, select: str, pairs: Iterable[tuple[int, int]]
) -> dict[str, list[SupmlSetting]]:
    """Return the curves over epsilon that were run, by their (K, L)."""
    series = {}
    for k, size in pairs:
        plain = SupmlSetting(data, select, k, size)
        found = [
            one
            for one in runs
            if one.epsilon >= 10 and one == figures.at_epsilon(plain, one.epsilon)
        ]
        series[f"({k},{size})"] = sorted(found, key=lambda one: one.epsilon)
    return series


def best_at_the_ends(series: Series, runs: Accuracies, error: float) -> str:
    """Say which curve is best at the smallest and at the largest epsilon that all of them have."""
    points = [{one.epsilon: one for one in settings} for settings in series.values()]
    common = set.intersection(*(set(some) for some in points))
    ends = dict.fromkeys((min(common), max(common)))
    at = ({name: some[end] for name, some in zip(series, points, strict=True)} for end in ends)
    return ", ".join(
        f"{_best(settings, runs, error)} at epsilon {end:g}"
        for end, settings in zip(ends, at, strict=True)
    )


def _best(settings: Mapping[str, SupmlSetting], runs: Accuracies, error: float) -> str:
    """Name the setting whose paired gaps to all others have intervals above 0."""
    for name, one in settings.items():
        others = [other for other in settings.values() if other != one]
        if all(_gap(one, other, runs, error)[1] > 0 for other in others):
            return f"{name} is best"
    return "none is clearly best"


def _curves(
    data: str,
    describes: str,
    series: Series,
    runs: Accuracies,
    majority: float,
    error: float,
) -> Plot:
    curves = [
        _curve(name, settings, [_mean(one, runs, error) for one in settings])
        for name, settings in series.items()
    ]
    epsilons = [float(one) for one in curves[0].x]
    base = Curve("larger class", epsilons, [majority] * len(epsilons), role="baseline")
    title = f"{data}: {best_at_the_ends(series, runs, error)}"
    return Plot(
        title, describes, "epsilon of each phase", "accuracy, %", [*curves, base], log_x=True
    )


def _gap_plot(
    data: str,
    series: Series,
    runs: Accuracies,
    error: float,
    pairs: Sequence[tuple[str, str]],
) -> Plot:
    """Show gaps of two curves, with what they are without noise: the limit of large epsilon."""
    curves = []
    for first, second in pairs:
        others = {one.epsilon: one for one in series[second]}
        both = [(one, others[one.epsilon]) for one in series[first] if one.epsilon in others]
        name = f"{first} over {second}"
        ends = [_gap(one, other, runs, error) for one, other in both]
        curves.append(_curve(name, [one for one, _ in both], ends))
        one, other = map(figures.without_noise, both[0])
        limit, _, _ = _gap(one, other, runs, error)
        xs = [both[0][0].epsilon, both[-1][0].epsilon]
        curves.append(
            Curve(f"{name}, no noise", xs, [limit, limit], role="closed-form", group=name)
        )
    records = figures.RECORDS[series[pairs[0][0]][0].data]
    pairs_run = [(some[0].k, some[0].size) for some in series.values()]
    settled = max(figures.settled_from(pair, records) for pair in pairs_run)
    return Plot(
        f"{data}: gaps between the curves, paired by seed",
        f"Above 0 the first is better. Dotted: without noise. From epsilon {settled:.0f} on a "
        "whole run differs from one without noise with a chance below 0.0001 (union bound), so "
        "that no order changes beyond.",
        "epsilon of each phase",
        "gap, points",
        curves,
        log_x=True,
    )


def _mean(one: SupmlSetting, runs: Accuracies, error: float) -> intervals.IntervalEnds:
    """Return the mean accuracy with its interval, which ends where accuracies do."""
    mean, low, high = intervals.interval(runs[one], error)
    return mean, max(low, 0.0), min(high, 100.0)


def _gap(
    one: SupmlSetting, other: SupmlSetting, runs: Accuracies, error: float
) -> intervals.IntervalEnds:
    """Return the mean paired gap with its interval, likewise."""
    mean, low, high = intervals.paired_gap(one, other, runs, error)
    return mean, max(low, -100.0), min(high, 100.0)


def _curve(
    name: str, settings: Sequence[SupmlSetting], found: Sequence[intervals.IntervalEnds]
) -> Curve:
    mean, low, high = zip(*found, strict=True)
    return Curve(name, [one.epsilon for one in settings], mean, low, high, group=name)


def cost_of_noise(settings: Sequence[SupmlSetting], runs: Accuracies, error: float) -> str:
    """Say what noise in training alone and in the test alone costs, from the four mixes."""
    without, in_training, _, in_test = settings
    words = []
    for name, one in (("training", in_training), ("the test", in_test)):
        _, low, high = _gap(without, one, runs, error)
        words.append(f"in {name} {low:.1f} to {high:.1f}")
    return f"WDBC: points that noise costs: {', '.join(words)}"


def _bars(runs: Accuracies, error: float) -> Plot:
    settings = figures.mixed(figures.WDBC, "rand", (7, 4), 10.0)
    mean, low, high = zip(*(_mean(one, runs, error) for one in settings), strict=True)
    names = [f"{one.train}/{one.test}" for one in settings]
    return Plot(
        cost_of_noise(settings, runs, error),
        "DR.Rand (7,4), epsilon 10, training/test; WA is without noise, and without privacy.",
        "training/test",
        "accuracy, %",
        [Curve("accuracy", names, mean, low, high)],
        kind="bar",
    )
