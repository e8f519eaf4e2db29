"""What the pipeline of texts requests, plans and publishes of collected posts."""

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

from noisefloor import roles
from noisefloor.accounting import integer_guarantee
from noisefloor.errors import BadTable
from noisefloor.privacy import Guarantee
from noisefloor.publication import ResidualObserver, fine_tuning
from noisefloor.publication.methods import Parameter, TextNgramsPlan, TextSpec
from noisefloor.publication.text import TextTokeniser, shared_tokeniser
from noisefloor.publication.text.ngrams import OWN_TEXTS_VARIABLE
from noisefloor.randomness import SeededSource
from noisefloor.tables import TextRecords
from noisefloor.wire.messages import DataSetMessage
from noisefloor_sim.pipelines.releases import (
    ReleaseResiduals,
    data_set_message,
    declared_size,
)
from noisefloor_sim.pipelines.texts import made_up_posts
from noisefloor_sim.pipelines.texts.block import TextsBlock
from noisefloor_sim.pipelines.texts.collected_posts import CollectedPosts
from noisefloor_sim.pipelines.texts.printed_plan import PrintedTextsPlan
from noisefloor_sim.pipelines.texts.text_noise import WithinSteps, declared_noise

_OWN = "own"


@contextmanager
def used_texts(block: TextsBlock) -> Iterator[TextTokeniser]:
    """Let a publisher in this process have the tokeniser and the public texts of a scenario."""
    if not block.is_made_up:
        yield shared_tokeniser()
        return
    before = os.environ.get(OWN_TEXTS_VARIABLE)
    os.environ[OWN_TEXTS_VARIABLE] = os.fspath(made_up_posts.made_up_public())
    try:
        with fine_tuning.using_backbone(made_up_posts.made_up_folder()):
            yield shared_tokeniser()
    finally:
        if before is None:
            del os.environ[OWN_TEXTS_VARIABLE]
        else:
            os.environ[OWN_TEXTS_VARIABLE] = before


@dataclass(frozen=True, slots=True, eq=False)
class CorpusTerms:
    """Releases of texts; each is planned once, since calibration takes seconds.

    Attributes:
        block: The settings.
        kind: Of plans: corrected, or as printed.
        collected: What was collected.
        source: Of what only scoring draws.
        plans: By public size and number of published texts.
        numbers: Of the releases, as they are observed.
    """

    block: TextsBlock
    kind: type[TextNgramsPlan]
    collected: CollectedPosts
    source: SeededSource
    plans: dict[tuple[int, int], TextNgramsPlan] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    @property
    def method(self) -> str:
        """The name of the method of publication."""
        return self.kind.NAME

    @property
    def is_printed(self) -> bool:
        """Whether it is the paper's pipeline that publishes."""
        return self.kind is PrintedTextsPlan

    @property
    def cost(self) -> Guarantee:
        """What one release is claimed to cost."""
        return self.block.cost

    @property
    def message(self) -> DataSetMessage:
        """What a publisher has to know of the data set."""
        return data_set_message(
            self.collected.posts.records.schema,
            self.block.total_budget,
            is_experiment=self.is_printed,
        )

    def parameters(self, size: int, texts: int = 0) -> dict[str, Parameter]:
        """Return the parameters of a request, of as many texts as the settings say if left out."""
        public = _OWN if self.block.is_made_up else self.block.public
        found: dict[str, Parameter] = {
            "size": size,
            "texts": texts or self.block.texts,
            "public": public,
            "public_weight": self.block.public_weight,
        }
        return found | ({"k": self.block.k} if self.is_printed else {})

    def size(self, day: int, owners: NDArray[np.bool_]) -> int:
        """Return the public number of texts: from settings, and not from what was collected."""
        expected = self.collected.posts.expected
        return declared_size(expected, day, self.block.post_over_days)

    def records(self, owners: NDArray[np.bool_]) -> TextRecords:
        """Return what was collected: it came over the bus, and not from the truth."""
        if self.collected.records is None:
            raise BadTable("posts", "Expected a text at least, found none.")
        return self.collected.records

    def plan(self, size: int, texts: int = 0) -> TextNgramsPlan:
        """Plan a release from a public number of texts; no text is looked at."""
        key = (size, texts or self.block.texts)
        if key not in self.plans:
            schema = self.collected.posts.records.schema
            spec = TextSpec.read(schema, self.cost, self.parameters(size, texts))
            with used_texts(self.block):
                self.plans[key] = self.kind.of(spec)
        return self.plans[key]

    def residuals(self, plan: TextNgramsPlan, owners: NDArray[np.bool_]) -> ReleaseResiduals:
        """Return an observer of a release."""
        records = self.records(owners)
        steps = self.source.child("steps", next(self.numbers))
        reference = WithinSteps(records.count, steps, records)
        return ReleaseResiduals(plan, records.count, declared_noise(plan.counting), reference)

    def methods(
        self, data_sets: roles.DataSets, residuals: ResidualObserver
    ) -> Iterable[roles.PublicationMethod]:
        """Return the method of a publisher in this process."""
        return (roles.model_method(self.kind, data_sets, residuals=residuals),)


def accountant_guarantee(plans: Iterable[TextNgramsPlan], delta: float) -> Guarantee | None:
    """Return what all releases cost together by the accountant, or None where it has none."""
    made = list(plans)
    if not all(plan.proved.is_finite for plan in made):
        return None
    parts = [part for plan in made for part in plan.counting.continuous.values()]
    # What integer noise is cut by moves delta on one side, and e**epsilon times that on the other.
    claimed = math.fsum(plan.spec.cost.epsilon for plan in made)
    cut = math.fsum(plan.counting.variation for plan in made) * (1 + math.exp(min(claimed, 700.0)))
    if cut >= delta:
        return None
    return integer_guarantee(parts, delta - cut, made[0].spec.cost.neighbours)
