"""A user's own texts: budget, publish, fetch, predict, each by one command."""

import csv
import json
from pathlib import Path

import pytest

from noisefloor.errors import BadSnapshot
from noisefloor.publication import read_tensors
from noisefloor.publication.fine_tuning import TextModel, TextModelFile, shared_backbone
from noisefloor.publication.text import load_pseudo_texts
from noisefloor.tables import text_schema_of
from publishing_runs import run
from tiny_backbones import WIDTH, write_piece_file, write_tiny_bert
from tiny_language_models import write_tiny_llama

HEAD = ("--method", "text-head", "--set", "size=300", "--delta", "1e-5")
LAYERS = ("--method", "text-layers", "--set", "size=300", "--delta", "1e-5")
NGRAMS = ("--method", "text-ngrams", "--delta", "1e-5")
LANGUAGE_MODEL = ("--method", "text-language-model", "--delta", "1e-5")
LORA = (*LAYERS, "--set", "trains=lora")
SCHEMA = {
    "record": "one review",
    "columns": {"review": {"text": 6}, "mood": {"categories": ["bad", "good"]}},
    "label": "mood",
}
GOOD, BAD = "good great fine warm clever".split(), "bad poor dull cold weak".split()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, models: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with texts and a budget, on a machine with a tiny backbone."""
    monkeypatch.chdir(tmp_path)
    tiny = models / "tiny"
    if not tiny.is_dir():
        write_piece_file(write_tiny_bert(tiny))
    monkeypatch.setenv("NOISEFLOOR_BACKBONE", str(tiny))
    monkeypatch.setenv("NOISEFLOOR_DATA", str(models / "cache"))
    write_reviews(tmp_path)
    run("ledger", "budget", "reviews.tsv", "--epsilon", "8", "--delta", "1e-4")
    return tmp_path


def write_reviews(folder: Path) -> None:
    rows = ["review\tmood"]
    for place in range(300):
        words, mood = (GOOD, "good") if place % 2 else (BAD, "bad")
        text = f"the {words[place % 5]} and {words[place % 3]} film"
        rows.append(f"{text}{' is a story' if place < 3 else ''}\t{mood}")
    (folder / "reviews.tsv").write_text("\n".join([*rows, ""]))
    (folder / "reviews.schema.json").write_text(json.dumps(SCHEMA))


def test_own_texts_are_published_fetched_and_used_for_predictions() -> None:
    words = ("publish", "reviews.tsv", *HEAD, "--epsilon", "4", "--id", "mood-1")
    made = run(*words)
    assert made.code == 0, made.error
    assert "mood-1: published from reviews by text-head" in made.out
    assert "review: 3 of 300 texts are longer than 6 pieces and were cut" in made.out
    assert "was published before" in run(*words).out
    card = json.loads(run("cards", "mood-1").out)
    assert card["learnt_from"] == ["review"] and card["label"] == "mood"
    assert card["trained"] == ["head"] and card["parameter_count"] == 2 * (3 * WIDTH + 1)
    assert card["backbone"]["weights_sha256"] == shared_backbone().weights_sha256
    assert card["backbone"]["pooled_layers"] == [1, 2, 3]
    assert "made-up texts" in card["training"]["features_scaled_by"]
    assert card["guarantee"] and card["audit"]["is_audited"]
    assert run("fetch", "mood-1", "--out", "here").code == 0
    content = Path("here/mood-1.safetensors").read_bytes()
    assert set(read_tensors(content)) == {"head.weight", "head.bias"}
    Path("new.csv").write_text("review\nthe great and fine film\nthe dull and cold film\n")
    found = run("predict", "here", "new.csv", "--key", "noisefloor-store/publisher.key.pub")
    assert found.code == 0, found.error
    assert [row["mood"] for row in csv.DictReader(found.out.splitlines())] == ["good", "bad"]


def test_made_up_texts_are_published_and_fetched_as_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    write_public(Path("public.tsv"))
    monkeypatch.setenv("NOISEFLOOR_PUBLIC_TEXTS", "public.tsv")
    more = ("--set", "public=own", "--set", "texts=40")
    made = run("publish", "reviews.tsv", *NGRAMS, *more, "--epsilon", "4", "--id", "texts-1")
    assert made.code == 0, made.error
    card = json.loads(run("cards", "texts-1").out)
    assert card["format"] == "jsonl" and card["text_count"] == 40
    assert card["public_texts"]["name"] == "own" and card["audit"]["is_audited"]
    assert card["guarantee"] and card["privacy"][0]["proved"]["epsilon"] <= 4
    assert run("fetch", "texts-1", "--out", "here").code == 0
    rows = [json.loads(line) for line in Path("here/texts-1.jsonl").read_text().splitlines()]
    assert len(rows) == 40 and {frozenset(row) for row in rows} == {frozenset(SCHEMA["columns"])}
    assert {row["mood"] for row in rows} == {"good", "bad"}
    schema = text_schema_of(SCHEMA)
    document = Path("here/texts-1.card.json").read_bytes()
    content = Path("here/texts-1.jsonl").read_bytes()
    key = "noisefloor-store/publisher.key.pub"
    assert load_pseudo_texts(content, document, schema, key).count == 40
    with pytest.raises(BadSnapshot):
        load_pseudo_texts(content + b"\n", document, schema, key)


def test_texts_of_a_language_model_are_published_without_a_backbone(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOISEFLOOR_BACKBONE", str(models / "none"))
    words = ("publish", "reviews.tsv", *LANGUAGE_MODEL, "--epsilon", "4", "--id", "texts-1")
    missing = run(*words)
    assert missing.code == 1 and "noisefloor data fetch smollm2-135m" in missing.error
    monkeypatch.setenv("NOISEFLOOR_LANGUAGE_MODEL", str(write_tiny_llama(models / "language")))
    made = run(*words, "--set", "language_model=own", "--set", "texts=20")
    assert made.code == 0, made.error
    card = json.loads(run("cards", "texts-1").out)
    assert "texts are longer than 6 pieces and were cut" in made.out
    assert card["text_count"] == 20 and card["language_model"]["name"] == "own"
    assert card["language_model"]["prompt"] == "Write one review."
    assert card["guarantee"] and card["audit"]["is_audited"]
    assert run("fetch", "texts-1", "--out", "here").code == 0
    rows = [json.loads(line) for line in Path("here/texts-1.jsonl").read_text().splitlines()]
    assert len(rows) == 20 and {row["mood"] for row in rows} == {"good", "bad"}


def write_public(path: Path) -> None:
    """Write public texts of the words of the tiny encoder."""
    words = (*GOOD, *BAD, *"film plot actor scene story".split())
    rows = [f"the {one} and {other} film\tgood" for one in words for other in words[::3]]
    path.write_text("\n".join(["review\tmood", *rows, ""]))
    path.with_name("public.schema.json").write_text(json.dumps(SCHEMA))


def test_predictions_refuse_another_backbone_and_bad_texts(models: Path) -> None:
    assert run("publish", "reviews.tsv", *HEAD, "--epsilon", "4", "--id", "a").code == 0
    run("fetch", "a", "--out", "here")
    Path("new.csv").write_text('review\n"good"\n""\n')
    found = run("predict", "here", "new.csv")
    assert (found.code, found.out) == (2, "")
    assert "new.csv: column 'review': Expected a text in every row, found an empty" in found.error
    other = models / "other"
    write_tiny_bert(other, seed=5)
    found = run("predict", "here", "reviews.tsv", "--backbone", str(other))
    assert found.code == 2 and "other: is not what this model was trained on" in found.error


BAD_REQUESTS = [
    (
        ("--method", "histogram", "--set", "columns=mood"),
        "one of text-head, text-layers, text-ngrams, text-language-model: the",
    ),
    (("--method", "private-sgd", "--delta", "1e-5"), "the data set is of texts"),
    (("--method", "text-head", "--delta", "1e-5"), "size"),
    (("--method", "text-head", "--set", "size=300"), "delta"),
    ((*HEAD, "--set", "pooled_layers=3,4"), "pooled_layers"),
    ((*HEAD, "--set", "pooled_layers=a"), "pooled_layers"),
    ((*HEAD, "--set", "backbone=/etc"), "parameters"),
    ((*HEAD, "--label", "review"), "label"),
    (LAYERS, "trains='<none>' named: one of full, sparse, rgp, lora, ffa-lora"),
    (("--method", "text-layers", "--set", "size=300", "--set", "trains=lora"), "delta"),
    ((*LORA, "--set", "rank=17"), "the smaller side of layers.0.attention.self.query.weight"),
    ((*LORA, "--set", "train_layers=4"), "train_layers=4 a whole number in [1, 3]"),
    ((*LAYERS, "--set", "trains=combined-lora", "--set", "sparsity=0.999"), "nothing is left of"),
    ((*LORA, "--set", "clipping=printed"), "at least what is proved of text-layers with these"),
    ((*NGRAMS, "--set", "public=reviews"), "public='<text>' one of rotten-tomatoes, imdb"),
    ((*NGRAMS, "--set", "public_weight=2"), "public_weight"),
    ((*NGRAMS, "--set", "texts=0"), "texts"),
    (("--method", "text-ngrams"), "delta"),
    ((*LAYERS, "--set", "trains=plain"), "there is no noise in the model), so that no cost"),
]

BAD_TEXTS = [
    ("review\tmood\n \tgood\n", "column 'review': Expected a text in every row"),
    ("mood\ngood\n", "column 'review'"),
    ("review\tmood\na film\tgreat\n", "column 'mood'"),
]


@pytest.mark.parametrize(("words", "said"), BAD_REQUESTS)
def test_what_cannot_be_published_is_refused_and_costs_nothing(
    words: tuple[str, ...], said: str
) -> None:
    found = run("publish", "reviews.tsv", *words, "--epsilon", "1")
    assert (found.code, found.out) == (2, "")
    assert said in found.error and found.error.count("\n") == 1
    assert "reviews has spent nothing" in run("ledger").out


@pytest.mark.parametrize(("content", "said"), BAD_TEXTS)
def test_texts_that_break_the_schema_are_refused_and_cost_nothing(content: str, said: str) -> None:
    Path("reviews.tsv").write_text(content)
    found = run("publish", "reviews.tsv", *LORA, "--epsilon", "1")
    assert (found.code, found.out) == (2, "")
    assert said in found.error and found.error.count("\n") == 1
    assert "reviews has spent nothing" in run("ledger").out


def test_a_schema_with_one_class_is_refused() -> None:
    columns = {"review": {"text": 6}, "mood": {"categories": ["good"]}}
    Path("reviews.schema.json").write_text(json.dumps({**SCHEMA, "columns": columns}))
    found = run("publish", "reviews.tsv", *LORA, "--epsilon", "1")
    assert (
        found.code == 2
        and "Expected label: 2 to 1000 classes" in found.error
        and found.error.count("\n") == 1
    )


def test_without_a_usable_backbone_nothing_is_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("publish", "reviews.tsv", *LORA, "--epsilon", "1")
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    (pickled / "config.json").write_text("{}")
    (pickled / "pytorch_model.bin").write_bytes(b"cos\nsystem\n")
    monkeypatch.setenv("NOISEFLOOR_BACKBONE", str(pickled))
    found = run(*words)
    assert found.code == 2 and "has pickled weights alone (pytorch_model.bin)" in found.error
    monkeypatch.setenv("NOISEFLOOR_BACKBONE", "none")
    found = run(*words)
    assert found.code == 2 and "none: expected a directory" in found.error
    monkeypatch.delenv("NOISEFLOOR_BACKBONE")
    found = run(*words)
    assert found.code == 1 and "noisefloor data fetch minilm-l6" in found.error
    assert "reviews has spent nothing" in run("ledger").out


def test_adapters_are_published_fetched_and_used_for_predictions() -> None:
    words = ("publish", "reviews.tsv", *LORA, "--epsilon", "6", "--set", "rank=2", "--id", "two")
    dry = run(*words, "--dry-run")
    assert dry.code == 0 and "it would be accepted" in dry.out, dry.error
    assert "reviews has spent nothing" in run("ledger").out
    made = run(*words)
    assert made.code == 0, made.error
    assert "two: published from reviews by text-layers" in made.out
    assert "was published before" in run(*words).out
    card = json.loads(run("cards", "two").out)
    assert card["trained"] == ["head", "adapters of layer 3"]
    assert card["training"]["method"] == "lora" and card["training"]["rank"] == 2
    assert card["architecture"].startswith("adapters of rank 2 on matrices of the top layer of")
    assert card["claims"]["verdict"] == "holds"
    assert card["audit"]["epsilon_at_least"] <= 6 and card["audit"]["verdict"] == "consistent"
    assert run("fetch", "two", "--out", "here").code == 0
    content = Path("here/two.safetensors").read_bytes()
    names = set(read_tensors(content))
    assert {name.partition(".")[0] for name in names} == {"head", "adapters"}
    texts = ["the great and fine film", "the dull and cold film", "a story"]
    Path("new.csv").write_text("\n".join(["review", *texts, ""]))
    found = run("predict", "here", "new.csv")
    assert found.code == 0, found.error
    model = TextModel.on(TextModelFile.read(content), shared_backbone())
    expected = model.predict(texts)  # what noise made of it: no accuracy is tested here
    assert [row["mood"] for row in csv.DictReader(found.out.splitlines())] == expected


def test_a_dry_run_says_what_it_costs() -> None:
    found = run("publish", "reviews.tsv", *HEAD, "--epsilon", "1", "--dry-run")
    assert found.code == 0, found.error
    assert "it would be accepted" in found.out and "nothing stands in for texts" in found.out
