"""Made-up remarks and a made-up encoder, for tests and where nothing was fetched.

They are an explicit choice of a scenario (``source: made-up``, ``backbone: made-up``), and the
page says so. A remark has a mood; words of that mood are nine times as frequent in it as those of
the other, so that a model that learns both lists predicts it. The encoder is a random BERT
of a few layers, the same at each run: random layers keep apart what words there are.
"""

import atexit
import json
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.randomness import Generator, SeededSource
from noisefloor.tables import Categories, TextRecords, TextSchema
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import cohort_sizes

Moods = NDArray[np.int64]

GOOD = "good great fine warm clever bright rich sharp lovely strong fresh honest".split()
BAD = "bad poor dull cold weak flat thin stale ugly slow false empty".split()
OTHER = (
    "the a an of and is was it this that very quite film plot actor scene story music light "
    "camera end start part role voice word song crowd"
).split()

SCHEMA = TextSchema("one remark", {"text": 16}, "mood", Categories(("bad", "good")))
SHORTEST, LONGEST = 8, 14
_SAYS_A_MOOD, _SAYS_ITS_OWN = 0.6, 0.9

NAME = "made-up"
WIDTH, LAYERS, HEADS, INNER, POSITIONS, SEED = 32, 3, 2, 48, 24, 11
_MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def made_up_remarks(scenario: Scenario, source: SeededSource) -> TextRecords:
    """Draw a remark for each user, cohort by cohort: more users move nobody else's."""
    full = scenario.population.cohort
    sizes = cohort_sizes(scenario.population.users, full)
    drawn = [
        _cohort(full, source.child("remarks", number).generator(), size)
        for number, size in enumerate(sizes)
    ]
    texts = np.array([text for some, _ in drawn for text in some], dtype=object)
    moods = np.concatenate([some for _, some in drawn])
    table = {"text": texts, "mood": np.array(SCHEMA.classes.values, dtype=object)[moods]}
    return TextRecords.of(table, SCHEMA, NAME)


def _cohort(count: int, draws: Generator, size: int) -> tuple[list[str], Moods]:
    moods = draws.integers(0, 2, count)
    lengths = draws.integers(SHORTEST, LONGEST + 1, count)
    says = draws.random((count, LONGEST)) < _SAYS_A_MOOD
    own = draws.random((count, LONGEST)) < _SAYS_ITS_OWN
    which = draws.random((count, LONGEST))
    texts = []
    for row in range(size):
        words = []
        for place in range(int(lengths[row])):
            is_good = bool(moods[row]) == bool(own[row, place])
            pool = (GOOD if is_good else BAD) if says[row, place] else OTHER
            words.append(pool[int(which[row, place] * len(pool))])
        texts.append(" ".join(words))
    return texts, moods[:size]


@lru_cache(maxsize=1)
def made_up_backbone() -> Path:
    """Return the directory of the made-up encoder, which is removed when the process ends."""
    import torch
    from safetensors.torch import save_file
    from transformers import BertConfig, BertModel

    kept = tempfile.TemporaryDirectory(prefix="noisefloor-backbone-")
    atexit.register(kept.cleanup)
    folder = Path(kept.name) / NAME
    folder.mkdir()
    vocabulary = (*_MARKS, *GOOD, *BAD, *OTHER)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=INNER,
        max_position_embeddings=POSITIONS,
    )
    model: Any = BertModel(config)  # type: ignore[no-untyped-call]
    weights = SeededSource(SEED, NAME, "weights").generator()
    with torch.no_grad():
        for parameter in model.parameters():
            values = weights.normal(0.0, 0.3, tuple(parameter.shape)).astype(np.float32)
            parameter.copy_(torch.from_numpy(values))
    config.save_pretrained(folder)
    save_file(model.state_dict(), folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "vocab.txt").write_text("\n".join((*vocabulary, "")), encoding="utf-8")
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder
