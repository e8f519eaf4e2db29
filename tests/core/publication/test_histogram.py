"""The histogram: one record changes what is charged for, and the file says what it holds."""

import hashlib
import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.accounting import Amount, Ledger
from noisefloor.errors import BadParameter, BadSnapshot, DamagedCard
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication import Histogram, load_table, read_tensors
from noisefloor.randomness import SecureSource
from noisefloor.roles.model_publisher import MemoryArtefactStore, ModelPublisher, ReleaseRequest
from noisefloor.roles.publication_methods import METHOD_BUILDERS, methods_of
from noisefloor.tables import Bins, Categories, Records, Schema
from properties import examples

ADD, SWAP = Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE
SCHEMA = Schema("one visit", {"page": Categories(("a", "b")), "age": Bins((0, 10, 20, 30))})


def cost(epsilon: float = 1.0, neighbours: Neighbours = ADD, delta: float = 0.0) -> Guarantee:
    return Guarantee(epsilon, neighbours, delta=delta, model=TrustModel.CENTRAL)


def records(rows: list[tuple[str, int]]) -> Records:
    table = {
        "page": np.array([row[0] for row in rows], dtype=object),
        "age": np.array([row[1] for row in rows], dtype=np.int64),
    }
    return Records.of(table, SCHEMA, "test.csv")


row = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 30))
rows = st.lists(row, min_size=1, max_size=8)
HISTOGRAM = Histogram.of(SCHEMA, {"columns": "page,age"}, cost())
ROWS = [("a", 3), ("a", 30), ("b", 10), ("b", 12)]


@examples(60)
@given(rows, row)
def test_one_record_more_changes_one_cell_by_one(
    rows: list[tuple[str, int]], more: tuple[str, int]
) -> None:
    gap = records([*rows, more]).counts(("page", "age")) - records(rows).counts(("page", "age"))
    assert sorted(gap.reshape(-1)) == [0, 0, 0, 0, 0, 1]


@examples(60)
@given(rows, row, st.integers(0, 7))
def test_another_record_changes_two_cells_by_one_at_most(
    rows: list[tuple[str, int]], other: tuple[str, int], place: int
) -> None:
    changed = list(rows)
    changed[place % len(rows)] = other
    gap = records(changed).counts(("page", "age")) - records(rows).counts(("page", "age"))
    assert np.abs(gap).sum() in (0, 2)
    assert np.abs(gap).max() <= 1


@examples(30)
@given(rows, row, st.lists(st.integers(-9, 9), min_size=6, max_size=6))
def test_no_output_tells_two_neighbours_apart_by_more_than_is_charged(
    rows: list[tuple[str, int]], other: tuple[str, int], shift: list[int]
) -> None:
    for neighbours, changed in ((ADD, [*rows, other]), (SWAP, [other, *rows[1:]])):
        planned = Histogram.of(SCHEMA, {"columns": "age,page"}, cost(0.7, neighbours))
        one, two = records(rows), records(changed)
        released = one.counts(("age", "page")) + np.array(shift).reshape(3, 2)
        gap = planned.log_likelihood(released, one) - planned.log_likelihood(released, two)
        assert abs(gap) <= planned.guarantee.epsilon + 1e-10 <= 0.7 + 1e-10


def test_the_file_loads_with_its_axes_and_the_noise_is_fresh() -> None:
    rows = records(ROWS)
    content = HISTOGRAM.release(rows, SecureSource())
    counts = read_tensors(content)["counts"]
    assert (counts.shape, counts.dtype) == ((2, 3), np.dtype("int64"))
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    about = json.loads(header["__metadata__"]["noisefloor"])
    assert about["axes"][0] == {"name": "page", "categories": ["a", "b"]}
    assert about["axes"][1] == {"name": "age", "bins": [0, 10, 20, 30]}
    draws = {HISTOGRAM.draw(rows, SecureSource()).tobytes() for _ in range(50)}
    assert len(draws) > 40


def test_the_noise_is_that_of_the_likelihood() -> None:
    rows = records(ROWS)
    drawn = HISTOGRAM.draw(rows, SecureSource())
    assert math.isfinite(HISTOGRAM.log_likelihood(drawn, rows))
    sharp = Histogram.of(SCHEMA, {"columns": "page"}, cost(40.0))
    assert sharp.draw(rows, SecureSource()).tolist() == [2, 2]  # wrong once in 10**17


@pytest.mark.parametrize(
    ("parameters", "cost_", "named"),
    [
        ({}, cost(), "columns"),
        ({"columns": "town"}, cost(), "columns"),
        ({"columns": "page,page"}, cost(), "columns"),
        ({"columns": 3}, cost(), "columns"),
        ({"columns": "page", "noise": "normal"}, cost(), "noise"),
        ({"columns": "page", "noise": 1}, cost(), "noise"),
        ({"columns": "page", "more": 1}, cost(), "parameters"),
        ({"columns": "page", "noise": "laplace"}, cost(delta=1e-6), "delta"),
        ({"columns": "page", "noise": "gaussian"}, cost(), "delta"),
        ({"columns": "page"}, cost(1e5), "epsilon"),
        ({"columns": "page"}, cost(neighbours=Neighbours.USER), "neighbours"),
        ({"columns": "page"}, Guarantee(1.0, ADD), "model"),
    ],
)
def test_a_bad_request_names_what_is_wrong(
    parameters: dict[str, Any], cost_: Guarantee, named: str
) -> None:
    with pytest.raises(BadParameter) as caught:
        Histogram.of(SCHEMA, parameters, cost_)
    assert caught.value.name == named
    assert "town" not in f"{caught.value}"


def test_too_many_cells_are_refused() -> None:
    fits = Categories(tuple(range(1 << 10)))
    schema = Schema("x", {"a": fits, "b": fits})
    assert Histogram.of(schema, {"columns": "a,b"}, cost()).shape == (1024, 1024)
    wide = Categories(tuple(range(1 << 11)))
    with pytest.raises(BadParameter, match="at most 1048576 cells"):
        Histogram.of(Schema("x", {"a": wide, "b": wide}), {"columns": "a,b"}, cost())


@pytest.mark.parametrize(("name", "value"), [("3", 3), ("True", True), ("1.5", 1.5)])
def test_a_column_is_named_by_a_text(name: str, value: float) -> None:
    schema = Schema("x", {name: Categories(("a", "b"))})
    assert Histogram.of(schema, {"columns": name}, cost()).shape == (2,)
    with pytest.raises(BadParameter, match="columns"):
        Histogram.of(schema, {"columns": value}, cost())


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("neighbours", [ADD, SWAP])
def test_the_publisher_charges_the_cost_and_the_card_says_what_holds(
    neighbours: Neighbours, delta: float
) -> None:
    ledger = Ledger(1.0, 1e-5, neighbours=neighbours, model=TrustModel.CENTRAL)
    data_sets = {"visits": records(ROWS)}
    publisher = ModelPublisher(
        ledger, MemoryArtefactStore(), methods_of(data_sets).values(), data_sets=data_sets
    )
    requested = cost(0.5, neighbours, delta)
    request = ReleaseRequest("p-1", "visits", "histogram", requested, {"columns": "page, age"})
    made = publisher.publish(request, SecureSource())
    assert publisher.stored(request) == made
    assert not publisher.is_long(request)
    assert ledger.spent("visits") == Amount.cost(requested)
    card = made.card
    assert card["claims"]["verdict"] == "holds"
    assert 0.499 < card["claims"]["proved"]["epsilon"] <= 0.5
    assert card["claims"]["proved"]["neighbours"] == neighbours.value
    assert card["claims"]["proved"]["delta"] == delta
    assert card["record"] == "one visit"
    assert card["columns"] == ["page", "age"]
    assert card["tensors"] == {"counts": {"dtype": "int64", "shape": [2, 3]}}
    assert card["noise"]["standard_deviation"] > 1
    assert load_table(made.content, card, unsigned=True)["counts"].shape == (2, 3)


def test_every_change_of_a_file_is_refused_by_the_loader() -> None:
    content = HISTOGRAM.release(records(ROWS), SecureSource())
    card = {"content_sha256": hashlib.sha256(content).hexdigest()}
    assert load_table(content, card, unsigned=True)
    for place, bit in itertools.product(range(len(content)), (1, 128)):
        changed = bytearray(content)
        changed[place] ^= bit
        with pytest.raises(BadSnapshot, match="SHA-256 differs"):
            load_table(bytes(changed), card, unsigned=True)
    for other in (b"", content[:-1], content + b"\0"):
        with pytest.raises(BadSnapshot):
            load_table(other, card, unsigned=True)
    with pytest.raises(DamagedCard):
        load_table(content, {}, unsigned=True)
    for broken in (b"", b"\xff" * 40, content[:30]):
        with pytest.raises(BadSnapshot, match="no safetensors"):
            read_tensors(broken)


def test_every_method_is_listed_under_its_own_name() -> None:
    for name, method in methods_of({}).items():
        assert method.name == name
        assert method.help
    assert set(METHOD_BUILDERS) == set(methods_of({}))
