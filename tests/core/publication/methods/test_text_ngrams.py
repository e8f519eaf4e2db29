"""Made-up texts as a method: plan, release, card, canary, residuals, refusals."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from noisefloor.adversary.models import audit_canary
from noisefloor.errors import BadParameter, MissingData
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication import NoisedVector
from noisefloor.publication.methods import Parameter, TextNgramsPlan, TextSpec
from noisefloor.publication.text import PseudoTexts, TextTokeniser, read_documents
from noisefloor.publication.text.ngrams import OWN_TEXTS_VARIABLE
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables import Categories, TextRecords, TextSchema
from tiny_backbones import WORDS, write_piece_file

SCHEMA = TextSchema("one review", {"review": 8}, "mood", Categories(("bad", "good")))
DECLARATION = """record: one review
columns:
  review: {text: 8}
  mood: {categories: [bad, good]}
label: mood
"""
SWAP = Neighbours.RECORD_SUBSTITUTE


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A publisher with a tokeniser of a few words and public texts of its own."""
    lines = [f"{one} {other} film\tgood" for one in WORDS[:16] for other in WORDS[3:12]]
    (tmp_path / "public.tsv").write_text("\n".join(["review\tmood", *lines, ""]))
    (tmp_path / "public.schema.yaml").write_text(DECLARATION)
    monkeypatch.setenv(OWN_TEXTS_VARIABLE, str(tmp_path / "public.tsv"))
    monkeypatch.setenv("NOISEFLOOR_BACKBONE", str(write_piece_file(tmp_path / "pieces")))
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path / "cache"))
    yield


def reviews(count: int = 400) -> TextRecords:
    words = {"bad": ("dull", "poor", "cold"), "good": ("great", "fine", "warm")}
    moods = ["bad", "good"] * (count // 2)
    texts = [f"the {words[mood][row % 3]} film and a story" for row, mood in enumerate(moods)]
    return TextRecords.of({"review": texts, "mood": moods}, SCHEMA, "reviews")


def a_plan(
    epsilon: float = 4.0,
    neighbours: Neighbours = Neighbours.RECORD_ADD_REMOVE,
    schema: TextSchema = SCHEMA,
    **parameters: Parameter,
) -> TextNgramsPlan:
    cost = Guarantee(epsilon, neighbours, delta=1e-5, model=TrustModel.CENTRAL)
    asked = {"public": "own", "texts": 60, **parameters}
    return TextNgramsPlan.of(TextSpec.read(schema, cost, asked))


def test_a_release_is_a_file_of_texts_with_labels() -> None:
    plan = a_plan(8.0)
    content = plan.release(reviews(), SeededSource(1, "release"))
    texts = PseudoTexts.read(content, SCHEMA)
    assert texts.count == 60
    assert 0.3 < texts.labels.mean() < 0.7
    pieces = read_documents(texts.records(), plan.tokeniser).pieces
    assert {"film", "the"} <= {plan.tokeniser.words[piece] for piece in pieces}
    with new_run():
        assert plan.release(reviews(), SeededSource(1, "release")) == content


def test_own_public_texts_may_bring_a_vocabulary_of_their_own(tmp_path: Path) -> None:
    by_backbone = a_plan().tokeniser
    write_piece_file(tmp_path, ("the", "story"))
    plan = a_plan()
    assert plan.tokeniser.size < by_backbone.size
    card = plan.describe(plan.release(reviews(), SeededSource(3, "own words")))
    assert card["tokeniser_sha256"] == plan.tokeniser.sha256 != by_backbone.sha256


def test_texts_without_a_piece_and_tags_are_counted_and_none_comes_out() -> None:
    odd = [
        "\0",
        "\a\x1b",
        "\U0001f600" * 9,
        "<br>",
        "<script>alert(1)</script>",
        "\u200b",
        "x" * 10**6,
    ]
    moods = ["bad", "good"] * 100
    rows = {"review": [odd[row % len(odd)] for row in range(200)], "mood": moods}
    records = TextRecords.of(rows, SCHEMA, "reviews")
    plan = a_plan(8.0)
    content = plan.release(records, SeededSource(4, "odd"))
    assert PseudoTexts.read(content, SCHEMA).count == 60
    assert b"<" not in content and b"\\u" not in content and content.isascii()
    assert plan.describe(content)["text_count"] == 60


def test_labels_can_be_learned_from_what_is_published() -> None:
    plan = a_plan(8.0, texts=400)
    found = PseudoTexts.read(plan.release(reviews(), SeededSource(2, "learn")), SCHEMA)
    is_warm = np.array([any(w in t for w in ("great", "fine", "warm")) for t in found.texts])
    is_cold = np.array([any(w in t for w in ("dull", "poor", "cold")) for t in found.texts])
    assert found.labels[is_warm & ~is_cold].mean() > 0.7
    assert found.labels[is_cold & ~is_warm].mean() < 0.3


def test_the_card_says_what_was_used() -> None:
    plan = a_plan(public_weight=0.9)
    content = plan.release(reviews(), SeededSource(3, "card"))
    assert [one.about for one in plan.claims] == ["whole corpus"]
    said = plan.describe(content)
    assert said["text_count"] == 60 and said["column"] == "review"
    assert said["public_texts"]["name"] == "own"
    assert said["public_texts"]["weight"] == 0.9
    assert said["public_texts"]["sha256"] == plan.public.sha256
    assert set(said["tables"]) == {"lengths", "pieces", "pairs"}
    assert "parameter_count" not in said


@pytest.mark.parametrize("neighbours", [Neighbours.RECORD_ADD_REMOVE, SWAP])
def test_the_canary_stays_below_the_proof_and_finds_missing_noise(neighbours: Neighbours) -> None:
    plan = a_plan(2.0, neighbours)
    found = audit_canary(plan.canary, 1e-5, f"ngrams {neighbours.value}", games=20_000)
    assert 0.3 < found.epsilon <= plan.proved.epsilon
    planted = audit_canary(
        plan.canary.with_noise(0.3), 1e-5, f"planted {neighbours.value}", games=20_000
    )
    assert planted.epsilon > plan.proved.epsilon


def test_residuals_are_those_of_the_declared_noise() -> None:
    seen: list[NoisedVector] = []
    plan = a_plan()
    content = plan.release(reviews(), SeededSource(4, "watched"), seen.append)
    assert [one.part for one in seen] == ["lengths", "pieces", "pairs"]
    for one in seen:
        assert one.clean is not None and one.noised.shape == one.clean.shape
    with new_run():
        assert plan.release(reviews(), SeededSource(4, "watched")) == content


def test_a_word_of_one_document_is_no_more_frequent_than_in_public_text() -> None:
    """The twin without noise in its counts shows the word in its true share."""
    texts = [*reviews().texts["review"], "music music music music music"]
    moods = ["bad", "good"] * 200 + ["good"]
    records = TextRecords.of({"review": texts, "mood": moods}, SCHEMA, "reviews")
    documents = read_documents(records, a_plan().tokeniser)
    piece = int(np.flatnonzero(a_plan().tokeniser.words == "music")[0])
    shares = {}
    for name, corpus in (("with", documents), ("without", documents[:-1])):
        plan = a_plan(1.0, texts=4_000)
        written = plan.written(corpus, SeededSource(5, "rare", name))
        shares[name] = float((written.pieces == piece).mean())
    assert abs(shares["with"] - shares["without"]) < 0.01


REFUSED: list[tuple[dict[str, Parameter], str]] = [
    ({"public": "reviews"}, "public"),
    ({"public": 3}, "public"),
    ({"public_weight": 1.5}, "public_weight"),
    ({"texts": 0}, "texts"),
    ({"texts": 10_000_000}, "texts"),
    ({"words": 3}, "parameters"),
    ({"label": "review"}, "label"),
]


@pytest.mark.parametrize(("parameters", "rule"), REFUSED)
def test_bad_requests_are_refused(parameters: dict[str, Parameter], rule: str) -> None:
    cost = a_plan().spec.cost
    with pytest.raises(BadParameter, match=rule):
        TextNgramsPlan.of(TextSpec.read(SCHEMA, cost, {"public": "own", **parameters}))


def test_long_texts_and_many_classes_are_refused() -> None:
    long = TextSchema("one review", {"review": 600}, "mood", SCHEMA.classes)
    with pytest.raises(BadParameter, match="at most 512 pieces"):
        a_plan(schema=long)
    many = Categories(tuple(f"mood {number}" for number in range(40)))
    with pytest.raises(BadParameter, match="at most 32 classes"):
        a_plan(schema=TextSchema("one review", {"review": 8}, "mood", many))


def test_public_texts_that_were_not_fetched_are_named() -> None:
    with pytest.raises(MissingData, match="noisefloor data fetch rotten-tomatoes"):
        a_plan(public="rotten-tomatoes")


def test_records_of_another_schema_are_refused() -> None:
    other = replace(SCHEMA, record="one sentence")
    records = TextRecords(other, reviews().texts, reviews().labels)
    with pytest.raises(BadParameter, match="planned for"):
        a_plan().release(records, SeededSource(6))


def test_strange_texts_are_published_from() -> None:
    """Emoji, markup, control characters, other scripts, tags alone and a very long text."""
    texts = [
        "\U0001f600\U0001f600",
        "<br />",
        "\x00\x07",
        "\u65e5\u672c\u8a9e",
        "film " * 200_000,
        "<script>x</script>",
    ]
    records = TextRecords.of({"review": texts, "mood": ["good", "bad"] * 3}, SCHEMA, "strange")
    content = a_plan().release(records, SeededSource(7, "strange"))
    assert PseudoTexts.read(content, SCHEMA).count == 60


def test_a_tokeniser_is_read_once(tmp_path: Path) -> None:
    assert isinstance(a_plan().tokeniser, TextTokeniser)
    assert a_plan().public is a_plan().public
