"""Drawing texts: exact chances, shifts of odds, batches, lengths, refusals."""

import numpy as np
import pytest
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.publication.text.language_models import Decoding, decode
from noisefloor.publication.text.language_models.decoding import Decoded
from noisefloor.randomness import SeededSource, new_run
from statistics_of_tests import FALSE_ALARM, chi_square_p
from tiny_language_models import POSITIONS, logits_of, private_documents, tiny_model

PROMPT = "Write a film."
Floats = NDArray[np.float64]


def shifts_of(*rows: dict[int, float]) -> Floats:
    found = np.zeros((len(rows), tiny_model().tokeniser.size))
    for row, shifts in zip(found, rows, strict=True):
        for piece, shift in shifts.items():
            row[piece] = shift
    return found


def drawn(
    lengths: list[int],
    shifts: Floats | None = None,
    labels: list[int] | None = None,
    temperature: float = 1.0,
    at_once: int = 128,
    seed: int = 1,
    plausible: float = 0.0,
) -> Decoded:
    with new_run():
        return decode(
            tiny_model(),
            Decoding(PROMPT, temperature, plausible),
            shifts_of({}) if shifts is None else shifts,
            np.array(labels or [0] * len(lengths), dtype=np.int64),
            np.array(lengths, dtype=np.int64),
            SeededSource(seed, "drawn"),
            at_once=at_once,
        )


def softmax(logits: Floats) -> Floats:
    logits = logits.copy()
    logits[tiny_model().tokeniser.marks] = -np.inf
    chances = np.exp(logits - logits.max())
    return np.asarray(chances / chances.sum())


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_without_a_shift_the_chances_are_those_of_the_model(temperature: float) -> None:
    prompt = tiny_model().prompt_pieces(PROMPT)
    expected = softmax(logits_of(tiny_model(), [prompt])[0] / temperature)
    found = drawn([1], temperature=temperature).shares[0]
    assert np.abs(found - expected).max() < 1e-6
    assert found[tiny_model().tokeniser.marks].sum() == 0


def test_chances_of_later_pieces_are_those_after_what_was_written() -> None:
    """The mean over places, of one text: each step through the cache against a whole pass."""
    found = drawn([9])
    prompt, pieces = tiny_model().prompt_pieces(PROMPT), found.documents.pieces.tolist()
    each = [softmax(logits_of(tiny_model(), [prompt + pieces[:at]])[0]) for at in range(9)]
    assert np.abs(found.shares[0] - np.mean(each, axis=0)).max() < 1e-5


@pytest.mark.parametrize("shift", [1.5, -2.0])
def test_a_shift_multiplies_the_odds_of_its_piece_by_its_exponential(shift: float) -> None:
    piece, other = 70, 80
    before = drawn([1]).shares[0]
    after = drawn([1], shifts_of({piece: shift})).shares[0]
    odds = [one[piece] / (1 - one[piece]) for one in (before, after)]
    assert odds[1] / odds[0] == pytest.approx(np.exp(shift), rel=1e-4)
    # All other pieces keep their proportions.
    rest = [one[other] / (1 - one[piece]) for one in (before, after)]
    assert rest[1] == pytest.approx(rest[0], rel=1e-4)


def test_what_the_model_holds_for_implausible_is_left_out_whatever_its_shift() -> None:
    plain = drawn([1], temperature=0.8).shares[0]
    is_kept = plain >= 0.2 * plain.max()
    assert 1 < is_kept.sum() < len(plain) / 2
    kept, left_out = (
        int(np.flatnonzero(is_kept)[0]),
        int(np.flatnonzero(~is_kept & (plain > 0))[0]),
    )
    shifts = shifts_of({kept: 1.5, left_out: 9.0})
    found = drawn([1], shifts, temperature=0.8, plausible=0.2).shares[0]
    expected = np.where(is_kept, plain, 0.0)
    expected[kept] *= np.exp(1.5)
    assert found == pytest.approx(expected / expected.sum(), abs=1e-6)


def test_each_label_has_its_own_shift() -> None:
    shifts = shifts_of({70: 12.0}, {80: 12.0})
    found = drawn([5] * 40, shifts, [0, 1] * 20).documents
    for label, piece in ((0, 70), (1, 80)):
        mine = found[found.labels == label].pieces
        assert (mine == piece).mean() > 0.9


def test_texts_do_not_depend_on_how_many_are_written_at_once() -> None:
    lengths = SeededSource(2, "lengths").generator().integers(1, 20, 30).tolist()
    labels = [row % 2 for row in range(30)]
    shifts = shifts_of({70: 1.0}, {80: 1.0})
    many = drawn(lengths, shifts, labels, at_once=64)
    for at_once in (1, 7):
        some = drawn(lengths, shifts, labels, at_once=at_once)
        assert some.documents.pieces.tolist() == many.documents.pieces.tolist()
        assert np.abs(some.shares - many.shares).max() < 1e-6
    assert many.documents.lengths.tolist() == lengths
    assert many.documents.labels.tolist() == labels
    assert drawn(lengths, shifts, labels, seed=2).documents.pieces.tolist() != (
        many.documents.pieces.tolist()
    )


@pytest.mark.statistical
@pytest.mark.parametrize(("tilt", "is_right"), [(0.0, True), (0.3, False)])
def test_first_pieces_are_drawn_with_their_chances(tilt: float, is_right: bool) -> None:
    """20,000 first pieces; alarms with probability 1e-6; the twin tilts the expected chances."""
    found = drawn([1] * 20_000, at_once=4_000)
    expected = found.shares[0] * (1 + tilt * (np.arange(len(found.shares[0])) % 2 - 0.5))
    counts = np.bincount(found.documents.pieces, minlength=len(expected))
    assert (chi_square_p(counts, expected / expected.sum()) > FALSE_ALARM) == is_right


def test_no_mark_is_ever_written() -> None:
    marks = tiny_model().tokeniser.marks
    found = drawn([30] * 60, shifts_of({int(mark): 30.0 for mark in marks}))
    assert not np.isin(found.documents.pieces, marks).any()


def test_of_no_texts_there_is_nothing() -> None:
    found = drawn([])
    assert found.documents.count == 0
    assert found.shares.sum() == 0


@pytest.mark.parametrize(
    ("lengths", "labels", "shifts", "rule"),
    [
        ([0], [0], shifts_of({}), "lengths"),
        ([POSITIONS], [0], shifts_of({}), "lengths"),
        ([3], [1], shifts_of({}), "labels"),
        ([3], [-1], shifts_of({}), "labels"),
        ([3, 3], [0], shifts_of({}), "one for each of 1 labels"),
        ([3], [0], shifts_of({7: np.inf}), "shifts"),
        ([3], [0], np.zeros((1, 7)), "shifts"),
    ],
)
def test_bad_input_is_refused(
    lengths: list[int], labels: list[int], shifts: Floats, rule: str
) -> None:
    with pytest.raises(BadParameter, match=rule):
        drawn(lengths, shifts, labels)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_bad_temperatures_are_refused(temperature: float) -> None:
    with pytest.raises(BadParameter, match="temperature"):
        Decoding(PROMPT, temperature)


@pytest.mark.parametrize("plausible", [-0.1, 1.1, float("nan")])
def test_bad_parts_of_the_largest_chance_are_refused(plausible: float) -> None:
    with pytest.raises(BadParameter, match="plausible"):
        Decoding(PROMPT, 1.0, plausible)


def test_private_documents_are_cut_by_the_tokeniser_that_writes() -> None:
    documents, tokeniser = private_documents(5), tiny_model().tokeniser
    texts = tokeniser.written(documents.pieces, documents.offsets)
    assert all(text.startswith("The film was ") for text in texts)
