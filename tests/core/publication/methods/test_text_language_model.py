"""Made-up texts of a language model as a method: plan, release, card, canary, refusals."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from noisefloor import checks
from noisefloor.adversary.models import audit_canary
from noisefloor.errors import BadBackbone, BadParameter, MissingData, MissingExtra
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication import NoisedVector
from noisefloor.publication.methods import Parameter, TextLanguageModelPlan, TextSpec
from noisefloor.publication.text import PseudoTexts
from noisefloor.publication.text.language_models import OWN_MODEL_VARIABLE
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables import Categories, TextRecords, TextSchema
from tiny_language_models import POSITIONS, write_tiny_llama

SCHEMA = TextSchema("one review", {"review": 8}, "mood", Categories(("bad", "good")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_llama(tmp_path_factory.mktemp("model"))


@pytest.fixture(autouse=True)
def machine(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A publisher with a tiny language model of its own, and nothing fetched."""
    monkeypatch.setenv(OWN_MODEL_VARIABLE, str(folder))
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path / "cache"))
    yield


def reviews(count: int = 400) -> TextRecords:
    words = {"bad": ("dull", "poor", "cold"), "good": ("great", "fine", "warm")}
    moods = ["bad", "good"] * (count // 2)
    texts = [f"The film was {words[mood][row % 3]}." for row, mood in enumerate(moods)]
    return TextRecords.of({"review": texts, "mood": moods}, SCHEMA, "reviews")


def a_plan(
    epsilon: float = 8.0,
    neighbours: Neighbours = Neighbours.RECORD_ADD_REMOVE,
    schema: TextSchema = SCHEMA,
    **parameters: Parameter,
) -> TextLanguageModelPlan:
    cost = Guarantee(epsilon, neighbours, delta=1e-5, model=TrustModel.CENTRAL)
    asked = {"language_model": "own", "texts": 30, **parameters}
    return TextLanguageModelPlan.of(TextSpec.read(schema, cost, asked))


def test_a_release_is_a_file_of_texts_with_labels() -> None:
    plan = a_plan()
    content = plan.release(reviews(), SeededSource(1, "release"))
    texts = PseudoTexts.read(content, SCHEMA)
    assert texts.count == 30
    assert 0.3 < texts.labels.mean() < 0.7
    assert any("film" in text for text in texts.texts)
    assert not any("<|" in text for text in texts.texts)
    with new_run():
        assert plan.release(reviews(), SeededSource(1, "release")) == content


def test_the_card_names_the_model_and_how_it_was_led() -> None:
    plan = a_plan(strength=0.5, temperature=0.9, prompt="Write a mood.")
    content = plan.release(reviews(), SeededSource(2, "card"))
    assert [one.about for one in plan.claims] == ["whole corpus"]
    said = plan.describe(content)
    assert said["text_count"] == 30 and said["column"] == "review"
    assert set(said["tables"]) == {"lengths", "pieces"}
    model = said["language_model"]
    assert (model["name"], model["weights_sha256"]) == ("own", plan.model.weights_sha256)
    assert (model["prompt"], model["strength"], model["temperature"]) == (
        "Write a mood.",
        0.5,
        0.9,
    )
    assert "no guarantee for these" in model["note"]
    assert said["tokeniser_sha256"] == plan.model.tokeniser.sha256


def test_the_prompt_is_what_a_record_is_unless_it_is_named() -> None:
    assert a_plan().decoding.prompt == "Write one review."


@pytest.mark.parametrize(
    "neighbours", [Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE]
)
def test_the_canary_stays_below_the_proof_and_finds_missing_noise(neighbours: Neighbours) -> None:
    plan = a_plan(2.0, neighbours)
    found = audit_canary(plan.canary, 1e-5, f"model {neighbours.value}", games=20_000)
    assert 0.3 < found.epsilon <= plan.proved.epsilon <= 2.0
    planted = audit_canary(
        plan.canary.with_noise(0.3), 1e-5, f"planted model {neighbours.value}", games=20_000
    )
    assert planted.epsilon > plan.proved.epsilon


def test_residuals_are_those_of_the_declared_noise() -> None:
    seen: list[NoisedVector] = []
    a_plan().release(reviews(), SeededSource(4, "watched"), seen.append)
    assert [one.part for one in seen] == ["lengths", "pieces"]


REFUSED: list[tuple[dict[str, Parameter], str]] = [
    ({"language_model": "gpt-5"}, "language_model"),
    ({"language_model": "/etc"}, "language_model"),
    ({"language_model": 3}, "language_model"),
    ({"texts": 0}, "texts"),
    ({"texts": 125_001}, r"texts=125001 a whole number in \[1, 125000\]"),
    ({"strength": 1.5}, "strength"),
    ({"strength": "much"}, "strength"),
    ({"temperature": 0.0}, "temperature"),
    ({"prompt": ""}, "prompt"),
    ({"prompt": "a\nb"}, "prompt"),
    ({"prompt": "a" * 201}, "prompt"),
    ({"prompt": 3}, "prompt"),
    ({"prompt": "9" * 150}, "text=8 at most"),
    ({"public": "imdb"}, "parameters"),
    ({"label": "review"}, "label"),
]


@pytest.mark.parametrize(("parameters", "rule"), REFUSED)
def test_bad_requests_are_refused(parameters: dict[str, Parameter], rule: str) -> None:
    cost = a_plan().spec.cost
    asked = {"language_model": "own", **parameters}
    with pytest.raises(BadParameter, match=rule):
        TextLanguageModelPlan.of(TextSpec.read(SCHEMA, cost, asked))


def test_a_cost_without_delta_long_texts_and_many_classes_are_refused() -> None:
    cost = Guarantee(8.0, Neighbours.RECORD_ADD_REMOVE, model=TrustModel.CENTRAL)
    with pytest.raises(BadParameter, match="delta"):
        TextLanguageModelPlan.of(TextSpec.read(SCHEMA, cost, {"language_model": "own"}))
    long = TextSchema("one review", {"review": POSITIONS}, "mood", SCHEMA.classes)
    with pytest.raises(BadParameter, match="with this model and prompt"):
        a_plan(schema=long)
    many = Categories(tuple(f"mood {number}" for number in range(40)))
    with pytest.raises(BadParameter, match="at most 32 classes"):
        a_plan(schema=TextSchema("one review", {"review": 8}, "mood", many))


def test_what_is_missing_is_named_before_anything_is_charged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(MissingData, match="noisefloor data fetch smollm2-135m"):
        a_plan(language_model="smollm2-135m")
    monkeypatch.setenv(OWN_MODEL_VARIABLE, str(tmp_path))
    with pytest.raises(BadBackbone, match="expected a model directory"):
        a_plan()
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"noisefloor\[text-lm\]"):
        a_plan()


def test_strange_texts_are_published_from() -> None:
    """Emoji, markup, control characters, other scripts, tags alone, marks, a very long text."""
    texts = ["\U0001f600\U0001f600", "<br />", "\x00\x07", "\u65e5\u672c", "film " * 200_000]
    texts.append("<|im_end|><|endoftext|>")
    records = TextRecords.of({"review": texts, "mood": ["good", "bad"] * 3}, SCHEMA, "strange")
    content = a_plan().release(records, SeededSource(7, "strange"))
    assert PseudoTexts.read(content, SCHEMA).count == 30
