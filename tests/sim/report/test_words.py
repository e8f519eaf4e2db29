"""Numbers and verdicts as a reader sees them."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.privacy import ClaimVerdict, LowerBound
from noisefloor_sim.report import ClaimRow, wording

MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"


def claim(
    verdict: str,
    claimed: float = 1.0,
    proved: float = 1.0,
    audited: float | None = None,
    reason: str = "",
    ceiling: float = 5.0,
) -> ClaimRow:
    bound = None if audited is None else LowerBound(audited, 0.99, 1_000, ceiling)
    return ClaimRow("m", "p", "paper", "", "user", claimed, proved, bound, verdict, reason)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (1.0, "1"), (20.0, "20"), (3.4, "3.4"), (0.123456, "0.1235"),
        (12345.678, "12,346"), (1234567.0, "1,234,567"), (1e-6, "1e-6"), (1.23456e-7, "1.235e-7"),
        (2.5e15, "2.5e15"), (-0.5, "-0.5"), (math.inf, "∞"), (-math.inf, "-∞"), (math.nan, DASH),
    ],
)  # fmt: skip
def test_numbers_have_four_digits_and_infinity_has_a_sign(value: float, text: str) -> None:
    assert wording.number(value).replace(MINUS, "-") == text


def test_an_upper_bound_is_rounded_up_and_a_lower_one_down() -> None:
    assert wording.upper(1.00001) == "1.001"
    assert wording.lower(0.99999) == "0.9999"
    assert wording.upper(0.1 + 0.2) == "0.3"  # dust of the float is no digit
    assert wording.lower(0.3 - 1e-17) == "0.3"
    assert wording.upper(1.0, 1e-6) == f"1 (δ\u00a01e{MINUS}6)"


@given(st.floats(1e-9, 1e15))
def test_rounding_never_crosses_the_value(value: float) -> None:
    def read(text: str) -> float:
        return float(text.replace(",", "").replace(MINUS, "-"))

    dust = 1e-11 * value
    assert read(wording.number(value, ROUND_FLOOR)) <= value + dust
    assert read(wording.number(value, ROUND_CEILING)) >= value - dust


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.95, "95 %"),
        (0.999, "99.9 %"),
        (1 - 1e-6, "1 - 1e-6"),
        (1.0, "100 %"),
        (0.99999, "1 - 1e-5"),
    ],
)
def test_a_confidence_near_one_is_written_by_what_is_missing(value: float, text: str) -> None:
    assert wording.confidence(value).replace("\u00a0", " ").replace(MINUS, "-") == text


def test_an_overclaimed_row_is_explained_by_its_numbers() -> None:
    row = claim("overclaimed", 1.0, 20.0, 3.4, "20 bits are answered")
    assert wording.sentence(row) == (
        "Claims 1, proved 20, an attacker reached at least 3.4. 20 bits are answered."
    )


def test_other_verdicts_are_explained_too() -> None:
    assert wording.sentence(claim("broken", 1.0, 1.0, 3.0)).endswith("Proof or code is wrong.")
    assert wording.sentence(claim("overclaimed", 1.0, 2.0)) == "Claims 1, proved 2; not attacked."
    nothing = claim("overclaimed", 1.0, math.inf, 0.0, "empty cells are published")
    assert wording.sentence(nothing) == (
        "Claims 1, nothing could be proved; the attack found nothing, and 1,000 trials could have "
        "shown 5 at most. Empty cells are published."
    )
    assert (
        wording.sentence(claim("holds", audited=0.9)) == "The attack stays within what is proved."
    )
    reached = wording.sentence(claim("overclaimed", 1.0, 20.0, 5.0))
    assert reached.endswith("at least 5, the most that 1,000 trials can show.")
    assert wording.sentence(claim("holds")).endswith("not attacked.")
    assert wording.verdict(claim("odd")) == "odd"


def test_an_audit_that_found_nothing_says_what_it_could_have_found() -> None:
    silent = claim("holds", audited=0.0)
    assert wording.audited(silent) == "nothing"
    assert wording.audited_how(silent).replace("\u00a0", " ") == "of up to 5 at 99 %"
    assert wording.sentence(silent) == (
        "Proved; the attack found nothing, and 1,000 trials could have shown 5 at most."
    )
    assert wording.audited(claim("holds", audited=0.9)).replace("\u00a0", " ") == "≥ 0.9"
    assert wording.audited(claim("holds")) == DASH


def test_an_audit_that_could_not_have_passed_the_proof_confirms_nothing() -> None:
    weak = claim("holds", 10.0, 10.0, 4.9)
    assert (
        wording.sentence(weak) == "Proved; the attack could show at most 5, and decides nothing."
    )
    strong = claim("holds", 10.0, 10.0, 4.9, ceiling=10.1)
    assert wording.sentence(strong) == "The attack stays within what is proved."


def test_every_verdict_has_a_place_and_words() -> None:
    rows = [claim(verdict) for verdict in ClaimVerdict]
    assert wording.worst_first(rows[::-1]) == rows
    assert wording.severity(claim("unprotected")) == "warn"
    assert wording.verdict(claim("unprotected")) == "Unprotected"
    assert [wording.severity(row) for row in rows].count("ok") == 1


def test_the_worst_rows_come_first_and_ties_keep_their_order() -> None:
    rows = [
        claim("holds", audited=0.1, reason="last"),
        claim("holds", audited=0.9),
        claim("overclaimed", 1.0, 2.0),
        claim("odd"),
        claim("overclaimed", 1.0, math.inf, reason="none"),
        claim("broken", audited=3.0),
        claim("overclaimed", 0.0, 2.0, reason="claims perfection"),
    ]
    order = [rows.index(row) for row in wording.worst_first(rows)]
    assert order == [5, 4, 6, 2, 3, 1, 0]


def test_marks_do_not_hang_on_the_word_alone() -> None:
    found = [wording.severity(claim(verdict)) for verdict in ("holds", "overclaimed", "blind")]
    assert found == ["ok", "bad", "warn"]


def test_cells_of_all_kinds() -> None:
    assert [wording.cell(value) for value in (None, "a", True, 12345, 0.5)] == [
        DASH, "a", "yes", "12,345", "0.5",
    ]  # fmt: skip


def test_signs_that_turn_the_text_about_become_visible() -> None:
    assert wording.clean("a\u202eb\x00c\ud800") == "a\ufffdb\ufffdc\ufffd"
    assert wording.clean("tab\tand\nline") == "tab\tand\nline"
