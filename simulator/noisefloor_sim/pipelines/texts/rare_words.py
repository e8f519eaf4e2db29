"""Who posted a rare word: posts with a word of their own, each posted with probability 1/2.

The analyst knows the words. A text that begins with one shows that its post is there, unless such
words come up without it: those whose post is not there say how often.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary import text as adversary
from noisefloor.adversary.audit import upper_limit
from noisefloor.privacy import Guarantee
from noisefloor.publication.text import Documents
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines import releases
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.texts.attack_setting import (
    AttackSetting,
    FoundAttacks,
    audit_alpha,
)
from noisefloor_sim.pipelines.texts.printed_plan import PrintedTextsPlan

_MISSED = 0.025
"""The probability that the rate of words that were not posted is underestimated."""

Pieces = NDArray[np.int64]
Flags = NDArray[np.bool_]


def attack_rare_words(setting: AttackSetting, found: FoundAttacks) -> None:
    """Guess who posted by whether a text begins with the word that one post alone would have.

    Any text may have a rare word by chance, seldom as its first: seeds are first pieces.
    """
    rare, day = setting.corpora.posts.rare, setting.corpora.releases[-1].day
    is_due = (setting.sent[rare.rows] >= 0) & (setting.sent[rare.rows] <= day)
    pieces, is_in = rare.pieces[is_due], rare.is_posted[is_due]
    if is_in.all() or not is_in.any():
        return
    last, source = setting.corpora.last, setting.source.child("rare words")
    seen = adversary.search_pieces(first_pieces(last), pieces)
    # Ties are broken by draws of their own: a bound counts guesses in an order.
    scores = (
        seen
        + 0.1 * adversary.search_pieces(last, pieces)
        + 0.05 * source.child("ties").uniforms(len(seen))
    )
    made = _audited(scores, is_in, setting.stated)
    found.metrics += setting.area("rare_word", made)
    other = source.child("other tosses").uniforms(len(seen)) < 0.5
    if made.bound is not None and other.any() and not other.all():
        null = _audited(scores, other, setting.stated).bound
        if null is not None:
            found.corpus = made.bound, null
            found.metrics += [
                Metric("attack.rare_word.audited", made.bound.epsilon, n=made.bound.trials),
                Metric("attack.rare_word.null", null.epsilon, n=null.trials),
            ]
    _add_seeds(setting, found, "seed", last, pieces, is_in)
    most = setting.block.searched
    if most:
        more = searched_texts(setting, most, source.child("searched"))
        _add_seeds(setting, found, "search", more, pieces, is_in)
        found.metrics.append(Metric("attack.search.texts", float(more.count)))


def searched_texts(setting: AttackSetting, most: int, source: SeededSource) -> Documents:
    """Return at least ``most`` texts, made as those of the last release were."""
    plan, posts = setting.corpora.plan, setting.corpora.collected()
    if isinstance(plan, PrintedTextsPlan):
        plan = replace(plan, repeats=-(-most // posts.count))
    else:
        plan = replace(plan, texts=most)
    return plan.written(posts, source)


def first_pieces(texts: Documents) -> Documents:
    """Return the first piece of each text that has one."""
    has_some = texts.lengths > 0
    begins = texts.offsets[:-1][has_some]
    return Documents(texts.pieces[begins], np.arange(len(begins) + 1), texts.labels[has_some])


def _add_seeds(
    setting: AttackSetting,
    found: FoundAttacks,
    name: str,
    published: Documents,
    pieces: Pieces,
    is_in: Flags,
) -> None:
    """Count how many of the words that were posted are the first of a published text.

    The bound is at the rate of words that were not posted, or what that could be at most.
    """
    firsts, controls = first_pieces(published), pieces[~is_in]
    is_printed = isinstance(setting.corpora.plan, PrintedTextsPlan)
    chance = _leak_chance(setting, published) if is_printed else None
    outcome = adversary.attack_seeds(
        firsts, pieces[is_in], setting.stated, chance=chance, controls=controls
    )
    seen = int(np.count_nonzero(adversary.search_pieces(firsts, controls)))
    rate = float(upper_limit(seen, len(controls), _MISSED))
    setting.add(found, name, outcome, _true_positives(rate, setting.cost))


def _true_positives(rate: float, guarantee: Guarantee) -> float:
    return float(releases.true_positive_bound(rate, adversary.of_removal(guarantee)))


def _leak_chance(setting: AttackSetting, published: Documents) -> float:
    """Return how often the word of one post is among the seeds, by Algorithm 2."""
    corpus, rare = setting.corpora.collected(), setting.corpora.posts.rare
    labels = setting.corpora.everything.labels[rare.rows[rare.is_posted]]
    pieces = np.bincount(corpus.labels[corpus.owners])
    drawn = np.bincount(published.labels)
    chances = [
        adversary.leak_chance(1, int(pieces[one]), int(drawn[one])) for one in labels.tolist()
    ]
    return float(np.mean(chances))


def _audited(
    seen: NDArray[np.float64], tosses: NDArray[np.bool_], guarantee: Guarantee
) -> adversary.TextMembership:
    """Return how well fair draws are guessed, and the epsilon that it proves."""
    alpha = audit_alpha(guarantee.delta)
    return adversary.attack_membership(seen, tosses, guarantee, is_fair=True, alpha=alpha)
