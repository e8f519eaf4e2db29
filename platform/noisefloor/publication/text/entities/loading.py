"""Taggers by name: a pipeline of spaCy, a model of a directory, or patterns alone."""

from pathlib import Path

from noisefloor.publication.text.entities.patterns import FORMAL_KINDS, PatternTagger
from noisefloor.publication.text.entities.spacy_tagger import DEFAULT_PIPELINE, SpacyTagger
from noisefloor.publication.text.entities.tagger import CombinedTagger, Tagger
from noisefloor.publication.text.entities.token_tagger import TokenTagger

PATTERNS = "patterns"
"""The name of the tagger that needs no library."""

_SPACY_CONFIG = "config.cfg"


def load_tagger(name: str = DEFAULT_PIPELINE, *, processes: int = 1) -> Tagger:
    """Return a tagger, with patterns for e-mail addresses and handles beside it.

    Args:
        name: ``patterns``, an installed pipeline of spaCy, or the directory of a pipeline or of a
            token-classification model.
        processes: Workers of a pipeline; models and patterns run here.

    Raises:
        MissingExtra: Libraries are not installed; the text has the command.
        MissingTagger: There is no pipeline of that name; likewise.
        BadBackbone: The directory holds no model.
    """
    if name == PATTERNS:
        return PatternTagger()
    formal = PatternTagger(FORMAL_KINDS)
    folder = Path(name)
    if folder.is_dir() and not (folder / _SPACY_CONFIG).is_file():
        return CombinedTagger((TokenTagger(folder), formal))
    return CombinedTagger((SpacyTagger(name, processes=processes), formal))
