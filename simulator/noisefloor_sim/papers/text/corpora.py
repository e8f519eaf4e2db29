"""The texts of a reproduction: read, cut into pieces and tagged once, then kept on disk.

Workers read the same files. They are as private as the texts, stay in the run directory while it
is unfinished, and are removed with the last cell.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.publication.text import Documents, TextTokeniser, shared_tokeniser
from noisefloor.publication.text.entities import (
    EntityKind,
    Mentions,
    RecallCount,
    gold_texts,
    load_tagger,
    recall_by_kind,
)
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables import TextRecords, folds, load_texts
from noisefloor_sim.papers.text.plans import CHARACTERS, PAPER_KINDS, PARTS, TextRunPlan

DEFAULT_DATA = "imdb"
FULL_LENGTH = ("imdb",)
"""Data of which only texts of the full length are used, so that all are equally long."""

PUBLIC_DATA = "rotten-tomatoes"
LEAST_RECORDS, GOLD_TEXTS = 50, 100
LEAST_PIECES = 2
_AT_ONCE = 256
_PRIVATE, _PUBLIC = ("pieces", "offsets", "labels"), ("public_pieces", "public_offsets")
_SPANS = ("documents", "starts", "ends", "kinds")
_LONGEST = "longest"

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class CorpusTexts:
    """The texts of a run.

    Attributes:
        texts: As they are generalised: without marks of HTML, cut to some characters.
        documents: The same, cut into pieces.
        public: Texts of another data set, which count as public.
        longest: Pieces of a text at most.
    """

    texts: list[str]
    documents: Documents
    public: Documents
    longest: int

    @property
    def count(self) -> int:
        """How many private texts."""
        return self.documents.count


@dataclass(frozen=True, slots=True, eq=False)
class PreparedCorpus:
    """What cells read.

    Attributes:
        texts: Of all records.
        documents: The same as pieces.
        public: As in ``CorpusTexts``.
        mentions: Of people, places and organisations, in all texts.
        longest: As in ``CorpusTexts``: from the plan and the schema, and no text's own length.
    """

    texts: list[str]
    documents: Documents
    public: Documents
    mentions: Mentions
    longest: int


def load_corpus(data: str, public: str, plan: TextRunPlan) -> CorpusTexts:
    """Return the texts of a run: all of them, or as many of a seeded order as the plan says.

    Texts that stand twice are taken once; of IMDB those that are shorter than the longest length
    are left out. Which are chosen depends on how many there are: guarantees are of those chosen.

    Raises:
        BadParameter: They are too few, of one or of more than two classes, or not private.
    """
    if data == public:
        raise BadParameter("public", public, "another data set than the private one")
    records = load_texts(data)
    if records.schema.classes.size != 2 or len(records.schema.texts) != 1:
        raise BadParameter("data", "<texts>", "one column of texts, of two classes")
    tokeniser = shared_tokeniser()
    longest = min(plan.longest, *records.schema.texts.values())
    if data in FULL_LENGTH:
        longest = plan.longest
    chosen, documents = _chosen(records, tokeniser, longest, plan, full=data in FULL_LENGTH)
    counts = np.bincount(documents.labels, minlength=2)
    if documents.count < LEAST_RECORDS or counts.min() < PARTS:
        rule = f"at least {LEAST_RECORDS} different texts of {LEAST_PIECES} pieces or more"
        raise BadParameter("data", "<texts>", f"{rule}, and {PARTS} of each class")
    others = load_texts(public)
    pieces, offsets = tokeniser.cut(next(iter(others.texts.values())), longest)
    known = Documents(pieces, offsets, np.zeros(len(offsets) - 1, dtype=np.int64))
    known = known[np.flatnonzero(known.lengths >= LEAST_PIECES)]
    return CorpusTexts(chosen, documents, known, longest)


def _chosen(
    records: TextRecords, tokeniser: TextTokeniser, longest: int, plan: TextRunPlan, *, full: bool
) -> tuple[list[str], Documents]:
    """Return texts that are long enough, in the order of the records."""
    column = next(iter(records.texts.values()))
    rows = _first_rows(column)
    with new_run():
        order = SeededSource(plan.seed, "text", "records").permutation(len(rows))
    needed = plan.records or len(rows)
    labels = _labels(records)
    taken = len(rows) if not plan.records else min(len(rows), needed + needed // 10 + 10)
    while True:
        some = np.sort(rows[order[:taken]]) if taken == len(rows) else rows[order[:taken]]
        texts = [_shortened(str(column[row]), longest) for row in some]
        pieces, offsets = tokeniser.cut(texts, longest)
        documents = Documents(pieces, offsets, labels[some])
        least = longest if full else LEAST_PIECES
        kept = np.flatnonzero(documents.lengths >= least)[:needed]
        if len(kept) == needed or taken == len(rows):
            return [texts[row] for row in kept], documents[kept]
        taken = min(len(rows), 2 * taken)


def _first_rows(column: NDArray[np.object_]) -> Rows:
    """Return the rows of texts that do not stand further up."""
    first: dict[str, int] = {}
    for row, text in enumerate(column.tolist()):
        first.setdefault(text, row)
    return np.fromiter(first.values(), dtype=np.int64, count=len(first))


def _labels(records: TextRecords) -> Rows:
    """Return 1 for the class whose name comes last in order: 1, good, pos; 0 for the other."""
    names = [str(value) for value in records.schema.classes.values]
    return np.asarray(records.labels == names.index(max(names)), dtype=np.int64)


def _shortened(text: str, longest: int) -> str:
    """Return what is read of a text: a cut that depends on it alone, after a word if it can."""
    whole = text.replace("<br />", " ")
    end = CHARACTERS * longest
    if len(whole) <= end:
        return whole
    last = whole.rfind(" ", end // 2, end)
    return whole[: last if last > 0 else end]


def corpus_sha256(texts: CorpusTexts) -> str:
    """Return the hash of texts, labels and public pieces, by which a run is known again."""
    digest = hashlib.sha256()
    for text, label in zip(texts.texts, texts.documents.labels.tolist(), strict=True):
        digest.update(f"{label}\0{text}\0".encode("utf-8", "surrogatepass"))
    for array in (texts.public.pieces, texts.public.offsets):
        digest.update(np.ascontiguousarray(array.astype("<i8")).tobytes())
    return digest.hexdigest()


def tagger_recall(plan: TextRunPlan) -> Mapping[EntityKind, RecallCount]:
    """Return what the tagger finds of names in made-up texts whose names are known."""
    with new_run():
        gold = gold_texts(GOLD_TEXTS, SeededSource(plan.seed, "text", "gold"))
    tagger = load_tagger(plan.tagger)
    found = recall_by_kind(gold.mentions, tagger.tag(gold.texts))
    return {kind: found[kind] for kind in PAPER_KINDS}


def prepare(
    corpus: CorpusTexts,
    plan: TextRunPlan,
    folder: Path,
    jobs: int,
    progress: Callable[[int], None],
) -> None:
    """Tag all texts and keep what cells need in a folder, whole or not at all."""
    if folder.is_dir():
        return
    tagger = load_tagger(plan.tagger, processes=jobs)
    parts = []
    try:
        for start in range(0, corpus.count, _AT_ONCE * jobs):
            some = corpus.texts[start : start + _AT_ONCE * jobs]
            parts.append((start, tagger.tag(some)))
            progress(len(some))
    finally:
        tagger.close()
    draft = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    documents, public = corpus.documents, corpus.public
    arrays: dict[str, NDArray[Any]] = dict(  # Any: whole numbers of several widths
        zip(_PRIVATE, (documents.pieces, documents.offsets, documents.labels), strict=True)
    )
    arrays |= dict(zip(_PUBLIC, (public.pieces, public.offsets), strict=True))
    arrays[_LONGEST] = np.array(corpus.longest)
    spans = [(start + one.documents, one.starts, one.ends, one.kinds) for start, one in parts]
    for name, columns in zip(_SPANS, zip(*spans, strict=True), strict=True):
        arrays[name] = np.concatenate(columns)
    for name, array in arrays.items():
        np.save(draft / f"{name}.npy", array, allow_pickle=False)
    (draft / "texts.json").write_text(json.dumps(corpus.texts), encoding="utf-8")
    os.replace(draft, folder)


@lru_cache(maxsize=1)
def read_prepared(folder: Path) -> PreparedCorpus:
    """Return what was kept."""
    arrays = {
        name: np.load(folder / f"{name}.npy", allow_pickle=False)
        for name in (*_PRIVATE, *_PUBLIC, *_SPANS, _LONGEST)
    }
    texts = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    documents = Documents(*(arrays[name] for name in _PRIVATE))
    pieces, offsets = (arrays[name] for name in _PUBLIC)
    public = Documents(pieces, offsets, np.zeros(len(offsets) - 1, dtype=np.int64))
    is_named = np.isin(arrays["kinds"], [int(kind) for kind in PAPER_KINDS])
    spans = [arrays[name][is_named] for name in _SPANS]
    mentions = Mentions.of(texts, *spans)
    return PreparedCorpus(texts, documents, public, mentions, int(arrays[_LONGEST]))


def split_rows(count: int, plan: TextRunPlan, split: int) -> tuple[Rows, Rows]:
    """Return which texts are learnt from in a split, and which judge."""
    repetition, part = divmod(split, PARTS)
    with new_run():
        source = SeededSource(plan.seed, "text", "splits", repetition)
        judges = folds(count, PARTS, source) == part
    return np.flatnonzero(~judges), np.flatnonzero(judges)
