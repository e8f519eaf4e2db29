"""Who holds which text, who never gives it away, and what the frozen encoder makes of all of them.

A row belongs to the side of training or to that of tests, for the whole run. Nobody shares a text:
where there are more users than rows, the scenario is refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadTable
from noisefloor.publication import fine_tuning
from noisefloor.publication.fine_tuning import Backbone, FrozenStore, TokenTable
from noisefloor.randomness import SeededSource
from noisefloor.tables import TextRecords, load_texts
from noisefloor_sim.pipelines.finetuning import made_up_texts
from noisefloor_sim.pipelines.finetuning.block import MADE_UP, FinetuningBlock, block_of
from noisefloor_sim.scenario import Scenario

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class UserTexts:
    """The text of every user of one world.

    Attributes:
        records: A row for each user.
        is_test: Whose text is never given to the data holder.
    """

    records: TextRecords
    is_test: NDArray[np.bool_]

    @classmethod
    def of(cls, scenario: Scenario) -> "UserTexts":
        """Load or draw what a scenario names; a data set that was not fetched is an error."""
        block = block_of(scenario)
        source = SeededSource(scenario.seed, "pipeline", "finetuning")
        if block.source == MADE_UP:
            records = made_up_texts.made_up_remarks(scenario, source)
        else:
            records = _rows(load_source(block), scenario.population.users, block.source, source)
        _check_classes(block.source, records)
        return cls(records, _split(records.count, block.test_share, source))

    @property
    def users(self) -> int:
        """How many there are."""
        return self.records.count

    @property
    def owners(self) -> int:
        """How many give their texts to the data holder, if all of them come: a public figure."""
        return int(np.count_nonzero(~self.is_test))


def _rows(table: TextRecords, users: int, name: str, source: SeededSource) -> TextRecords:
    if users > table.count:
        rule = f"Expected a text for each of {users} users, found {table.count}."
        raise BadTable(name, rule)
    return table[source.child("held").generator().permutation(table.count)[:users]]


def _check_classes(name: str, records: TextRecords) -> None:
    if len(np.unique(records.labels)) < 2:
        rule = "Expected two classes of the label at least, found one: nothing could be learnt."
        raise BadTable(name, rule, records.schema.label)


def _split(count: int, share: float, source: SeededSource) -> NDArray[np.bool_]:
    """Return which texts are kept back: the same share of them, whatever is drawn."""
    kept = min(max(1, round(count * share)), count - 1)
    is_test = np.zeros(count, dtype=np.bool_)
    is_test[source.child("split").generator().permutation(count)[:kept]] = True
    return is_test


@lru_cache(maxsize=2)
def _loaded(source: str) -> TextRecords:
    return load_texts(source)


def load_source(block: FinetuningBlock) -> TextRecords:
    """Load the texts of a data set by its name, or of a file with its schema beside it."""
    return _loaded(block.source)


def backbone_source(block: FinetuningBlock) -> str | Path:
    """Return where the encoder is: a directory, or the name of one that is fetched."""
    return made_up_texts.made_up_backbone() if block.backbone == MADE_UP else block.backbone


@dataclass(frozen=True, slots=True, eq=False)
class FrozenTexts:
    """What the frozen encoder makes of all users' texts, run once.

    Attributes:
        backbone: The encoder.
        store: Keeps its outputs.
        tokens: The pieces of all texts.
    """

    backbone: Backbone
    store: FrozenStore
    tokens: TokenTable

    @property
    def cut(self) -> int:
        """How many texts were longer than their longest length."""
        return sum(self.tokens.cut.values())

    def fill(self, train_layers: int) -> None:
        """Run the frozen layers on all texts at once, unless that was done.

        Floats depend a little on which texts run together: so no training depends on which was
        made before it, and a sweep gives the same bytes on any number of processes.

        Args:
            train_layers: Top layers that are trained; what a head needs is kept in any case.
        """
        pooled = pooled_layers(self.backbone)
        with self.used():
            for layers in sorted({0, train_layers}):
                fine_tuning.run_frozen(self.backbone, self.tokens, pooled, train_layers=layers)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let publisher, evaluation and attacks take the encoder and its outputs from here."""
        with fine_tuning.using_backbone(self.backbone.folder), fine_tuning.kept_by(self.store):
            yield

    def features(self, records: TextRecords) -> Floats:
        """Return the scaled features of some records, on which a head is trained."""
        pooled = pooled_layers(self.backbone)
        tokens = fine_tuning.tokenise(self.backbone, records.schema, records.texts, "records")
        with self.used():
            found = fine_tuning.run_frozen(self.backbone, tokens, pooled).pooled
        return fine_tuning.public_scaling(self.backbone, pooled).scaled(found)


def pooled_layers(backbone: Backbone) -> tuple[int, ...]:
    """Return the layers whose means are features: the last three, as methods have them."""
    return tuple(range(max(1, backbone.depth - 2), backbone.depth + 1))


_STORES: dict[tuple[object, ...], FrozenTexts] = {}
"""Of the last data set: points of a sweep run one after another, and seldom differ in it."""


def frozen_texts(block: FinetuningBlock, seed: int, texts: UserTexts) -> FrozenTexts:
    """Return the frozen encoder for all texts of a world; that of the point before if it fits.

    Args:
        block: The settings.
        seed: Of the world.
        texts: Of its users.
    """
    with fine_tuning.using_backbone(backbone_source(block)):
        backbone = fine_tuning.shared_backbone()
    records = texts.records
    tokens = fine_tuning.tokenise(backbone, records.schema, records.texts, block.source)
    key = (seed, block.source, records.count, id(backbone), hash(tokens.ids.tobytes()))
    if key not in _STORES:
        _STORES.clear()
        _STORES[key] = FrozenTexts(backbone, FrozenStore(backbone), tokens)
    return _STORES[key]
