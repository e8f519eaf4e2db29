"""What the SUP.ML paper prints, and how each figure can be read.

Where the text leaves something open, every reading is run and named. Common to all: ranges from
the data (min and max of all records), the selection made once from all records, epsilon for each
phase by itself, ten folds, scored on true labels, and each printed number taken for one run.
"""

from functools import partial

from noisefloor_sim.papers.supml_runs import SupmlSetting
from noisefloor_sim.papers.verdicts import (
    AccuracyReading,
    CrossingReading,
    GapReading,
    PrintedFigure,
)

WDBC, IONOSPHERE = "wdbc", "ionosphere"
WDBC_EPSILONS = (10.0, 15.0, 21.4, 25.0, 30.0, 50.0)
IONOSPHERE_EPSILONS = (10.0, 13.0, 15.0, 20.0, 30.0, 36.0, 40.0, 50.0)
WDBC_PAIRS = ((5, 2), (6, 3), (7, 4))
IONOSPHERE_PAIRS = ((2, 3), (4, 4), (6, 5))
MIXES = (("WA", "WA"), ("WALDP", "WA"), ("WALDP", "WALDP"), ("WA", "WALDP"))
MIX_EPSILONS = (10.0, 25.0, 40.0, 50.0)


def setting(
    data: str, select: str, k: int, size: int, epsilon: float, **rest: object
) -> SupmlSetting:
    """Return a setting by what the paper varies."""
    return SupmlSetting(data, select, k, size, epsilon, **rest)  # type: ignore[arg-type]  # by name


def mixed(data: str, select: str, pair: tuple[int, int], epsilon: float) -> list[SupmlSetting]:
    """Return the four combinations of what training and test records are sent as."""
    return [
        setting(data, select, *pair, 0.0 if mix == ("WA", "WA") else epsilon, train=a, test=b)
        for mix in MIXES
        for a, b in [mix]
    ]


def piecewise_readings(data: str) -> tuple[AccuracyReading, ...]:
    """Return the readings of PM/PM at epsilon 50."""
    pm = partial(SupmlSetting, data, epsilon=50.0, train="PM", test="PM")
    drawn = partial(SupmlSetting, data, epsilon=50.0, train="PM-sampled", test="PM-sampled")
    return (
        AccuracyReading("all attributes and the label by PM, eps/m each", pm()),
        AccuracyReading("the same, label by randomised response", pm(label="response")),
        AccuracyReading("all attributes, label as it is", pm(label="plain")),
        AccuracyReading("eps/2.5 coordinates of each record, the label one of them", drawn()),
        AccuracyReading("the same, label as it is", drawn(label="plain")),
        AccuracyReading("K = 2 random attributes", pm(select="rand", k=2)),
    )


def _curve(
    data: str, pair: tuple[int, int], epsilons: tuple[float, ...]
) -> tuple[SupmlSetting, ...]:
    """Return random attributes over a range of epsilons."""
    return tuple(setting(data, "rand", *pair, epsilon) for epsilon in epsilons)


def _numbers() -> list[PrintedFigure]:
    wa = partial(setting, WDBC, "wa", 2, 2)
    raw = partial(SupmlSetting, train="raw", test="raw")
    return [
        PrintedFigure("raw-wdbc", WDBC, "raw accuracy", "98.04 %", 98.04,
            (AccuracyReading("min-max", raw(WDBC)),),
        ),
        PrintedFigure(
            "raw-ionosphere", IONOSPHERE, "raw accuracy", "95.71 %", 95.71,
            (AccuracyReading("min-max", raw(IONOSPHERE)),),
        ),
        PrintedFigure(
            "wa-10-wdbc", WDBC, "DR.WA, WALDP/WALDP, K = L = 2, eps 10", "90.29 %", 90.29,
            (
                AccuracyReading("correlation, eps in each phase", wa(10.0)),
                AccuracyReading("mean product, eps in each phase", wa(10.0, form="prod")),
                AccuracyReading("cosine, eps in each phase", wa(10.0, form="cosine")),
                AccuracyReading("correlation, eps/2 in each phase", wa(5.0)),
                AccuracyReading("correlation, eps/K for each value", wa(15.0)),
            ),
        ),
        PrintedFigure(
            "loss-50-ionosphere", IONOSPHERE, "WALDP/WALDP at eps 50 (4.17 points below raw)",
            "91.54 %", 91.54,
            (AccuracyReading("DR.Rand (6,5)", setting(IONOSPHERE, "rand", 6, 5, 50.0)),),
        ),
        PrintedFigure(
            "pm-wdbc", WDBC, "PM/PM, most for eps < 50", "84.77 %", 84.77,
            piecewise_readings(WDBC),
        ),
        PrintedFigure(
            "pm-ionosphere", IONOSPHERE, "PM/PM at eps 50", "65 %", 65.0,
            piecewise_readings(IONOSPHERE),
        ),
    ]  # fmt: skip


def _both(
    name: str, earlier: tuple[SupmlSetting, ...], later: tuple[SupmlSetting, ...]
) -> tuple[CrossingReading, ...]:
    """Return a crossing of means over all seeds, and over ten: the paper does not say how many."""
    return (
        CrossingReading(f"{name}, mean of all seeds", earlier, later),
        CrossingReading(f"{name}, mean of ten runs", earlier, later, averaged=10),
    )


def _crossings() -> list[PrintedFigure]:
    def w(pair: tuple[int, int]) -> tuple[SupmlSetting, ...]:
        return _curve(WDBC, pair, (15.0, 21.4, 25.0, 30.0))

    def early(pair: tuple[int, int]) -> tuple[SupmlSetting, ...]:
        return _curve(IONOSPHERE, pair, (10.0, 13.0, 15.0, 20.0))

    def late(pair: tuple[int, int]) -> tuple[SupmlSetting, ...]:
        return _curve(IONOSPHERE, pair, (20.0, 30.0, 36.0, 40.0))

    return [
        PrintedFigure(
            "cross-wdbc", WDBC, "DR.Rand: (7,4) is best above eps", "21.4", 21.4,
            _both("(7,4) above (6,3)", w((6, 3)), w((7, 4))),
        ),
        PrintedFigure(
            "cross-13-ionosphere", IONOSPHERE, "DR.Rand: (2,3) is best below eps", "13", 13.0,
            _both("(4,4) above (2,3)", early((2, 3)), early((4, 4))),
        ),
        PrintedFigure(
            "cross-36-ionosphere", IONOSPHERE, "DR.Rand: (6,5) is best above eps", "36", 36.0,
            _both("(6,5) above (4,4)", late((4, 4)), late((6, 5))),
        ),
    ]  # fmt: skip


def _orders() -> list[PrintedFigure]:
    w, i = partial(setting, WDBC), partial(setting, IONOSPHERE)
    pm = partial(SupmlSetting, WDBC, train="PM", test="PM")
    best, only_train, both, only_test = mixed(WDBC, "rand", (7, 4), 10.0)
    _, i_train, i_both, i_test = mixed(IONOSPHERE, "wa", (2, 2), 10.0)
    tests = [mixed(WDBC, "rand", (7, 4), epsilon)[3] for epsilon in MIX_EPSILONS]
    return [
        PrintedFigure(
            "small-first-wdbc", WDBC, "small (K,L) is best at small eps, DR.Rand at 10", "order",
            0.0, (GapReading("(5,2) above (7,4)", w("rand", 5, 2, 10.0), w("rand", 7, 4, 10.0)),),
        ),
        PrintedFigure(
            "wa-over-rand-wdbc", WDBC, "DR.WA above DR.Rand", "order", 0.0,
            (
                GapReading("eps 10: (2,2) and (5,2)", w("wa", 2, 2, 10.0), w("rand", 5, 2, 10.0)),
                GapReading("eps 50: (4,4) and (7,4)", w("wa", 4, 4, 50.0), w("rand", 7, 4, 50.0)),
            ),
        ),
        PrintedFigure(
            "rand-over-pm-wdbc", WDBC, "DR.Rand at least as good as DR.PM", "order", 0.0,
            (
                GapReading("eps 10: (6,3) and (4,4), DR.PM free",
                    w("rand", 6, 3, 10.0), w("pm", 4, 4, 10.0)),
                GapReading("eps 10: (6,3) and (4,4), DR.PM and training eps/2 each",
                    w("rand", 6, 3, 10.0), w("pm", 4, 4, 5.0)),
                GapReading("eps 50: (7,4) and (4,4), DR.PM free",
                    w("rand", 7, 4, 50.0), w("pm", 4, 4, 50.0)),
            ),
            or_equal=True,
        ),
        PrintedFigure(
            "wa-first-ionosphere", IONOSPHERE, "DR.WA above DR.Rand for eps < 25", "order", 0.0,
            (
                GapReading("eps 10: (2,2) and (2,3)", i("wa", 2, 2, 10.0), i("rand", 2, 3, 10.0)),
                GapReading("eps 20: (4,2) and (4,4)", i("wa", 4, 2, 20.0), i("rand", 4, 4, 20.0)),
            ),
        ),
        PrintedFigure(
            "rand-last-ionosphere", IONOSPHERE, "DR.Rand above DR.WA for eps > 47", "order", 0.0,
            (GapReading("eps 50: (6,5) and (4,2)", i("rand", 6, 5, 50.0), i("wa", 4, 2, 50.0)),),
        ),
        PrintedFigure(
            "over-pm-wdbc", WDBC, "WALDP above PM at every eps", "order", 0.0,
            (
                GapReading("eps 50: DR.WA (2,2), PM on all attributes",
                    w("wa", 2, 2, 50.0), pm(epsilon=50.0)),
                GapReading("eps 50: same 5 random attributes, L = 2",
                    w("rand", 5, 2, 50.0), pm(select="rand", k=5, epsilon=50.0)),
                GapReading("eps 25: same 5 random attributes, L = 2",
                    w("rand", 5, 2, 25.0), pm(select="rand", k=5, epsilon=25.0)),
                GapReading("eps 50: DR.PM (4,4), PM with DR.PM and K = 5",
                    w("pm", 4, 4, 50.0), pm(select="pm", k=5, epsilon=50.0)),
            ),
        ),
        PrintedFigure(
            "mix-bound-wdbc", WDBC, "WA/WA above WA/WALDP by at most", "3.57 points", 3.57,
            tuple(GapReading(f"eps {one.epsilon:g}, DR.Rand (7,4)", best, one) for one in tests),
            at_most=True,
        ),
        PrintedFigure(
            "mix-best-wdbc", WDBC, "WA/WA is best, DR.Rand (7,4), eps 10", "order", 0.0,
            (
                GapReading("above WALDP/WA", best, only_train),
                GapReading("above WALDP/WALDP", best, both),
                GapReading("above WA/WALDP", best, only_test),
            ),
        ),
        PrintedFigure(
            "mix-train-wdbc", WDBC, "noise in training matters less than noise in the test",
            "order", 0.0, (GapReading("eps 10: WALDP/WA above WA/WALDP", only_train, only_test),),
        ),
        PrintedFigure(
            "mix-ionosphere", IONOSPHERE, "WALDP/WA is best of the protected for eps < 20",
            "order", 0.0,
            (
                GapReading("eps 10, DR.WA (2,2): above WALDP/WALDP", i_train, i_both),
                GapReading("eps 10, DR.WA (2,2): above WA/WALDP", i_train, i_test),
            ),
        ),
    ]  # fmt: skip


def items() -> list[PrintedFigure]:
    """Return every printed figure that is judged."""
    return [*_numbers(), *_crossings(), *_orders()]


def extra_settings() -> list[SupmlSetting]:
    """Return what is drawn besides: curves that no printed figure needs."""
    more = [
        setting(WDBC, "wa", *pair, eps)
        for pair in ((2, 2), (4, 4))
        for eps in (10.0, 20.0, 25.0, 50.0)
    ]
    more += [one for pair in WDBC_PAIRS for one in _curve(WDBC, pair, WDBC_EPSILONS)]
    more += [
        one for pair in IONOSPHERE_PAIRS for one in _curve(IONOSPHERE, pair, IONOSPHERE_EPSILONS)
    ]
    more += [setting(WDBC, "pm", *pair, eps) for pair in ((2, 2), (4, 4)) for eps in (10.0, 50.0)]
    more += [setting(WDBC, "pm", 4, 4, 25.0)]
    more += mixed(IONOSPHERE, "wa", (2, 2), 10.0)
    return more
