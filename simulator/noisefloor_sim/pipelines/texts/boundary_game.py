"""The boundary of k-anonymity, played by the code that generalises posts."""

import numpy as np

from noisefloor.adversary import text as adversary
from noisefloor.adversary.audit import AttackOutcome, one_run_bound
from noisefloor.privacy import Guarantee, LowerBound
from noisefloor.publication.text import Documents, TextTokeniser
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.texts import made_up_posts
from noisefloor_sim.pipelines.texts.printed_plan import generalised, place_pieces

GAMES = 240


def play_boundary(
    tokeniser: TextTokeniser, k: int, claimed: Guarantee, alpha: float, source: SeededSource
) -> tuple[AttackOutcome, LowerBound]:
    """Guess in each game whether the k-th post that names a city is there.

    Args:
        tokeniser: Of made-up posts.
        k: Of the climb.
        claimed: Of the generalised posts.
        alpha: The probability that the proved epsilon is wrong.
        source: Of cities and draws.

    Returns:
        How often the guess is right, and the epsilon that the games prove.
    """
    first = len(made_up_posts.COUNTRIES) + len(made_up_posts.REGIONS) + 1
    cities = place_pieces(tokeniser)[first:]
    draws = source.generator()
    chosen = cities[draws.integers(0, len(cities), GAMES)]
    truth = draws.random(GAMES) < 0.5
    forms = {
        (int(city), count): _form(int(city), count, k, tokeniser)
        for city in np.unique(chosen)
        for count in (k - 1, k)
    }
    counts = k - 1 + truth.astype(np.int64)
    released = [forms[one] for one in zip(chosen.tolist(), counts.tolist(), strict=True)]
    with_target = [forms[int(city), k] for city in chosen]
    without = [forms[int(city), k - 1] for city in chosen]
    outcome = adversary.attack_k_boundary(released, truth, with_target, without, claimed)
    scores = [
        adversary.guess_presence(*one) for one in zip(released, with_target, without, strict=True)
    ]
    bound = one_run_bound(np.array(scores), truth, alpha=alpha, delta=claimed.delta)
    return outcome, bound


def _form(city: int, count: int, k: int, tokeniser: TextTokeniser) -> dict[str, str]:
    """Return how a city is written that ``count`` posts name; no other place is named."""
    pieces = np.full(count, city, dtype=np.int32)
    offsets, labels = np.arange(count + 1), np.zeros(count, dtype=np.int64)
    done = generalised(Documents(pieces, offsets, labels), tokeniser, k)
    return {str(tokeniser.words[city]): str(tokeniser.words[done.pieces[0]])}
