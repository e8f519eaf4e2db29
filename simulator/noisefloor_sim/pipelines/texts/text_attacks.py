"""The analyst's attacks on the last corpus, and what they reach; the truth is for scoring alone.

The analyst has what was published, the public texts, and the side knowledge that each attack
declares. All stand beside the bound of what is proved, where anything is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary import text as adversary
from noisefloor.adversary.audit import AttackOutcome, score, upper_limit
from noisefloor.privacy import Guarantee, LowerBound
from noisefloor.publication.text import Documents
from noisefloor.publication.text.evaluation import residual_idf
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines import releases
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.scoring import attack_metrics, game_metrics
from noisefloor_sim.pipelines.texts.author_games import OTHERS, AuthorGames
from noisefloor_sim.pipelines.texts.bare_plan import bare_plan
from noisefloor_sim.pipelines.texts.block import TextsBlock
from noisefloor_sim.pipelines.texts.boundary_game import play_boundary
from noisefloor_sim.pipelines.texts.corpora import PublishedCorpora
from noisefloor_sim.pipelines.texts.posts import SECRET_WORDS
from noisefloor_sim.pipelines.texts.printed_plan import GENERALISATION, PrintedTextsPlan
from noisefloor_sim.pipelines.texts.text_terms import CorpusTerms
from noisefloor_sim.scenario import Scenario

Pieces = NDArray[np.int64]

ALPHA = 1e-3
"""The probability that what posts with rare words prove is wrong; delta has to be far below."""

AUTHOR_TEXTS = 1_000
"""Published in each game about an author, where their number is free."""

_MISSED = 0.025
"""The probability that the rate of words that were not posted is underestimated."""

_REACH = 5
"""Runs of up to so many pieces are looked for."""


@dataclass(slots=True)
class FoundAttacks:
    """What attacks and audits reached.

    Attributes:
        metrics: Figures of all.
        games: Games with a canary through the noise of the plans.
        corpus: The epsilon that posts with rare words prove, and the same against other coins.
        boundary: The epsilon that games on the boundary of k-anonymity prove.
    """

    metrics: list[Metric] = field(default_factory=list)
    games: releases.CanaryAudit | None = None
    corpus: tuple[LowerBound, LowerBound] | None = None
    boundary: LowerBound | None = None


@dataclass(frozen=True, slots=True)
class TextAttacks:
    """Attacks on the releases of one world.

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

    def canary(self, found: FoundAttacks) -> None:
        """Play the canary of the plans: a text that moves every table as far as any can."""
        if not self.is_proved:
            return
        plans = [one.plan for one in self.corpora.releases]
        source = self.source.child("canary")
        found.games = releases.CanaryAudit.play(plans, None, self.block.canaries, source)
        if found.games is not None:
            found.metrics += found.games.metrics()

    def rare_word(self, found: FoundAttacks) -> None:
        """Guess who posted by whether a text begins with the word that one post alone would have.

        Any text may have a rare word by chance, seldom as its first: seeds are first pieces.
        """
        rare, day = self.corpora.posts.rare, self.corpora.releases[-1].day
        is_due = (self.sent[rare.rows] >= 0) & (self.sent[rare.rows] <= day)
        pieces, is_in = rare.pieces[is_due], rare.is_posted[is_due]
        if is_in.all() or not is_in.any():
            return
        last = self.corpora.last
        begins = last.offsets[:-1][last.lengths > 0]
        firsts = Documents(
            last.pieces[begins], np.arange(len(begins) + 1), last.labels[last.lengths > 0]
        )
        seen = adversary.search_pieces(firsts, pieces) + 0.1 * adversary.search_pieces(
            last, pieces
        )
        # Ties are broken by a coin of their own: a bound counts guesses in an order.
        seen = seen + 0.05 * _uniform(self.source.child("ties"), len(seen))
        made = _audited(seen, is_in, self.stated)
        found.metrics += self._area("rare_word", made)
        other = _uniform(self.source.child("other coins"), len(seen)) < 0.5
        if made.bound is not None and other.any() and not other.all():
            null = _audited(seen, other, self.stated).bound
            if null is not None:
                found.corpus = made.bound, null
                found.metrics += [
                    Metric("attack.rare_word.audited", made.bound.epsilon, n=made.bound.trials),
                    Metric("attack.rare_word.null", null.epsilon, n=null.trials),
                ]
        self._seeds(found, firsts, pieces, is_in)

    def _seeds(
        self, found: FoundAttacks, firsts: Documents, pieces: Pieces, is_in: NDArray[np.bool_]
    ) -> None:
        """Tell how many of the words that were posted are the first of a published text.

        The bound is at the rate of words that were not posted, or what that could be at most.
        """
        chance = self._leak_chance() if isinstance(self.corpora.plan, PrintedTextsPlan) else None
        sought, controls = pieces[is_in], pieces[~is_in]
        outcome = adversary.attack_seeds(
            firsts, sought, self.stated, chance=chance, controls=controls
        )
        seen = int(np.count_nonzero(adversary.search_pieces(firsts, controls)))
        rate = float(upper_limit(seen, len(controls), _MISSED))
        outcome = replace(outcome, bound=self._true_positives(rate, self.stated))
        claimed = self._true_positives(rate, self.cost)
        self._add(found, "seed", outcome, claimed)

    def _true_positives(self, rate: float, guarantee: Guarantee) -> float:
        return float(releases.true_positive_bound(rate, adversary.of_removal(guarantee)))

    def _leak_chance(self) -> float:
        """Return how often the word of one post is among the seeds, by Algorithm 2."""
        corpus, last = self.corpora.collected(), self.corpora.last
        rare = self.corpora.posts.rare
        labels = self.corpora.everything.labels[rare.rows[rare.is_posted]]
        own = corpus.labels[corpus.owners]
        drawn = np.bincount(last.labels)
        return float(
            np.mean(
                [
                    adversary.leak_chance(1, int(np.count_nonzero(own == one)), int(drawn[one]))
                    for one in labels.tolist()
                ]
            )
        )

    def _add(self, found: FoundAttacks, name: str, outcome: AttackOutcome, claimed: float) -> None:
        """Add an outcome beside what is proved, if anything is, and what is claimed."""
        found.metrics += attack_metrics(name, replace(outcome, is_covered=self.is_proved))
        found.metrics.append(Metric(f"attack.{name}.claimed_bound", claimed, n=outcome.n))

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
            if is_last and self.bare is not None:
                scores["bare"] = adversary.occurrence_scores(
                    targets, self.bare, _REACH, public
                ) / np.maximum(targets.lengths, 1)
            for name, values in scores.items():
                made = adversary.attack_membership(values, is_in, self.stated)
                if name == "bare":
                    found.metrics.append(Metric("attack.bare.auc", made.auc, *made.interval))
                    continue
                found.metrics.append(
                    Metric(f"attack.{name}.auc.release_{number}", made.auc, *made.interval)
                )
                if is_last:
                    found.metrics += self._area(name, made)
            if is_last:
                copied = adversary.nearest_scores(targets, targets[is_in], weights, public)
                planted = adversary.attack_membership(copied, is_in, self.stated)
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
        if self.is_proved:
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
        outcome = score(
            guesses.astype(np.int64),
            is_in,
            baseline=0.5,
            bound=adversary.membership_bound(self.stated),
        )
        self._add(found, "length", outcome, adversary.membership_bound(self.cost))

    def exposure(self, found: FoundAttacks) -> None:
        """Rank each secret among all that it could have been."""
        secrets, owners = self.corpora.posts.secrets, self.corpora.releases[-1].owners
        is_there = owners[secrets.rows]
        if not is_there.any():
            return
        made = self._ranked(self.corpora.last, is_there, "exposure")
        if self.bare is not None:
            bare = self._ranked(self.bare, is_there, "exposure bare")
            found.metrics += attack_metrics("exposure_bare", replace(bare.first, is_covered=False))
        claimed = adversary.CanaryExposure(
            made.ranks, made.candidates, adversary.of_removal(self.cost)
        )
        self._add_game(found, "exposure", made.first, claimed.first.bound)
        n = len(made.ranks)
        found.metrics += [
            Metric("attack.exposure.bits", float(made.exposures.mean()), n=n),
            Metric("attack.exposure.bits_by_chance", made.expected_exposure, n=n),
        ]

    def _ranked(
        self, published: Documents, is_there: NDArray[np.bool_], name: str
    ) -> adversary.CanaryExposure:
        """Rank the secrets that are there by their runs in published texts, public ones aside."""
        secrets = self.corpora.posts.secrets
        scores = adversary.occurrence_scores(
            secrets.candidates(), published, SECRET_WORDS, self.corpora.public
        ).reshape(secrets.count, -1)[is_there]
        drawn = secrets.drawn[is_there]
        return adversary.rank_canaries(scores, drawn, self.stated, self.source.child(name))

    def author(self, found: FoundAttacks) -> None:
        """Name the author of corpora by style: where posts are made up, with known authors."""
        if not self.block.is_made_up:
            return
        plan = self.terms.plan(OTHERS + self.block.posts, AUTHOR_TEXTS)
        tokeniser = self.corpora.posts.tokeniser
        games = AuthorGames(self.block, plan, tokeniser, self.source.child("author"))
        outcome = games.play(self.stated)
        self._add_game(found, "author", outcome, outcome.bound)
        if self.bare is not None:
            games = replace(games, plan=bare_plan(plan), source=self.source.child("author bare"))
            bare = games.play(self.stated)
            found.metrics += attack_metrics("author_bare", replace(bare, is_covered=False))

    def k_boundary(self, found: FoundAttacks) -> None:
        """Guess whether there is a k-th text that names a place, where places climb to k."""
        plan = self.corpora.plan
        if not isinstance(plan, PrintedTextsPlan) or GENERALISATION not in plan.parts:
            return
        source = self.source.child("boundary")
        outcome, bound = play_boundary(plan.tokeniser, plan.k, self.cost, ALPHA, source)
        found.boundary = bound
        self._add(found, "boundary", outcome, outcome.bound)
        found.metrics.append(Metric("attack.boundary.audited", bound.epsilon, n=bound.trials))

    def _add_game(
        self, found: FoundAttacks, name: str, outcome: AttackOutcome, claimed: float
    ) -> None:
        """Add the outcome of a choice among several."""
        found.metrics += game_metrics(name, replace(outcome, is_covered=self.is_proved))
        found.metrics.append(Metric(f"attack.{name}.claimed_bound", claimed, n=outcome.n))


_ATTACKS: Mapping[str, Callable[[TextAttacks, FoundAttacks], None]] = {
    "canary": TextAttacks.canary,
    "rare-word": TextAttacks.rare_word,
    "members": TextAttacks.members,
    "lengths": TextAttacks.lengths,
    "exposure": TextAttacks.exposure,
    "author": TextAttacks.author,
    "k-boundary": TextAttacks.k_boundary,
}


def attack_texts(
    scenario: Scenario,
    corpora: PublishedCorpora,
    terms: CorpusTerms,
    sent: NDArray[np.int64],
    source: SeededSource,
) -> FoundAttacks:
    """Mount the attacks that a scenario selects.

    Args:
        scenario: Of the world.
        corpora: What was published, and the truth.
        terms: By which it was published.
        sent: The day on which each post was sent, or would have been.
        source: Of all choices.
    """
    found = FoundAttacks()
    bare = None
    if not terms.is_printed:
        bare = bare_plan(corpora.plan).written(corpora.collected(), source.child("bare"))
    attacks = TextAttacks(corpora, terms, sent, source, bare)
    for name, attack in _ATTACKS.items():
        if scenario.mounts("texts", name):
            attack(attacks, found)
    return found


def _audited(
    seen: NDArray[np.float64], tosses: NDArray[np.bool_], guarantee: Guarantee
) -> adversary.TextMembership:
    """Return how well tosses of a coin are told, and the epsilon that it proves."""
    return adversary.attack_membership(seen, tosses, guarantee, is_fair=True, alpha=ALPHA)


def _uniform(source: SeededSource, count: int) -> NDArray[np.float64]:
    return np.asarray((source.words(count) >> np.uint64(11)) * 2.0**-53)
