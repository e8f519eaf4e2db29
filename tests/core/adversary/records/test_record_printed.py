"""Proofs by class 0, and the label as printed: closed forms met, louder twins."""

import numpy as np
import pytest

from attack_outcomes import LOUDER, assert_caught, assert_met
from noisefloor.accounting import binary_success
from noisefloor.adversary.records.printed import (
    attack_class_zero,
    attack_printed_label,
    printed_label_success,
)
from noisefloor.collection.encoding.discretisation import Codes, PrintedDiscretiser
from noisefloor.collection.encoding.printed_response import PrintedUnified
from noisefloor.collection.encoding.unified_response import UnifiedResponse
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from record_worlds import ranges, two_groups

SIZES, OWNERS = (4, 4, 4), 40_000


def printed_codes(n: int = OWNERS) -> Codes:
    """Owners of whom some hold a minimum, and of whom all negative ones have label class 0."""
    schema = ranges(2)
    records, classes = two_groups(schema, n, "printed", 1.2), PrintedDiscretiser(schema, 4)
    codes = classes.codes(records.values)
    return np.column_stack([codes, classes.label_codes(records.labels)])


CODES = printed_codes()


@pytest.mark.statistical
@pytest.mark.parametrize("place", [None, 0, -1])
def test_class_zero_is_proved_as_often_as_it_is_kept(place: int | None, seed: int) -> None:
    # n = those who hold class 0; false alarm FALSE_ALARM. The twin: epsilon 9.
    source = SeededSource(seed, "zero", 9 if place is None else place)
    proofs = attack_class_zero(PrintedUnified(SIZES, 6.0), CODES, source.child(1), place)
    assert proofs.proved.n > 500
    assert_met(proofs.proved)
    assert proofs.false == 0
    assert proofs.rate == proofs.proved.right / OWNERS
    loud = PrintedUnified(SIZES, 9.0)
    twin = attack_class_zero(loud, CODES, source.child(2), place)
    assert proofs.proved.closed_form is not None
    assert_caught(twin.proved, proofs.proved.closed_form)


def test_lies_that_reach_class_zero_prove_nothing() -> None:
    proofs = attack_class_zero(
        PrintedUnified(SIZES, 6.0, "symbols"), CODES, SeededSource(1, "symbols"), -1
    )
    assert proofs.false > 500


@pytest.mark.statistical
@pytest.mark.parametrize("lies", ["classes", "symbols"])
def test_the_printed_label_is_guessed_as_often_as_its_distribution_says(
    lies: str, seed: int
) -> None:
    # n = 40,000; false alarm FALSE_ALARM. The twin: epsilon 1.25 times too large.
    source = SeededSource(seed, "label", lies)
    honest = PrintedUnified(SIZES, 4.0, lies)  # type: ignore[arg-type]  # one of the two
    outcome = attack_printed_label(honest, CODES, source.child(1))
    assert_met(outcome)
    loud = PrintedUnified(SIZES, 4.0 * LOUDER, lies)  # type: ignore[arg-type]  # as above
    assert outcome.closed_form is not None
    assert_caught(attack_printed_label(loud, CODES, source.child(2)), outcome.closed_form)
    assert (outcome.bound == 1.0) == (lies == "classes")


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 12.0])
def test_the_printed_label_passes_what_the_claimed_epsilon_allows(epsilon: float) -> None:
    even = np.array([0.5, 0.5])
    printed = PrintedUnified((2, 2, 2), epsilon)
    claimed = float(binary_success(epsilon / 3))  # a third of the paper's epsilon is the label's
    assert printed_label_success(printed, even) > claimed + 1e-3
    keep = UnifiedResponse((2, 2, 2), epsilon).responses[-1].keep / 2**64
    assert keep == pytest.approx(claimed)  # the corrected form keeps it


def test_records_without_a_class_zero_are_refused() -> None:
    codes = np.ones((5, 3), dtype=np.uint16)
    with pytest.raises(BadParameter, match="codes"):
        attack_class_zero(PrintedUnified(SIZES, 1.0), codes, SeededSource(1, "none"))
