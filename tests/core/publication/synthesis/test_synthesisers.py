"""Synthetic tables: what one record changes, what is proved of it, and what is made of it."""

import itertools
import math

import numpy as np
import pytest

from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.synthesis import CellHistogram, LabelHistograms, MarginalTree
from noisefloor.publication.synthesis.record_model import fitted, projected
from noisefloor.randomness import SeededSource
from noisefloor.tables.records import Records
from noisefloor.tables.schema import Bins, Categories, Schema
from statistics_of_tests import FALSE_ALARM, chi_square_p

ADD, SWAP = Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE
SCHEMA = Schema(
    "one row",
    {
        "a": Categories(("x", "y")),
        "b": Bins((0, 1, 2, 5)),
        "c": Categories((3, 4)),
        "label": Categories(("no", "yes")),
    },
)
SIZES = (2, 3, 2, 2)
DOMAIN = list(itertools.product(*(range(size) for size in SIZES)))

Plan = LabelHistograms | CellHistogram | MarginalTree


def cost(epsilon: float, neighbours: Neighbours = ADD, delta: float = 0.0) -> Guarantee:
    return Guarantee(epsilon, neighbours, delta=delta, model=TrustModel.CENTRAL)


def table(rows: list[tuple[int, ...]]) -> Records:
    places = np.array(rows, dtype=np.int64).reshape(-1, 4)
    codes = {name: places[:, at] for at, name in enumerate(SCHEMA.columns)}
    return Records(SCHEMA, codes, codes)


def dependent(count: int, seed: int) -> Records:
    """Return rows whose b hangs on a and the label, and whose c is a."""
    draw = SeededSource(seed, "dependent").generator()
    label = draw.integers(0, 2, count)
    a = (draw.random(count) < 0.3 + 0.4 * label).astype(np.int64)
    b = (a + label + (draw.random(count) < 0.2)) % 3
    rows = np.stack([a, b, np.where(draw.random(count) < 0.9, a, 1 - a), label], axis=1)
    return table([tuple(row) for row in rows.tolist()])


def plans(price: Guarantee) -> list[Plan]:
    return [
        LabelHistograms(SCHEMA, "label", price),
        LabelHistograms(SCHEMA, "label", price, printed=True),
        CellHistogram(SCHEMA, ("a", "b", "label"), price),
        MarginalTree(SCHEMA, "label", price),
    ]


ROWS = [DOMAIN[at] for at in (0, 0, 3, 7, 7, 11, 14, 20, 23)]
NEIGHBOURS = {
    ADD: [[*ROWS, one] for one in DOMAIN] + [ROWS[1:], ROWS[:-1], ROWS[:4] + ROWS[5:]],
    SWAP: [[*ROWS[:place], one, *ROWS[place + 1 :]] for place in (0, 4, 8) for one in DOMAIN],
}


@pytest.mark.parametrize("neighbours", [ADD, SWAP])
@pytest.mark.parametrize("which", range(4))
def test_no_neighbour_passes_the_guarantee(neighbours: Neighbours, which: int) -> None:
    plan = plans(cost(1.0, neighbours))[which]
    assert 1 - 1e-4 <= plan.guarantee.epsilon <= 1.0
    assert plan.guarantee.neighbours is neighbours
    records, worst = table(ROWS), 0.0
    for number in range(2):
        released = plan.release(records, SeededSource(number, "release", which))
        here = plan.log_likelihood(released, records)
        for rows in NEIGHBOURS[neighbours]:
            worst = max(worst, abs(here - plan.log_likelihood(released, table(rows))))
    assert worst <= plan.guarantee.epsilon + 1e-9
    assert worst > 0.3 * plan.guarantee.epsilon  # noise far too large would show here


@pytest.mark.parametrize("which", range(2))
def test_the_worst_neighbour_of_the_histograms_reaches_the_guarantee(which: int) -> None:
    """A released table far above the counts, cell by cell of the record that comes."""
    plan = plans(cost(1.0))[which]
    records, more = table(ROWS), table([*ROWS, DOMAIN[0]])
    released = plan.release(records, SeededSource(0, "release"))
    for counts in released.tables.values():
        counts[:] = 1_000
    gap = plan.log_likelihood(released, more) - plan.log_likelihood(released, records)
    assert gap == pytest.approx(plan.guarantee.epsilon, abs=1e-4)


def test_a_table_that_nobody_charged_for_is_caught() -> None:
    """The twin: the label's own table, released with the noise of a plan without it."""
    short = LabelHistograms(SCHEMA, "label", cost(1.0))
    noise = short.budget.noises["tables"]
    records, more = table(ROWS), table([*ROWS, DOMAIN[0]])
    columns = [("label",), *(("label", name) for name in short.columns)]
    far = [np.full_like(records.counts(names), 1_000) for names in columns]
    gap = sum(
        noise.log_likelihood(counts, more.counts(names))
        - noise.log_likelihood(counts, records.counts(names))
        for counts, names in zip(far, columns, strict=True)
    )
    assert gap > 1.3 * short.guarantee.epsilon


@pytest.mark.parametrize(("neighbours", "step"), [(ADD, 1), (SWAP, 2)])
def test_a_score_moves_by_no_more_than_its_step(neighbours: Neighbours, step: int) -> None:
    plan = MarginalTree(SCHEMA, "label", cost(1.0, neighbours))
    largest = 0
    for number in range(5):
        released = plan.release(table(ROWS), SeededSource(number, "scores"))
        ones = {name: released.tables[name] for name in plan.columns}
        scores = plan.scores(table(ROWS), ones)
        for rows in NEIGHBOURS[neighbours]:
            moved = np.abs(plan.scores(table(rows), ones) - scores)
            largest = max(largest, int(moved.max()))
    assert largest == step


def test_the_forest_finds_what_hangs_together() -> None:
    plan = MarginalTree(SCHEMA, "label", cost(5.0, SWAP, 1e-5))
    released = plan.release(dependent(20_000, 1), SeededSource(1, "tree"))
    edges = {frozenset(pair) for pair in plan.edges(released.tables["scores"])}
    assert edges == {frozenset("ab"), frozenset("ac")}


@pytest.mark.parametrize("worth", [[5.0, 4.0, 3.0], [0.0, -1.0, 2.0]])
def test_edges_form_a_forest_and_worthless_ones_are_left_out(worth: list[float]) -> None:
    plan = MarginalTree(SCHEMA, "label", cost(5.0, ADD, 1e-5))
    spread = math.sqrt(2 / math.pi * plan.budget.noises["twos"].variance)
    scores = np.array(worth) * 100 + spread * np.array([12, 8, 12])
    edges = plan.edges(scores.astype(np.int64))
    assert len(edges) == (2 if worth[1] > 0 else 1)
    assert len({child for _, child in edges}) == len(edges)


@pytest.mark.statistical
@pytest.mark.parametrize("columns", [("a", "b"), ("a", "c")])
@pytest.mark.parametrize("is_tree", [True, False])
def test_samples_of_hardly_noisy_tables_have_the_margins_of_the_records(
    columns: tuple[str, str], is_tree: bool, seed: int
) -> None:
    """n = 40 000 samples; FALSE_ALARM. The twin knows no pair given the label: it is refuted."""
    records = dependent(60_000, seed)
    price = cost(30.0)
    plan: Plan = (
        MarginalTree(SCHEMA, "label", price)
        if is_tree
        else LabelHistograms(SCHEMA, "label", price)
    )
    made = plan.release(records, SeededSource(seed, "release")).sample(
        40_000, SeededSource(seed, "sample")
    )
    names = ("label", *columns)
    chances = records.counts(names).reshape(-1) / 60_000
    counts = chi_square_p(made.counts(names).reshape(-1), chances)
    assert (counts > FALSE_ALARM) is is_tree


def test_samples_lie_in_the_schema_and_say_what_their_places_mean() -> None:
    for which, plan in enumerate(plans(cost(0.5, SWAP, 1e-5))):
        released = plan.release(table(ROWS), SeededSource(3, "release", which))
        made = released.sample(500, SeededSource(3, "sample", which))
        again = Records.of(made.values, made.schema, "made")
        for name in made.schema.columns:
            np.testing.assert_array_equal(again.codes[name], made.codes[name])


def test_projection_is_the_nearest_table() -> None:
    counts = np.array([[5.0, -3.0, 1.0], [0.0, 0.0, 9.0]])
    near = projected(counts, 3.0)
    np.testing.assert_allclose(near.sum(axis=1), 3.0)
    np.testing.assert_allclose(near[0], [3.0, 0.0, 0.0])
    assert (near >= 0).all()


def test_fitted_tables_have_both_margins_even_with_empty_rows() -> None:
    rows, columns = np.array([0.0, 6.0, 4.0]), np.array([3.0, 7.0])
    fit = fitted(np.array([[1.0, 1.0], [5.0, 0.0], [0.0, 2.0]]), rows, columns)
    np.testing.assert_allclose(fit.sum(axis=1), rows, atol=1e-6)
    np.testing.assert_allclose(fit.sum(axis=0), columns, rtol=1e-3)


def test_bad_requests_are_refused() -> None:
    price = cost(1.0)
    with pytest.raises(BadParameter, match="label='nothing' one of a, b, c, label"):
        LabelHistograms(SCHEMA, "nothing", price)
    with pytest.raises(BadParameter, match="at least one other"):
        LabelHistograms(Schema("row", {"label": Categories((0, 1))}), "label", price)
    with pytest.raises(BadParameter, match="at least two other"):
        two = Schema("row", {"label": Categories((0, 1)), "a": Categories((0, 1))})
        MarginalTree(two, "label", price)
    with pytest.raises(BadParameter, match="columns"):
        CellHistogram(SCHEMA, (), price)
    with pytest.raises(BadParameter, match="epsilon"):
        MarginalTree(SCHEMA, "label", cost(1e-7, ADD, 1e-6))
    released = LabelHistograms(SCHEMA, "label", price).release(table(ROWS), SeededSource(1, "r"))
    with pytest.raises(BadParameter, match="count=0"):
        released.sample(0, SeededSource(1, "s"))


def test_a_table_without_rows_gives_a_model_of_noise() -> None:
    for which, plan in enumerate(plans(cost(1.0))):
        released = plan.release(table([]), SeededSource(1, "none", which))
        made = released.sample(5, SeededSource(1, "sample", which))
        assert len(made.codes["label"]) == 5


def test_records_of_another_schema_are_refused() -> None:
    other = Schema("row", {**SCHEMA.columns, "a": Categories(("x", "z"))})
    records = Records(other, table(ROWS).values, table(ROWS).codes)
    for plan in plans(cost(1.0)):
        with pytest.raises(BadParameter, match="records"):
            plan.release(records, SeededSource(1, "other"))


def test_a_column_that_has_the_name_of_the_scores_is_refused() -> None:
    """Its noise would be drawn under the same name as that of the scores."""
    named = Schema(
        "one row",
        {"scores": Categories((0, 1)), "b": Categories((0, 1)), "label": Categories((0, 1))},
    )
    with pytest.raises(BadParameter, match="scores"):
        MarginalTree(named, "label", cost(1.0))
