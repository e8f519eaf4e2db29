"""Entities: mentions of people, places and the like in texts.

    tagger = load_tagger()                     # spaCy's small English pipeline and patterns
    mentions = tagger.tag(texts)               # spans in columns
    tagger.close()                             # ends workers, where there are several processes
    recall_by_kind(gold.mentions, mentions)    # on texts whose mentions are known

``mentions`` has the table, ``tagger`` what all taggers share, ``spacy_tagger``, ``token_tagger``
and ``patterns`` the taggers, ``labels`` how they call the kinds, ``gold_texts`` made-up texts with
known mentions and ``recall`` what a tagger finds of them. spaCy, torch and transformers are
imported on first use.
"""

from noisefloor.publication.text.entities.gold_texts import GoldTexts, gold_texts
from noisefloor.publication.text.entities.loading import PATTERNS, load_tagger
from noisefloor.publication.text.entities.mentions import EntityKind, Mentions, join_mentions
from noisefloor.publication.text.entities.patterns import PatternTagger
from noisefloor.publication.text.entities.recall import RecallCount, recall_by_kind
from noisefloor.publication.text.entities.spacy_tagger import DEFAULT_PIPELINE, SpacyTagger
from noisefloor.publication.text.entities.tagger import CombinedTagger, Tagger
from noisefloor.publication.text.entities.token_tagger import TokenTagger

__all__ = [
    "DEFAULT_PIPELINE",
    "PATTERNS",
    "CombinedTagger",
    "EntityKind",
    "GoldTexts",
    "Mentions",
    "PatternTagger",
    "RecallCount",
    "SpacyTagger",
    "Tagger",
    "TokenTagger",
    "gold_texts",
    "join_mentions",
    "load_tagger",
    "recall_by_kind",
]
