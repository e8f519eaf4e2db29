"""What a training of generators will do, and what it proves, before it is done; torch-free.

Printed and corrected are both there. In the paper's variant the noise stands outside of 1/L, so
that it is L times what the budget needs; its vocabulary, seeds and lengths are those of private
documents, and for these nothing is guaranteed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, TypeAlias, get_args

from noisefloor.accounting import ReleaseLoss, SampledGaussian, epsilon_at, parallel, sequential
from noisefloor.checks import check_extra, check_finite, check_probability
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.private_sgd import SgdPlan
from noisefloor.publication.text.generators.shapes import GeneratorShape
from noisefloor.publication.text.generators.text_generator import check_generator_bytes

GeneratorVariant: TypeAlias = Literal["corrected", "paper"]

PRIVATE_PARTS = {
    "vocabulary": "the vocabulary is the most frequent pieces of the private documents: a single "
    "document decides which pieces there are, and their order",
    "seeds": "seeds are drawn from the pieces of the private documents: one that occurs in a "
    "single document is published with it, and never without",
    "lengths": "lengths are those of the private documents, one by one",
}
"""What the paper releases of its documents without noise, and why nothing is guaranteed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorPlan:
    """A training of one generator for all labels, or of one for each label.

    Guarantee:  of all weights, from the noise and the rates that are used. One model: that of its
                training. One for each label: the largest of all under add/remove, since a record
                is in one part; under substitution a record may leave one part and enter another,
                and the two trainings add up. The paper's variant as a whole: none.
    Neighbours: one document there or not, or one document for another.
    Domain:     documents of at most the shape's longest. How many there are of each label is a
                declared figure that sets rates and steps: nobody's data changes it, a neighbour
                that changes a label included, and true counts may differ from it.
    Reference:  Abadi and others 2016, arXiv 1607.00133; McSherry 2009 (parallel composition),
                doi 10.1145/1559845.1559850.

    Attributes:
        shape: Of each model.
        trainings: One for all labels, or one for each in their order.
        delta: At which guarantees are stated.
        variant: As printed or corrected.
        noise_multiplier: Sigma, as an accountant would be given it; in the paper's variant the
            trainings add more.
        dropout: The share of values that a step leaves out.
    """

    shape: GeneratorShape
    trainings: tuple[SgdPlan, ...]
    delta: float
    variant: GeneratorVariant = "corrected"
    noise_multiplier: float = 0.0
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_probability(self.delta, "delta")
        if self.variant not in get_args(GeneratorVariant):
            known = ", ".join(get_args(GeneratorVariant))
            raise BadParameter("variant", self.variant, f"one of {known}")
        if not 0 <= check_finite(self.dropout, "dropout") < 1:
            raise BadParameter("dropout", self.dropout, "in [0, 1)")
        if not self.trainings or (self.shape.classes and len(self.trainings) > 1):
            raise BadParameter("trainings", len(self.trainings), "one, or one for each label")
        if len({one.neighbours for one in self.trainings}) > 1:
            raise BadParameter("trainings", len(self.trainings), "under one relation")
        check_generator_bytes(self.shape, len(self.trainings))

    @classmethod
    def for_budget(
        cls,
        cost: Guarantee,
        shape: GeneratorShape,
        documents: Sequence[int],
        *,
        expected_batch: float,
        epochs: float,
        dropout: float = 0.0,
        **rest: Any,  # Any: other attributes of an SgdPlan
    ) -> "GeneratorPlan":
        """Plan the corrected training with the least noise that keeps to a cost.

        Args:
            cost: Epsilon, a positive delta and the relation, in the central model.
            shape: Of each model; with classes, one model is for all labels.
            documents: How many are declared of each label, in public.
            expected_batch: Documents in a step, on average; of each model.
            epochs: How often each document is seen, on average.
            dropout: The share of values that a step leaves out.
            rest: Other attributes of an ``SgdPlan``.
        """
        check_extra("Text generators", "models", "torch")
        sizes = [sum(documents)] if shape.classes else list(documents)
        own = cost
        if len(sizes) > 1 and cost.neighbours is Neighbours.RECORD_SUBSTITUTE:
            # A record that changes its label is in two trainings: each gets half.
            own = replace(cost, epsilon=cost.epsilon / 2, delta=cost.delta / 2)
        found = {
            size: SgdPlan.for_budget(
                own,
                examples=size,
                expected_batch=min(expected_batch, size),
                epochs=epochs,
                **rest,
            )
            for size in set(sizes)  # to look for the noise takes a while
        }
        trainings = tuple(found[size] for size in sizes)
        least = min(one.noise_multiplier for one in trainings)
        return cls(
            shape=shape,
            trainings=trainings,
            delta=cost.delta,
            noise_multiplier=least,
            dropout=dropout,
        )

    @classmethod
    def as_printed(
        cls,
        shape: GeneratorShape,
        documents: Sequence[int],
        *,
        noise_multiplier: float,
        expected_batch: float,
        epochs: float,
        delta: float,
        neighbours: Neighbours = Neighbours.RECORD_ADD_REMOVE,
        dropout: float = 0.2,
        **rest: Any,  # Any: other attributes of an SgdPlan
    ) -> "GeneratorPlan":
        """Plan the paper's training: noise outside of 1/L, and Adam by its printed lines.

        Line 7 of the algorithm prints a number and not a vector; clipping is as it is meant.

        Args:
            shape: Of each model.
            documents: How many there are of each label.
            noise_multiplier: Sigma.
            expected_batch: L.
            epochs: How often each document is seen, on average.
            delta: At which guarantees are stated.
            neighbours: The relation.
            dropout: The share of values that a step leaves out.
            rest: Other attributes of an ``SgdPlan``.
        """
        check_extra("Text generators", "models", "torch")
        sizes = [sum(documents)] if shape.classes else list(documents)
        trainings = []
        for size in sizes:
            batch = min(expected_batch, size)
            trainings.append(
                SgdPlan(
                    examples=size,
                    expected_batch=batch,
                    steps=max(1, round(epochs * size / batch)),
                    # Noise of sigma C on a mean over L is noise of sigma L C on the sum.
                    noise_multiplier=noise_multiplier * batch,
                    neighbours=neighbours,
                    **{"optimiser": "adam-printed", **rest},
                )
            )
        return cls(
            shape=shape,
            trainings=tuple(trainings),
            delta=delta,
            variant="paper",
            noise_multiplier=noise_multiplier,
            dropout=dropout,
        )

    @property
    def neighbours(self) -> Neighbours:
        """The relation of all guarantees."""
        return self.trainings[0].neighbours

    @property
    def is_paper(self) -> bool:
        """Whether it is the paper's variant."""
        return self.variant == "paper"

    @property
    def weights_guarantee(self) -> Guarantee:
        """What is proved of the weights of all models, by the noise that is added."""
        return self._together([list(one.events) for one in self.trainings])

    @property
    def claimed(self) -> Guarantee:
        """What sigma would give if the noise stood inside of 1/L, as accountants have it.

        The paper prints no numbers. Of the corrected variant it is what is proved.
        """
        if not self.is_paper:
            return self.weights_guarantee
        sigma = self.noise_multiplier
        return self._together(
            [[SampledGaussian(sigma, one.sampling_rate, one.steps)] for one in self.trainings]
        )

    @property
    def parts(self) -> Mapping[str, Guarantee]:
        """What is proved of each part of a release; seeds and lengths of ours are others'."""
        found = {"weights": self.weights_guarantee}
        if self.is_paper:
            for name, reason in PRIVATE_PARTS.items():
                found[name] = Guarantee.none(reason, self.neighbours, TrustModel.CENTRAL)
        return found

    @property
    def guarantee(self) -> Guarantee:
        """What is proved of all parts together."""
        return sequential(self.parts.values()) if self.is_paper else self.weights_guarantee

    @property
    def loss(self) -> ReleaseLoss:
        """The noise of every step that a record may be in.

        Of several trainings a record is in one, or in two if it is substituted: in those of the
        least noise, the highest rate and the most steps, whichever that is.
        """
        events = [event for one in self.trainings for event in one.events]
        worst = SampledGaussian(
            min(event.noise_multiplier for event in events),
            max(event.sampling_rate for event in events),
            max(event.count for event in events),
        )
        is_substitution = self.neighbours is Neighbours.RECORD_SUBSTITUTE
        times = 2 if is_substitution and len(self.trainings) > 1 else 1
        return ReleaseLoss((worst,) * times)

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Write the plan for a card."""
        return {
            "variant": self.variant,
            "shape": self.shape.as_json(),
            "trainings": [one.as_json() for one in self.trainings],
            "dropout": self.dropout,
            "delta": self.delta,
        }

    def _together(self, events: Sequence[list[SampledGaussian]]) -> Guarantee:
        """Return what trainings on the parts of all labels cost together."""
        alone = [epsilon_at(some, self.delta, neighbours=self.neighbours) for some in events]
        if self.neighbours is Neighbours.RECORD_ADD_REMOVE or len(events) == 1:
            return parallel(alone)
        pairs = [
            epsilon_at([*one, *other], self.delta, neighbours=self.neighbours)
            for one, other in combinations(events, 2)
        ]
        return parallel([*alone, *pairs])
