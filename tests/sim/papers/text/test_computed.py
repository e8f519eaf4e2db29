"""What is judged without runs: the printed table, and what is proved of each part."""

import pytest

from noisefloor.privacy import Neighbours
from noisefloor_sim.papers import verdicts
from noisefloor_sim.papers.text import computed, printed
from noisefloor_sim.papers.text.budgets import seed_delta
from noisefloor_sim.papers.text.plans import cell_at
from noisefloor_sim.papers.verdicts import NOT, REPRODUCED, UNDECIDED, Judge
from text_paper_cases import TINY, found_with


def test_the_printed_table_has_what_its_text_says() -> None:
    assert len(printed.F1) == 24
    assert printed.F1["dpvg-ed", "tree", "NEG"] == 0.673
    assert printed.F1["dp-ed", "svm-rbf", "POS"] == 0.577
    judged = {one.key: Judge(1).judge(one, {}) for one in computed.table_claims()}
    assert {one.verdict for one in judged.values()} == {REPRODUCED}
    assert judged["table-largest"].deciding.value == pytest.approx(0.05)
    assert judged["table-smallest"].deciding.value == pytest.approx(0.007)


def test_a_table_without_these_orders_does_not_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin of the above: the scores of two systems are exchanged."""
    names = {"original": "original", "dp-ed": "dpvg-ed", "dpvg-ed": "dp-ed"}
    turned = {(names[one], *rest): value for (one, *rest), value in printed.F1.items()}
    monkeypatch.setattr(printed, "F1", turned)
    judged = {one.key: Judge(1).judge(one, {}).verdict for one in computed.table_claims()}
    wrong = {"table-generalised", "table-largest"}
    assert all(judged[one] == NOT for one in wrong)


def test_figures_of_independent_scripts_come_out() -> None:
    inside, outside = computed.script_epsilon("inside"), computed.script_epsilon("outside")
    assert (round(inside, 2), round(outside, 3)) == (22.92, 0.036)
    assert round(computed.script_sigma(20, 2.0), 1) == 1.6
    assert computed.script_steps(500) == 24_414


@pytest.mark.parametrize(("pieces", "texts", "count"), [(5, 3, 1), (7, 2, 3), (4, 1, 2)])
def test_the_chance_of_a_seed_is_that_of_drawing_it_at_least_once(
    pieces: int, texts: int, count: int
) -> None:
    assert seed_delta(pieces, texts, count) == pytest.approx(1 - (1 - count / pieces) ** texts)
    assert seed_delta(3, texts, 3) == 1


def test_the_parts_of_privacy_are_infinite_as_printed_and_add_up_corrected() -> None:
    found = found_with(TINY, {})
    parts = {one.name: one for one in computed.parts_of(found, TINY, "inside")}
    for name in ("seeds", "lengths", "vocabulary", "generalisation", "whole"):
        assert not parts[name].guarantee.is_finite
        assert parts[name].guarantee.reason
    assert "equally long here" in parts["lengths"].words
    after = parts["weights after generalisation"].guarantee
    # 5 mentions, (5 - 1)(4 + 1) others each: 101 documents, each but one in two steps.
    assert after.epsilon == pytest.approx(201 * 7.2)
    assert after.delta == 1
    assert "if no document has more than 5 mentions" in parts["weights after generalisation"].words
    right = {one.name: one.guarantee for one in computed.parts_of(found, TINY, "corrected")}
    assert right["whole"].epsilon == pytest.approx(7.2 + 0.4 + 0.4)
    assert right["whole"].delta == pytest.approx(1e-5)
    assert right["whole, for an author"].epsilon == pytest.approx(5 * 8.0)
    assert right["labels may change"].epsilon == pytest.approx(15.5)
    assert right["labels may change"].neighbours is Neighbours.RECORD_SUBSTITUTE
    assert right["seeds"].epsilon == right["vocabulary"].epsilon == 0


def test_what_is_claimed_is_refuted_by_seeds_and_not_by_the_lack_of_a_proof() -> None:
    found = found_with(TINY, {})
    judged = {
        one.key: Judge(1).judge(one, {}).verdict for one in computed.privacy_claims(found, TINY)
    }
    assert judged["whole-printed"] == judged["whole-inside"] == NOT
    assert judged["whole-corrected"] == judged["after-corrected"] == REPRODUCED
    assert judged["after-inside"] == UNDECIDED
    assert judged["less-noise"] == NOT
    rare = {**found[cell_at("dp-ed", 8.0, "inside")], "seeds": {"delta": 1e-6}}
    found[cell_at("dp-ed", 8.0, "inside")] = rare
    claim = next(one for one in computed.privacy_claims(found, TINY) if one.key == "whole-inside")
    assert Judge(1).judge(claim, {}).verdict == UNDECIDED


def test_computed_claims_take_no_share_of_the_error() -> None:
    assert verdicts.tests_in({"any": computed.table_claims()}) == 0
