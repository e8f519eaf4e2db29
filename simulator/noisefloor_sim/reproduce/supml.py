"""What the SUP.ML paper prints, and how each figure can be read.

Where the text leaves something open, every reading is run and named. Common to all: ranges from
the data (min and max of all records), the selection made once from all records, epsilon for each
phase by itself, ten folds, scored on true labels, and each printed number taken for one run.
"""

from functools import partial

from noisefloor_sim.reproduce.settings import Setting
from noisefloor_sim.reproduce.verdicts import Crossing, Gap, Item, Number

WDBC, IONOSPHERE = "wdbc", "ionosphere"
WDBC_EPSILONS = (10.0, 15.0, 21.4, 25.0, 30.0, 50.0)
IONOSPHERE_EPSILONS = (10.0, 13.0, 15.0, 20.0, 30.0, 36.0, 40.0, 50.0)
WDBC_PAIRS = ((5, 2), (6, 3), (7, 4))
IONOSPHERE_PAIRS = ((2, 3), (4, 4), (6, 5))
MIXES = (("WA", "WA"), ("WALDP", "WA"), ("WALDP", "WALDP"), ("WA", "WALDP"))
MIX_EPSILONS = (10.0, 25.0, 40.0, 50.0)


def setting(data: str, select: str, k: int, size: int, epsilon: float, **rest: object) -> Setting:
    """Return a setting by what the paper varies."""
    return Setting(data, select, k, size, epsilon, **rest)  # type: ignore[arg-type]  # by name


def mixed(data: str, select: str, pair: tuple[int, int], epsilon: float) -> list[Setting]:
    """Return the four combinations of what training and test records are sent as."""
    return [
        setting(data, select, *pair, 0.0 if mix == ("WA", "WA") else epsilon, train=a, test=b)
        for mix in MIXES
        for a, b in [mix]
    ]


def piecewise_readings(data: str) -> tuple[Number, ...]:
    """Return the readings of PM/PM at epsilon 50."""
    pm = partial(Setting, data, epsilon=50.0, train="PM", test="PM")
    drawn = partial(Setting, data, epsilon=50.0, train="PM-sampled", test="PM-sampled")
    return (
        Number("all attributes and the label by PM, eps/m each", pm()),
        Number("the same, label by randomised response", pm(label="response")),
        Number("all attributes, label as it is", pm(label="plain")),
        Number("eps/2.5 coordinates of each record, the label one of them", drawn()),
        Number("the same, label as it is", drawn(label="plain")),
        Number("K = 2 random attributes", pm(select="rand", k=2)),
    )


def _curve(data: str, pair: tuple[int, int], epsilons: tuple[float, ...]) -> tuple[Setting, ...]:
    """Return random attributes over a range of epsilons."""
    return tuple(setting(data, "rand", *pair, epsilon) for epsilon in epsilons)


def _numbers() -> list[Item]:
    wa = partial(setting, WDBC, "wa", 2, 2)
    raw = partial(Setting, train="raw", test="raw")
    return [
        Item("raw-wdbc", WDBC, "raw accuracy", "98.04 %", 98.04, (Number("min-max", raw(WDBC)),)),
        Item(
            "raw-ionosphere", IONOSPHERE, "raw accuracy", "95.71 %", 95.71,
            (Number("min-max", raw(IONOSPHERE)),),
        ),
        Item(
            "wa-10-wdbc", WDBC, "DR.WA, WALDP/WALDP, K = L = 2, eps 10", "90.29 %", 90.29,
            (
                Number("correlation, eps in each phase", wa(10.0)),
                Number("mean product, eps in each phase", wa(10.0, form="prod")),
                Number("cosine, eps in each phase", wa(10.0, form="cosine")),
                Number("correlation, eps/2 in each phase", wa(5.0)),
                Number("correlation, eps/K for each value", wa(15.0)),
            ),
        ),
        Item(
            "loss-50-ionosphere", IONOSPHERE, "WALDP/WALDP at eps 50 (4.17 points below raw)",
            "91.54 %", 91.54,
            (Number("DR.Rand (6,5)", setting(IONOSPHERE, "rand", 6, 5, 50.0)),),
        ),
        Item(
            "pm-wdbc", WDBC, "PM/PM, most for eps < 50", "84.77 %", 84.77,
            piecewise_readings(WDBC),
        ),
        Item(
            "pm-ionosphere", IONOSPHERE, "PM/PM at eps 50", "65 %", 65.0,
            piecewise_readings(IONOSPHERE),
        ),
    ]  # fmt: skip


def _both(
    name: str, earlier: tuple[Setting, ...], later: tuple[Setting, ...]
) -> tuple[Crossing, ...]:
    """Return a crossing as one of means, and as one of a single run: the paper does not say."""
    return (
        Crossing(f"{name}, means over seeds", earlier, later),
        Crossing(f"{name}, one run", earlier, later, single=True),
    )


def _crossings() -> list[Item]:
    def w(pair: tuple[int, int]) -> tuple[Setting, ...]:
        return _curve(WDBC, pair, (15.0, 21.4, 25.0, 30.0))

    def early(pair: tuple[int, int]) -> tuple[Setting, ...]:
        return _curve(IONOSPHERE, pair, (10.0, 13.0, 15.0, 20.0))

    def late(pair: tuple[int, int]) -> tuple[Setting, ...]:
        return _curve(IONOSPHERE, pair, (20.0, 30.0, 36.0, 40.0))

    return [
        Item(
            "cross-wdbc", WDBC, "DR.Rand: (7,4) is best above eps", "21.4", 21.4,
            _both("(7,4) above (6,3)", w((6, 3)), w((7, 4))),
        ),
        Item(
            "cross-13-ionosphere", IONOSPHERE, "DR.Rand: (2,3) is best below eps", "13", 13.0,
            _both("(4,4) above (2,3)", early((2, 3)), early((4, 4))),
        ),
        Item(
            "cross-36-ionosphere", IONOSPHERE, "DR.Rand: (6,5) is best above eps", "36", 36.0,
            _both("(6,5) above (4,4)", late((4, 4)), late((6, 5))),
        ),
    ]  # fmt: skip


def _orders() -> list[Item]:
    w, i = partial(setting, WDBC), partial(setting, IONOSPHERE)
    pm = partial(Setting, WDBC, train="PM", test="PM")
    best, only_train, both, only_test = mixed(WDBC, "rand", (7, 4), 10.0)
    _, i_train, i_both, i_test = mixed(IONOSPHERE, "wa", (2, 2), 10.0)
    tests = [mixed(WDBC, "rand", (7, 4), epsilon)[3] for epsilon in MIX_EPSILONS]
    return [
        Item(
            "small-first-wdbc", WDBC, "small (K,L) is best at small eps, DR.Rand at 10", "order",
            0.0, (Gap("(5,2) above (7,4)", w("rand", 5, 2, 10.0), w("rand", 7, 4, 10.0)),),
        ),
        Item(
            "wa-over-rand-wdbc", WDBC, "DR.WA above DR.Rand", "order", 0.0,
            (
                Gap("eps 10: (2,2) and (5,2)", w("wa", 2, 2, 10.0), w("rand", 5, 2, 10.0)),
                Gap("eps 50: (4,4) and (7,4)", w("wa", 4, 4, 50.0), w("rand", 7, 4, 50.0)),
            ),
        ),
        Item(
            "rand-over-pm-wdbc", WDBC, "DR.Rand at least as good as DR.PM", "order", 0.0,
            (
                Gap("eps 10: (6,3) and (4,4), DR.PM free",
                    w("rand", 6, 3, 10.0), w("pm", 4, 4, 10.0)),
                Gap("eps 10: (6,3) and (4,4), DR.PM and training eps/2 each",
                    w("rand", 6, 3, 10.0), w("pm", 4, 4, 5.0)),
                Gap("eps 50: (7,4) and (4,4), DR.PM free",
                    w("rand", 7, 4, 50.0), w("pm", 4, 4, 50.0)),
            ),
            or_equal=True,
        ),
        Item(
            "wa-first-ionosphere", IONOSPHERE, "DR.WA above DR.Rand for eps < 25", "order", 0.0,
            (
                Gap("eps 10: (2,2) and (2,3)", i("wa", 2, 2, 10.0), i("rand", 2, 3, 10.0)),
                Gap("eps 20: (4,2) and (4,4)", i("wa", 4, 2, 20.0), i("rand", 4, 4, 20.0)),
            ),
        ),
        Item(
            "rand-last-ionosphere", IONOSPHERE, "DR.Rand above DR.WA for eps > 47", "order", 0.0,
            (Gap("eps 50: (6,5) and (4,2)", i("rand", 6, 5, 50.0), i("wa", 4, 2, 50.0)),),
        ),
        Item(
            "over-pm-wdbc", WDBC, "WALDP above PM at every eps", "order", 0.0,
            (
                Gap("eps 50: DR.WA (2,2), PM on all attributes",
                    w("wa", 2, 2, 50.0), pm(epsilon=50.0)),
                Gap("eps 50: same 5 random attributes, L = 2",
                    w("rand", 5, 2, 50.0), pm(select="rand", k=5, epsilon=50.0)),
                Gap("eps 25: same 5 random attributes, L = 2",
                    w("rand", 5, 2, 25.0), pm(select="rand", k=5, epsilon=25.0)),
                Gap("eps 50: DR.PM (4,4), PM with DR.PM and K = 5",
                    w("pm", 4, 4, 50.0), pm(select="pm", k=5, epsilon=50.0)),
            ),
        ),
        Item(
            "mix-bound-wdbc", WDBC, "WA/WA above WA/WALDP by at most", "3.57 points", 3.57,
            tuple(Gap(f"eps {one.epsilon:g}, DR.Rand (7,4)", best, one) for one in tests),
            at_most=True,
        ),
        Item(
            "mix-best-wdbc", WDBC, "WA/WA is best, DR.Rand (7,4), eps 10", "order", 0.0,
            (
                Gap("above WALDP/WA", best, only_train),
                Gap("above WALDP/WALDP", best, both),
                Gap("above WA/WALDP", best, only_test),
            ),
        ),
        Item(
            "mix-train-wdbc", WDBC, "noise in training matters less than noise in the test",
            "order", 0.0, (Gap("eps 10: WALDP/WA above WA/WALDP", only_train, only_test),),
        ),
        Item(
            "mix-ionosphere", IONOSPHERE, "WALDP/WA is best of the protected for eps < 20",
            "order", 0.0,
            (
                Gap("eps 10, DR.WA (2,2): above WALDP/WALDP", i_train, i_both),
                Gap("eps 10, DR.WA (2,2): above WA/WALDP", i_train, i_test),
            ),
        ),
    ]  # fmt: skip


def items() -> list[Item]:
    """Return every printed figure that is judged."""
    return [*_numbers(), *_crossings(), *_orders()]


def extra_settings() -> list[Setting]:
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
