"""What attacks on published texts share: what was published, bounds, and metrics of figures."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary import text as adversary
from noisefloor.adversary.audit import WELL_ABOVE, AttackOutcome
from noisefloor.privacy import Guarantee, LowerBound
from noisefloor.publication.text import Documents
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines import releases
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.scoring import attack_metrics, game_metrics
from noisefloor_sim.pipelines.texts.block import TextsBlock
from noisefloor_sim.pipelines.texts.corpora import PublishedCorpora
from noisefloor_sim.pipelines.texts.text_terms import CorpusTerms

_ALPHA, _MOST_ALPHA = 1e-7, 1e-3


def audit_alpha(delta: float) -> float:
    """Return the probability that an audited epsilon of these attacks is wrong.

    1e-7 as elsewhere, where delta lets an audit see anything at that; else a hundred times delta,
    and 1e-3 at most: a run of correct code is called broken that often.
    """
    return min(_MOST_ALPHA, max(_ALPHA, WELL_ABOVE * delta))


@dataclass(slots=True)
class FoundAttacks:
    """What attacks and audits reached.

    Attributes:
        metrics: Figures of all.
        games: Games with a canary through the noise of the plans.
        corpus: The epsilon that posts with rare words prove, and the same against other draws.
        boundary: The epsilon that games on the boundary of k-anonymity prove.
    """

    metrics: list[Metric] = field(default_factory=list)
    games: releases.CanaryAudit | None = None
    corpus: tuple[LowerBound, LowerBound] | None = None
    boundary: LowerBound | None = None


@dataclass(frozen=True, slots=True)
class AttackSetting:
    """The releases of one world, as attacks find them.

    Attributes:
        corpora: What was published, and the truth.
        terms: By which it was.
        sent: The day on which each post was sent, or would have been; below 0 for the others.
        source: Of all choices.
        bare: Texts like those of the last release, with next to no noise; None beside the
            paper's pipeline, which leaks without that.
    """

    corpora: PublishedCorpora
    terms: CorpusTerms
    sent: NDArray[np.int64]
    source: SeededSource
    bare: Documents | None

    @property
    def block(self) -> TextsBlock:
        """The settings."""
        return self.terms.block

    @property
    def cost(self) -> Guarantee:
        """What is claimed of the last release."""
        return self.corpora.plan.spec.cost

    @property
    def is_proved(self) -> bool:
        """Whether anything is proved of it."""
        return self.corpora.plan.proved.is_finite

    @property
    def stated(self) -> Guarantee:
        """What bounds are stated by: what is proved, or claimed where that is nothing."""
        return self.corpora.plan.proved if self.is_proved else self.cost

    def add(self, found: FoundAttacks, name: str, outcome: AttackOutcome, claimed: float) -> None:
        """Add an outcome beside what is proved, if anything is, and what is claimed."""
        found.metrics += attack_metrics(name, replace(outcome, is_covered=self.is_proved))
        found.metrics.append(Metric(f"attack.{name}.claimed_bound", claimed, n=outcome.n))

    def add_game(
        self, found: FoundAttacks, name: str, outcome: AttackOutcome, claimed: float
    ) -> None:
        """Add the outcome of a choice among several."""
        found.metrics += game_metrics(name, replace(outcome, is_covered=self.is_proved))
        found.metrics.append(Metric(f"attack.{name}.claimed_bound", claimed, n=outcome.n))

    def area(self, name: str, made: adversary.TextMembership) -> list[Metric]:
        """Return the area of an attack on membership beside what is proved and claimed."""
        n = len(made.roc.members) + len(made.roc.others)
        claimed = adversary.of_exchange(self.cost)
        metrics = [
            Metric(f"attack.{name}.auc", made.auc, *made.interval, n),
            Metric(f"attack.{name}.claimed_auc", releases.auc_bound(claimed), n=n),
            Metric(f"attack.{name}.advantage", made.roc.advantage, n=n),
        ]
        if self.is_proved:
            metrics.append(Metric(f"attack.{name}.auc_bound", made.area_bound, n=n))
        for rate, true in made.roc.resolved(releases.FALSE_POSITIVE_RATES).items():
            if true is not None:
                metrics.append(Metric(f"attack.{name}.tpr.at_{rate:g}", true, n=n))
        return metrics
