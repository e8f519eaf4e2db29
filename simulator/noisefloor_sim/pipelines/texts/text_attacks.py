"""The analyst's attacks on the last corpus, and what they reach; the truth is for scoring alone.

The analyst has what was published, the public texts, and the side knowledge that each attack
declares. All stand beside the bound of what is proved, where anything is.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary import text as adversary
from noisefloor.adversary.audit import AttackOutcome, score
from noisefloor.publication.text import Documents
from noisefloor.publication.text.evaluation import residual_idf
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines import releases
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.scoring import attack_metrics
from noisefloor_sim.pipelines.texts.attack_setting import (
    AttackSetting,
    FoundAttacks,
    audit_alpha,
)
from noisefloor_sim.pipelines.texts.author_games import OTHERS, AuthorGames
from noisefloor_sim.pipelines.texts.bare_plan import bare_plan
from noisefloor_sim.pipelines.texts.boundary_game import play_boundary
from noisefloor_sim.pipelines.texts.corpora import PublishedCorpora
from noisefloor_sim.pipelines.texts.posts import SECRET_WORDS
from noisefloor_sim.pipelines.texts.printed_plan import GENERALISATION, PrintedTextsPlan
from noisefloor_sim.pipelines.texts.rare_words import attack_rare_words
from noisefloor_sim.pipelines.texts.text_terms import CorpusTerms
from noisefloor_sim.scenario import Scenario

AUTHOR_TEXTS = 1_000
"""Published in each game about an author, where their number is free."""

_REACH = 5
"""The longest runs that are searched for, in pieces."""


def _canary(setting: AttackSetting, found: FoundAttacks) -> None:
    """Play the canary of the plans: a text that moves every table as far as any can."""
    if not setting.is_proved:
        return
    plans = [one.plan for one in setting.corpora.releases]
    source = setting.source.child("canary")
    found.games = releases.CanaryAudit.play(plans, None, setting.block.canaries, source)
    if found.games is not None:
        found.metrics += found.games.metrics()


def _members(setting: AttackSetting, found: FoundAttacks) -> None:
    """Infer whether texts were posted from what lies near to them."""
    for number, one in enumerate(setting.corpora.releases):
        published = setting.corpora.published[number]
        own = setting.corpora.posts.ordinary & one.owners
        most = min(setting.block.judged, int(own.sum()), setting.corpora.held_out.count)
        if most < 2:
            continue
        source = setting.source.child("members", number)
        inside, outside = (
            np.flatnonzero(rows)[source.child(name).permutation(int(rows.sum()))[:most]]
            for name, rows in (("in", own), ("out", setting.corpora.posts.is_test))
        )
        targets = setting.corpora.everything[np.concatenate([inside, outside])]
        is_in = np.arange(2 * most) < most
        public, size = setting.corpora.public, setting.corpora.size
        weights = residual_idf(public, size)
        scores = {
            "nearest": adversary.nearest_scores(targets, published, weights, public),
            "runs": adversary.occurrence_scores(targets, published, _REACH, public)
            / np.maximum(targets.lengths, 1),
        }
        is_last = number == len(setting.corpora.releases) - 1
        if is_last and setting.bare is not None:
            scores["bare"] = adversary.occurrence_scores(
                targets, setting.bare, _REACH, public
            ) / np.maximum(targets.lengths, 1)
        for name, values in scores.items():
            made = adversary.attack_membership(values, is_in, setting.stated)
            if name == "bare":
                found.metrics.append(Metric("attack.bare.auc", made.auc, *made.interval))
                continue
            found.metrics.append(
                Metric(f"attack.{name}.auc.release_{number}", made.auc, *made.interval)
            )
            if is_last:
                found.metrics += setting.area(name, made)
        if is_last:
            copied = adversary.nearest_scores(targets, targets[is_in], weights, public)
            planted = adversary.attack_membership(copied, is_in, setting.stated)
            found.metrics.append(Metric("attack.copied.auc", planted.auc, *planted.interval))


def _lengths(setting: AttackSetting, found: FoundAttacks) -> None:
    """Guess presence from one more published text of a length than the others explain.

    The analyst has all other texts of the corpus; published counts are brought to its size. All
    guesses about one length follow from one published count: a length is a game, not a target.
    """
    owners = setting.corpora.releases[-1].owners
    corpus = setting.corpora.everything[owners].lengths
    own = np.flatnonzero(setting.corpora.posts.ordinary & owners)[: setting.block.judged]
    others = np.flatnonzero(setting.corpora.posts.is_test)[: len(own)]
    rows = np.concatenate([own[: len(others)], others])
    is_in = np.arange(len(rows)) < len(others)
    targets, published = setting.corpora.everything.lengths[rows], setting.corpora.last.lengths
    longest = int(max(some.max(initial=0) for some in (targets, published, corpus)))
    known, seen = (np.bincount(some, minlength=longest + 1) for some in (corpus, published))
    expected = known[targets] - is_in
    guesses = seen[targets] * len(corpus) > expected * len(published)
    outcome = score(
        guesses.astype(np.int64),
        is_in,
        baseline=0.5,
        bound=adversary.membership_bound(setting.stated),
    )
    _add_games(setting, found, outcome, np.bincount(targets)[np.unique(targets)] / len(targets))


def _add_games(
    setting: AttackSetting,
    found: FoundAttacks,
    outcome: AttackOutcome,
    shares: NDArray[np.float64],
) -> None:
    """Add the guesses by lengths: each length is one game, with its share of the targets."""
    own = FoundAttacks()
    setting.add(own, "length", outcome, adversary.membership_bound(setting.cost))
    low, high = mean_interval(outcome.success, shares)
    for metric in own.metrics:
        known = replace(metric, n=len(shares))
        is_success = metric.name == "attack.length.success"
        found.metrics.append(replace(known, low=low, high=high) if is_success else known)


def mean_interval(mean: float, shares: NDArray[np.float64]) -> tuple[float, float]:
    """Return a 95 % interval by Hoeffding's inequality for a mean of independent games.

    Args:
        mean: Of results in [0, 1].
        shares: The weight of each game in it; they add up to 1.
    """
    half = math.sqrt(math.log(2 / 0.05) / 2 * float(np.sum(shares**2)))
    return max(0.0, mean - half), min(1.0, mean + half)


def _exposure(setting: AttackSetting, found: FoundAttacks) -> None:
    """Rank each secret among all that it could have been."""
    secrets, owners = setting.corpora.posts.secrets, setting.corpora.releases[-1].owners
    is_there = owners[secrets.rows]
    if not is_there.any():
        return
    made = _ranked(setting, setting.corpora.last, is_there, "exposure")
    if setting.bare is not None:
        bare = _ranked(setting, setting.bare, is_there, "exposure bare")
        found.metrics += attack_metrics("exposure_bare", replace(bare.first, is_covered=False))
    claimed = adversary.CanaryExposure(
        made.ranks, made.candidates, adversary.of_removal(setting.cost)
    )
    setting.add_game(found, "exposure", made.first, claimed.first.bound)
    n = len(made.ranks)
    found.metrics += [
        Metric("attack.exposure.bits", float(made.exposures.mean()), n=n),
        Metric("attack.exposure.bits_by_chance", made.expected_exposure, n=n),
    ]


def _ranked(
    setting: AttackSetting, published: Documents, is_there: NDArray[np.bool_], name: str
) -> adversary.CanaryExposure:
    """Rank the secrets that are there by their runs in published texts, public ones aside."""
    secrets = setting.corpora.posts.secrets
    scores = adversary.occurrence_scores(
        secrets.candidates(), published, SECRET_WORDS, setting.corpora.public
    ).reshape(secrets.count, -1)[is_there]
    drawn = secrets.drawn[is_there]
    return adversary.rank_canaries(scores, drawn, setting.stated, setting.source.child(name))


def _author(setting: AttackSetting, found: FoundAttacks) -> None:
    """Name the author of corpora by style: where posts are made up, with known authors."""
    if not setting.block.is_made_up:
        return
    plan = setting.terms.plan(OTHERS + setting.block.posts, AUTHOR_TEXTS)
    tokeniser = setting.corpora.posts.tokeniser
    games = AuthorGames(setting.block, plan, tokeniser, setting.source.child("author"))
    outcome = games.play(setting.stated)
    claimed = adversary.authorship_bound(setting.cost, setting.block.authors, setting.block.posts)
    setting.add_game(found, "author", outcome, claimed)
    if setting.bare is not None:
        games = replace(games, plan=bare_plan(plan), source=setting.source.child("author bare"))
        bare = games.play(setting.stated)
        found.metrics += attack_metrics("author_bare", replace(bare, is_covered=False))


def _k_boundary(setting: AttackSetting, found: FoundAttacks) -> None:
    """Guess whether there is a k-th text that names a place, where places climb to k."""
    plan = setting.corpora.plan
    if not isinstance(plan, PrintedTextsPlan) or GENERALISATION not in plan.parts:
        return
    source = setting.source.child("boundary")
    alpha = audit_alpha(setting.cost.delta)
    outcome, bound = play_boundary(plan.tokeniser, plan.k, setting.cost, alpha, source)
    found.boundary = bound
    setting.add(found, "boundary", outcome, outcome.bound)
    found.metrics.append(Metric("attack.boundary.audited", bound.epsilon, n=bound.trials))


_ATTACKS: Mapping[str, Callable[[AttackSetting, FoundAttacks], None]] = {
    "canary": _canary,
    "rare-word": attack_rare_words,
    "members": _members,
    "lengths": _lengths,
    "exposure": _exposure,
    "author": _author,
    "k-boundary": _k_boundary,
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
    setting = AttackSetting(corpora, terms, sent, source, bare)
    for name, attack in _ATTACKS.items():
        if scenario.mounts("texts", name):
            attack(setting, found)
    return found
