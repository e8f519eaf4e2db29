"""The analyst's attacks on the last corpus, and what they reach; the truth is for scoring alone.

The analyst has what was published, the public texts, and the side knowledge that each attack
declares. All stand beside the bound of what is proved, where anything is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from noisefloor.adversary import text as adversary
from noisefloor.adversary.audit import AttackOutcome, score
from noisefloor.privacy import Guarantee, LowerBound
from noisefloor.publication.text.evaluation import residual_idf
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines import releases
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.scoring import attack_metrics, game_metrics
from noisefloor_sim.pipelines.texts.block import TextsBlock, block_of
from noisefloor_sim.pipelines.texts.corpora import PublishedCorpora
from noisefloor_sim.pipelines.texts.posts import SECRET_WORDS
from noisefloor_sim.scenario import Scenario

ALPHA = 1e-4
"""The probability that what posts with rare words prove is wrong; delta has to be far below."""

_REACH = 5
"""Runs of up to so many pieces are looked for."""


@dataclass(slots=True)
class FoundAttacks:
    """What attacks and audits reached.

    Attributes:
        metrics: Figures of all.
        games: Games with a canary through the noise of the plans.
        corpus: The epsilon that posts with rare words prove, and the same against other coins.
    """

    metrics: list[Metric] = field(default_factory=list)
    games: releases.CanaryAudit | None = None
    corpus: tuple[LowerBound, LowerBound] | None = None


@dataclass(frozen=True, slots=True)
class TextAttacks:
    """Attacks on the releases of one world.

    Attributes:
        block: The settings.
        corpora: What was published, and the truth.
        sent: The day on which each post was sent, or would have been; below 0 for the others.
        source: Of all choices.
    """

    block: TextsBlock
    corpora: PublishedCorpora
    sent: np.ndarray
    source: SeededSource

    @property
    def proved(self) -> Guarantee:
        """Of the last release."""
        return self.corpora.plan.proved

    @property
    def cost(self) -> Guarantee:
        """What is claimed of it."""
        return self.corpora.plan.spec.cost

    def canary(self, found: FoundAttacks) -> None:
        """Play the canary of the plans: a text that moves every table as far as any can."""
        plans = [one.plan for one in self.corpora.releases]
        source = self.source.child("canary")
        found.games = releases.CanaryAudit.play(plans, None, self.block.canaries, source)
        if found.games is not None:
            found.metrics += found.games.metrics()

    def rare_word(self, found: FoundAttacks) -> None:
        """Guess who posted by whether the word is published that one post alone would have."""
        rare, day = self.corpora.posts.rare, self.corpora.releases[-1].day
        sent = self.sent[rare.rows]
        is_due = (sent >= 0) & (sent <= day)
        pieces, is_in = rare.pieces[is_due], rare.is_posted[is_due]
        if is_in.all() or not is_in.any():
            return
        last = self.corpora.last
        begins = last.offsets[:-1][last.lengths > 0]
        first = np.bincount(last.pieces[begins], minlength=self.corpora.size)[pieces]
        # Any text may have a rare word by chance, seldom as its first: seeds are first pieces.
        seen = first + 0.1 * adversary.search_pieces(last, pieces)
        # Ties are broken by a coin of their own: a bound counts guesses in an order.
        seen = seen + 0.05 * _uniform(self.source.child("ties"), len(seen))
        other = _uniform(self.source.child("other coins"), len(seen)) < 0.5
        made = {
            name: adversary.attack_membership(seen, coins, self.proved, is_fair=True, alpha=ALPHA)
            for name, coins in (("rare_word", is_in), ("null", other))
            if coins.any() and not coins.all()
        }
        audited = made["rare_word"].bound
        null = made["null"].bound if "null" in made else None
        if audited is not None and null is not None:
            found.corpus = audited, null
            found.metrics += [
                Metric("attack.rare_word.audited", audited.epsilon, n=audited.trials),
                Metric("attack.rare_word.null", null.epsilon, n=null.trials),
            ]
        found.metrics += self._area("rare_word", made["rare_word"])
        chance = self._leak_chance()
        for guarantee, name in ((self.proved, "bound"), (self.cost, "claimed_bound")):
            outcome = adversary.attack_seeds(
                self.corpora.last,
                pieces[is_in],
                guarantee,
                chance=chance,
                controls=pieces[~is_in],
            )
            if name == "bound":
                found.metrics += attack_metrics("seed", _covered(outcome, guarantee))
            else:
                found.metrics.append(Metric("attack.seed.claimed_bound", outcome.bound))

    def _leak_chance(self) -> float | None:
        """Return how often a seed is a word of one post, where seeds are drawn from posts."""
        return None

    def members(self, found: FoundAttacks) -> None:
        """Tell posted texts from texts that were not, by what lies near to them."""
        for number, one in enumerate(self.corpora.releases):
            published = self.corpora.published[number]
            own = self.corpora.posts.ordinary & one.owners
            most = min(self.block.judged, int(own.sum()), self.corpora.held_out.count)
            if most < 2:
                continue
            source = self.source.child("members", number)
            inside, outside = (
                np.flatnonzero(rows)[source.child(name).permutation(int(rows.sum()))[:most]]
                for name, rows in (("in", own), ("out", self.corpora.posts.is_test))
            )
            targets = self.corpora.everything[np.concatenate([inside, outside])]
            is_in = np.arange(2 * most) < most
            public, size = self.corpora.public, self.corpora.size
            weights = residual_idf(public, size)
            scores = {
                "nearest": adversary.nearest_scores(targets, published, weights, public),
                "runs": adversary.occurrence_scores(targets, published, _REACH, public)
                / np.maximum(targets.lengths, 1),
            }
            is_last = number == len(self.corpora.releases) - 1
            for name, values in scores.items():
                made = adversary.attack_membership(values, is_in, one.plan.proved)
                found.metrics.append(
                    Metric(f"attack.{name}.auc.release_{number}", made.auc, *made.interval)
                )
                if is_last:
                    found.metrics += self._area(name, made)
            if is_last:
                copied = adversary.nearest_scores(targets, targets[is_in], weights, public)
                planted = adversary.attack_membership(copied, is_in, one.plan.proved)
                found.metrics.append(Metric("attack.copied.auc", planted.auc, *planted.interval))

    def _area(self, name: str, made: adversary.TextMembership) -> list[Metric]:
        """Return the area of an attack on membership beside what is proved and claimed."""
        n = len(made.roc.members) + len(made.roc.others)
        claimed = adversary.of_exchange(self.cost)
        metrics = [
            Metric(f"attack.{name}.auc", made.auc, *made.interval, n),
            Metric(f"attack.{name}.claimed_auc", releases.auc_bound(claimed), n=n),
            Metric(f"attack.{name}.advantage", made.roc.advantage, n=n),
        ]
        if self.proved.is_finite:
            metrics.append(Metric(f"attack.{name}.auc_bound", made.area_bound, n=n))
        for rate, true in made.roc.resolved(releases.FALSE_POSITIVE_RATES).items():
            if true is not None:
                metrics.append(Metric(f"attack.{name}.tpr.at_{rate:g}", true, n=n))
        return metrics

    def lengths(self, found: FoundAttacks) -> None:
        """Guess presence from one more published text of a length than the others explain.

        The analyst has all other texts of the corpus; published counts are brought to its size.
        """
        owners = self.corpora.releases[-1].owners
        corpus = self.corpora.everything[owners].lengths
        own = np.flatnonzero(self.corpora.posts.ordinary & owners)[: self.block.judged]
        others = np.flatnonzero(self.corpora.posts.is_test)[: len(own)]
        rows = np.concatenate([own[: len(others)], others])
        is_in = np.arange(len(rows)) < len(others)
        targets, published = self.corpora.everything.lengths[rows], self.corpora.last.lengths
        longest = int(max(some.max(initial=0) for some in (targets, published, corpus)))
        known, seen = (np.bincount(some, minlength=longest + 1) for some in (corpus, published))
        expected = known[targets] - is_in
        guesses = seen[targets] * len(corpus) > expected * len(published)
        for guarantee, name in ((self.proved, "bound"), (self.cost, "claimed_bound")):
            outcome = score(
                guesses.astype(np.int64),
                is_in,
                baseline=0.5,
                bound=adversary.membership_bound(guarantee),
            )
            if name == "bound":
                found.metrics += attack_metrics("length", _covered(outcome, guarantee))
            else:
                found.metrics.append(Metric("attack.length.claimed_bound", outcome.bound))

    def exposure(self, found: FoundAttacks) -> None:
        """Rank each secret among all that it could have been."""
        secrets, owners = self.corpora.posts.secrets, self.corpora.releases[-1].owners
        is_there = owners[secrets.rows]
        if not is_there.any():
            return
        scores = adversary.occurrence_scores(
            secrets.candidates(), self.corpora.last, SECRET_WORDS
        ).reshape(secrets.count, -1)[is_there]
        drawn, source = secrets.drawn[is_there], self.source.child("exposure")
        made = adversary.rank_canaries(scores, drawn, self.proved, source)
        claimed = adversary.CanaryExposure(
            made.ranks, made.candidates, adversary.of_removal(self.cost)
        )
        found.metrics += game_metrics("exposure", _covered(made.first, self.proved))
        n = len(made.ranks)
        found.metrics += [
            Metric("attack.exposure.claimed_bound", claimed.first.bound, n=n),
            Metric("attack.exposure.bits", float(made.exposures.mean()), n=n),
            Metric("attack.exposure.bits_by_chance", made.expected_exposure, n=n),
        ]


_ATTACKS: Mapping[str, Callable[[TextAttacks, FoundAttacks], None]] = {
    "canary": TextAttacks.canary,
    "rare-word": TextAttacks.rare_word,
    "members": TextAttacks.members,
    "lengths": TextAttacks.lengths,
    "exposure": TextAttacks.exposure,
}


def attack_texts(
    scenario: Scenario, corpora: PublishedCorpora, sent: np.ndarray, source: SeededSource
) -> FoundAttacks:
    """Mount the attacks that a scenario selects.

    Args:
        scenario: Of the world.
        corpora: What was published, and the truth.
        sent: The day on which each post was sent, or would have been.
        source: Of all choices.
    """
    found = FoundAttacks()
    attacks = TextAttacks(block_of(scenario), corpora, sent, source)
    for name, attack in _ATTACKS.items():
        if scenario.mounts("texts", name):
            attack(attacks, found)
    return found


def _covered(outcome: AttackOutcome, guarantee: Guarantee) -> AttackOutcome:
    """Leave out the bound of what promises nothing."""
    if guarantee.is_finite:
        return outcome
    return AttackOutcome(
        outcome.right,
        outcome.n,
        outcome.baseline,
        outcome.bound,
        outcome.closed_form,
        is_covered=False,
        candidates=outcome.candidates,
    )


def _uniform(source: SeededSource, count: int) -> np.ndarray:
    return np.asarray((source.words(count) >> np.uint64(11)) * 2.0**-53)
