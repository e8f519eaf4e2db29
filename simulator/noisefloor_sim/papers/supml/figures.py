"""What the SUP.ML paper prints, as claims with tests.

Every claim is judged first of the algorithms as printed, then of their corrected classes and
responses; readings that the text leaves open stand apart. Common to all: ranges from the data (min
and max of all records), the selection made once from all records, epsilon for each phase by
itself, ten folds, scored on true labels, and each printed number taken for one run.

Where the paper compares selections or prints an order without its K and L, each has the (K, L)
that the paper shows for it there. Orders over a range of epsilon are tested at epsilons of that
range, and, where it has no upper end, without noise: that is their limit.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from noisefloor_sim.papers.supml.runs import SupmlSetting
from noisefloor_sim.papers.verdicts import (
    ComputedTest,
    GapTest,
    MeanTest,
    PrintedClaim,
    RunTest,
    Test,
    Variants,
)

WDBC, IONOSPHERE, BOTH = "wdbc", "ionosphere", "both"
WDBC_PAIRS = ((5, 2), (6, 3), (7, 4))
IONOSPHERE_PAIRS = ((2, 3), (4, 4), (6, 5))
LIMIT = math.inf
"""An epsilon: no value is changed any more."""

RECORDS = {WDBC: 569, IONOSPHERE: 351}

HARDLY = 3.57
"""Points that "hardly matter": the largest loss that the paper itself calls small."""

AS_GOOD = 1.0
"""Points by which "at least as good" and "best" may be missed."""

Pair = tuple[int, int]


def setting(data: str, select: str, pair: Pair, epsilon: float, **rest: object) -> SupmlSetting:
    """Return a setting by what the paper varies; without noise if epsilon is the limit."""
    one = SupmlSetting(data, select, *pair, epsilon, **rest)  # type: ignore[arg-type]  # by name
    return without_noise(one) if math.isinf(epsilon) else one


def without_noise(one: SupmlSetting) -> SupmlSetting:
    """Return the limit of a setting for large epsilon."""
    return replace(one, epsilon=0.0, train="WA", test="WA")


def at_epsilon(one: SupmlSetting, epsilon: float) -> SupmlSetting:
    """Return a setting at another epsilon."""
    return replace(one, epsilon=epsilon)


def mixed(data: str, select: str, pair: Pair, epsilon: float) -> list[SupmlSetting]:
    """Return the four combinations of what training and test records are sent as."""
    make = partial(setting, data, select, pair)
    return [
        make(LIMIT),
        make(epsilon, test="WA"),
        make(epsilon),
        make(epsilon, train="WA"),
    ]


def above(
    data: str,
    first: tuple[str, Pair],
    second: tuple[str, Pair],
    epsilons: Iterable[float],
    least: float = 0.0,
) -> list[Test]:
    """Return the tests that one selection with its (K, L) is above another."""
    return [
        GapTest(
            f"{_epsilon(epsilon)}: {_named(*first)} over {_named(*second)}",
            setting(data, *first, epsilon),
            setting(data, *second, epsilon),
            least,
        )
        for epsilon in epsilons
    ]


def _epsilon(epsilon: float) -> str:
    return "no noise" if math.isinf(epsilon) else f"eps {epsilon:g}"


def _named(select: str, pair: Pair) -> str:
    names = {"rand": "DR.Rand", "wa": "DR.WA", "pm": "DR.PM"}
    return f"{names[select]} ({pair[0]},{pair[1]})"


def piecewise(data: str, epsilon: float, **rest: object) -> SupmlSetting:
    """Return PM/PM, on all attributes unless said otherwise."""
    level = "PM-sampled" if rest.pop("is_sampled", False) else "PM"
    return SupmlSetting(data, epsilon=epsilon, train=level, test=level, **rest)  # type: ignore[arg-type]  # by name


def _claim(
    key: str,
    data: str,
    what: str,
    printed: str,
    *tests: Test | Sequence[Test],
    is_noisy: bool = False,
) -> PrintedClaim:
    flat: list[Test] = []
    for one in tests:
        flat += [one] if isinstance(one, Test) else one
    return PrintedClaim(key, data, what, printed, tuple(flat), is_noisy)


def _numbers() -> list[PrintedClaim]:
    def raw(data: str) -> SupmlSetting:
        return SupmlSetting(data, train="raw", test="raw")

    pm = "all attributes and the label, eps/m each"
    wa = setting(WDBC, "wa", (2, 2), 10.0)
    rand = setting(IONOSPHERE, "rand", (6, 5), 50.0)
    small = setting(WDBC, "rand", (5, 2), 10.0)
    middle = round((62.74 + 98.04) / 2, 2)
    return [
        _claim("raw-wdbc", WDBC, "raw accuracy", "98.04 %",
            RunTest("min-max", raw(WDBC), 98.04)),
        _claim("raw-ionosphere", IONOSPHERE, "raw accuracy", "95.71 %",
            RunTest("min-max", raw(IONOSPHERE), 95.71)),
        _claim("wa-10-wdbc", WDBC, "DR.WA, WALDP/WALDP, K = L = 2, eps 10", "90.29 %",
            RunTest("eps in each phase", wa, 90.29)),
        _claim("loss-50-ionosphere", IONOSPHERE, "WALDP/WALDP at eps 50 is 4.17 points below raw",
            "91.54 %", RunTest("DR.Rand (6,5)", rand, 91.54)),
        _claim("pm-wdbc", WDBC, "PM/PM, most for eps < 50", "84.77 %",
            RunTest(f"eps 50: {pm}", piecewise(WDBC, 50.0), 84.77)),
        _claim("pm-ionosphere", IONOSPHERE, "PM/PM at eps 50", "65 %",
            RunTest(pm, piecewise(IONOSPHERE, 50.0), 65.0)),
        _claim("small-high-wdbc", WDBC, "DR.Rand (5,2) keeps a high accuracy at small eps", "high",
            MeanTest("eps 10: nearer to raw than to the larger class", small, middle)),
    ]  # fmt: skip


def _pairs() -> list[PrintedClaim]:
    """Return which (K, L) is best where."""
    w = partial(above, WDBC)
    i = partial(above, IONOSPHERE)
    (w5, w6, w7), (i2, i4, i6) = (
        [("rand", pair) for pair in pairs] for pairs in (WDBC_PAIRS, IONOSPHERE_PAIRS)
    )
    late_w, late_i = (25.0, 30.0, 50.0, 100.0, LIMIT), (40.0, 50.0, 100.0, LIMIT)
    return [
        _claim("cross-wdbc", WDBC, "DR.Rand: (7,4) is best above eps 21.4", "order",
            w(w7, w6, late_w), w(w7, w5, late_w), is_noisy=True),
        _claim("small-first-wdbc", WDBC, "DR.Rand: small (K,L) is better at small eps", "order",
            w(w5, w7, (10.0,)), w(w6, w7, (10.0, 15.0)), is_noisy=True),
        _claim("cross-13-ionosphere", IONOSPHERE, "DR.Rand: (2,3) is best below eps 13", "order",
            i(i2, i4, (10.0,)), i(i2, i6, (10.0,)), is_noisy=True),
        _claim("between-ionosphere", IONOSPHERE, "DR.Rand: (4,4) is best between eps 13 and 36",
            "order", i(i4, i2, (15.0, 20.0, 30.0)), i(i4, i6, (15.0, 20.0, 30.0)), is_noisy=True),
        _claim("cross-36-ionosphere", IONOSPHERE, "DR.Rand: (6,5) is best above eps 36", "order",
            i(i6, i4, late_i), i(i6, i2, late_i), is_noisy=True),
        *(_maxima(*one) for one in (
            (WDBC, "wa", (2, 2), (4, 4)),
            (WDBC, "pm", (2, 2), (4, 4)),
            (IONOSPHERE, "wa", (2, 2), (4, 2)),
            (IONOSPHERE, "pm", (2, 2), (4, 2)),
        )),
        _claim("maximum-mix-wdbc", WDBC, "DR.Rand, WA/WA: (7,2) is the best (K,L)", "maximum",
            [one for pair in WDBC_PAIRS for one in w(
                ("rand", (7, 2)), ("rand", pair), (LIMIT,), -AS_GOOD)], is_noisy=True),
    ]  # fmt: skip


def _maxima(data: str, select: str, small: Pair, large: Pair) -> PrintedClaim:
    """Return the claim that one (K, L) is best at small epsilon, and another at large."""
    corners = [(k, size) for k in (2, 4) for size in (2, 4)]
    tests = [
        one
        for epsilon, best in ((10.0, small), (50.0, large))
        for other in corners
        if other != best
        for one in above(data, (select, best), (select, other), (epsilon,), -AS_GOOD)
    ]
    name = _named(select, small)
    what = f"{name} is the maximum at small eps, ({large[0]},{large[1]}) at large"
    return _claim(f"maxima-{select}-{data}", data, what, "maxima", tests)


def _selections() -> list[PrintedClaim]:
    """Return which selection is better."""
    w, i = partial(above, WDBC), partial(above, IONOSPHERE)
    w2, w4, p2, p4 = ("wa", (2, 2)), ("wa", (4, 4)), ("pm", (2, 2)), ("pm", (4, 4))
    r5, r6, r7 = ("rand", (5, 2)), ("rand", (6, 3)), ("rand", (7, 4))
    wa_rand = [*w(w2, r5, (10.0,)), *w(w2, r6, (10.0,)), *w(w4, r7, (25.0, 50.0))]
    early = [
        *i(("wa", (2, 2)), ("rand", (2, 3)), (10.0,)),
        *i(("wa", (4, 2)), ("rand", (4, 4)), (20.0,)),
    ]
    last = (("rand", (6, 5)), ("wa", (4, 2)))
    return [
        _claim("wa-over-rand-wdbc", WDBC, "DR.WA above DR.Rand", "order", wa_rand),
        _claim("rand-over-pm-wdbc", WDBC, "DR.Rand at least as good as DR.PM", "order",
            w(r6, p2, (10.0,), -AS_GOOD), w(r7, p4, (25.0, 50.0), -AS_GOOD)),
        _claim("wa-over-pm-wdbc", WDBC, "DR.WA above DR.PM", "order",
            w(w2, p2, (10.0,)), w(w2, p4, (10.0,)), w(w4, p4, (25.0, 50.0))),
        _claim("wa-first-ionosphere", IONOSPHERE, "DR.WA above DR.Rand for eps < 25", "order",
            early),
        _claim("rand-last-ionosphere", IONOSPHERE, "DR.Rand above DR.WA for eps > 47", "order",
            i(*last, (50.0,))),
        _claim("wa-always", BOTH, "DR.WA always above DR.Rand (section 5.2)", "always",
            _labelled("WDBC", wa_rand), _labelled("Ionosphere", early),
            _labelled("Ionosphere", i(*last[::-1], (50.0,)))),
    ]  # fmt: skip


def _labelled(title: str, tests: Iterable[Test]) -> list[Test]:
    return [replace(one, name=f"{title}, {one.name}") for one in tests]


def _baseline() -> list[PrintedClaim]:
    """Return that SUP.ML is better than PM."""

    def over(data: str, best: tuple[str, Pair], epsilon: float) -> GapTest:
        name = f"{_epsilon(epsilon)}: {_named(*best)} over PM on all attributes"
        return GapTest(name, setting(data, *best, epsilon), piecewise(data, epsilon))

    wdbc = ((("wa", (2, 2)), 10.0), (("wa", (4, 4)), 25.0), (("wa", (4, 4)), 50.0))
    ionosphere = ((("wa", (2, 2)), 10.0), (("wa", (4, 2)), 25.0), (("rand", (6, 5)), 50.0))
    return [
        _claim("over-pm-wdbc", WDBC, "WALDP above PM at every eps", "always",
            [over(WDBC, *one) for one in wdbc]),
        _claim("over-pm-ionosphere", IONOSPHERE, "WALDP above PM at every eps", "always",
            [over(IONOSPHERE, *one) for one in ionosphere]),
    ]  # fmt: skip


def _mixes() -> list[PrintedClaim]:
    """Return what noise in training and in the test costs."""
    w = {e: mixed(WDBC, "rand", (7, 4), e) for e in (10.0, 25.0, 40.0, 50.0)}
    i = {e: mixed(IONOSPHERE, "wa", (2, 2), e) for e in (10.0, 15.0, 25.0, 50.0)}
    plain, in_training, both, in_test = range(4)

    def gaps(
        mixes: dict[float, list[SupmlSetting]],
        first: int,
        second: int,
        epsilons: Iterable[float],
        least: float = 0.0,
        most: float = math.inf,
    ) -> list[Test]:
        return [
            GapTest(f"{_epsilon(e)}: {_mix(first)} over {_mix(second)}",
                mixes[e][first], mixes[e][second], least, most)
            for e in epsilons
        ]  # fmt: skip

    def best(mixes: dict[float, list[SupmlSetting]], epsilons: Iterable[float]) -> list[Test]:
        others = (in_training, both, in_test)
        return [one for it in others for one in gaps(mixes, plain, it, epsilons, -AS_GOOD)]

    return [
        _claim("mix-bound-wdbc", WDBC, "WA/WA above WA/WALDP by at most 3.57 points", "3.57",
            gaps(w, plain, in_test, w, -math.inf, HARDLY)),
        _claim("mix-best-wdbc", WDBC, "WA/WA is best, DR.Rand (7,4)", "order",
            best(w, (10.0, 25.0, 50.0))),
        _claim("mix-best-ionosphere", IONOSPHERE, "WA/WA is best, DR.WA (2,2)", "order",
            best(i, (10.0, 25.0, 50.0))),
        _claim("mix-train-wdbc", WDBC, "noise in training matters little, DR.Rand (7,4)", "little",
            gaps(w, plain, in_training, (10.0, 25.0, 50.0), -math.inf, HARDLY)),
        _claim("mix-order-wdbc", WDBC, "noise in training matters less than noise in the test",
            "order", gaps(w, in_training, in_test, (10.0, 25.0))),
        _claim("mix-test-wdbc", WDBC,
            "with protected training data the test data hardly matter (section 4.2.4)",
            "hardly", gaps(w, in_training, both, (10.0, 25.0, 50.0), -HARDLY, HARDLY)),
        _claim("mix-ionosphere", IONOSPHERE, "WALDP/WA is best of the protected for eps < 20",
            "order", gaps(i, in_training, both, (10.0, 15.0)),
            gaps(i, in_training, in_test, (10.0, 15.0))),
    ]  # fmt: skip


def _mix(place: int) -> str:
    return ("WA/WA", "WALDP/WA", "WALDP/WALDP", "WA/WALDP")[place]


def printed_claims() -> list[PrintedClaim]:
    """Return every printed claim, of the algorithms as printed."""
    return [*_numbers(), *_pairs(), *_selections(), *_baseline(), *_mixes()]


def _changed(claim: PrintedClaim, change: Callable[[SupmlSetting], SupmlSetting]) -> PrintedClaim:
    """Return a claim about other settings."""

    def one(test: Test) -> Test:
        if isinstance(test, ComputedTest):
            return test
        if isinstance(test, GapTest):
            return replace(test, first=change(test.first), second=change(test.second))
        return replace(test, setting=change(test.setting))

    return replace(claim, tests=tuple(map(one, claim.tests)))


def corrected(one: SupmlSetting) -> SupmlSetting:
    """Return a setting with corrected classes and responses, if it has any."""
    return replace(one, is_printed=False) if one.has_classes else one


def corrected_claims() -> list[PrintedClaim]:
    """Return the claims that corrected classes and responses can change."""
    return [
        _changed(claim, corrected)
        for claim in printed_claims()
        if any(one.has_classes for one in claim.settings())
    ]


def other_readings() -> list[PrintedClaim]:
    """Return claims under readings that the text allows as well, all else as printed."""
    wa = partial(setting, WDBC, "wa", (2, 2))
    forms = (
        ("cosine, eps in each phase", wa(10.0, form="cosine")),
        ("correlation, eps in each phase", wa(10.0, form="corr")),
        ("eps/2 in each phase", wa(5.0)),
        ("eps/K for each value", wa(15.0)),
    )
    sent: tuple[tuple[str, dict[str, object]], ...] = (
        ("label by randomised response", {"label": "response"}),
        ("label as it is", {"label": "plain"}),
        ("eps/2.5 coordinates of each record", {"is_sampled": True}),
        ("the same, label as it is", {"is_sampled": True, "label": "plain"}),
        ("K = 2 random attributes", {"select": "rand", "k": 2}),
    )
    pms = ((WDBC, "PM/PM, most for eps < 50", 84.77), (IONOSPHERE, "PM/PM at eps 50", 65.0))
    same = (
        (WDBC, "rand", (5, 2), (25.0, 50.0)),
        (WDBC, "pm", (4, 4), (25.0, 50.0)),
        (IONOSPHERE, "rand", (6, 5), (50.0,)),
    )
    half = GapTest("eps 10: DR.Rand (6,3) over DR.PM (4,4)", setting(WDBC, "rand", (6, 3), 10.0),
        setting(WDBC, "pm", (4, 4), 5.0), -AS_GOOD)  # fmt: skip
    return [
        *(_claim(f"wa-10-wdbc-{place}", WDBC, f"DR.WA, K = L = 2, eps 10: {name}", "90.29 %",
            RunTest("one run", one, 90.29)) for place, (name, one) in enumerate(forms, 1)),
        *(_claim(f"pm-{data}-{place}", data, f"{what}: {name}", f"{value:g} %",
            RunTest("eps 50", piecewise(data, 50.0, **rest), value))
            for data, what, value in pms for place, (name, rest) in enumerate(sent, 1)),
        *(_claim(f"over-pm-{data}-{select}", data,
            f"WALDP above PM with the same attributes: {_named(select, pair)}", "always",
            [GapTest(_epsilon(e), setting(data, select, pair, e),
                piecewise(data, e, select=select, k=pair[0])) for e in epsilons])
            for data, select, pair, epsilons in same),
        _claim("rand-over-pm-wdbc-half", WDBC,
            "DR.Rand at least as good as DR.PM, if DR.PM and training have eps/2 each", "order",
            half),
    ]  # fmt: skip


def variants() -> Variants:
    """Return all claims: as printed first, corrected and other readings apart."""
    return {
        "As printed": printed_claims(),
        "Corrected classes and responses": corrected_claims(),
        "Other readings": other_readings(),
    }


def settled_from(pair: Pair, records: int, chance: float = 1e-4) -> float:
    """Return the epsilon above which a whole run changes no value but with a small chance.

    A run sends every record ten times, K + 1 values each, and each value is changed with
    probability (L - 1) / (e^(eps / (K + 1)) + L - 1) < (L - 1) e^(-eps / (K + 1)). The sum of
    these bounds the chance of any change, and with it the distance of the expected accuracy from
    that without noise.
    """
    k, size = pair
    return (k + 1) * math.log(10 * records * (k + 1) * (size - 1) / chance)
