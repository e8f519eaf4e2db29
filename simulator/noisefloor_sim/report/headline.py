"""The claims of a page in a few sentences: what fails, what protects nothing, what holds.

A claim of an infinite epsilon is unprotected: it is never counted among those that hold. That an
attack found nothing confirms nothing, and is said as well.
"""

import math
from collections.abc import Sequence

from noisefloor.privacy import ClaimVerdict
from noisefloor_sim.report import words
from noisefloor_sim.report.spec import ClaimRow


def headline(rows: Sequence[ClaimRow]) -> str:
    """Return the sentences."""
    if not rows:
        return "Nothing is claimed."
    holding = [row for row in rows if row.verdict == ClaimVerdict.HOLDS]
    unprotected = [row for row in rows if row.verdict == ClaimVerdict.UNPROTECTED]
    known = (ClaimVerdict.HOLDS, ClaimVerdict.UNPROTECTED)
    failing = [row for row in rows if row.verdict not in known]
    parts = [_failing(failing, len(rows)), _unprotected(unprotected, len(rows))]
    parts += [_holding(holding, rows), _undecided(holding)]
    return " ".join(part for part in parts if part)


def _failing(failing: Sequence[ClaimRow], total: int) -> str:
    """Say how many claims do not hold, and by how much at worst."""
    if not failing:
        return ""
    worst = max(failing, key=_excess)
    proved = "nothing" if math.isinf(worst.proved) else words.upper(worst.proved)
    epsilon = worst.audited.epsilon if worst.audited else 0.0
    reached = f", and an attacker reached at least {words.lower(epsilon)}" if epsilon else ""
    variants = ", ".join(sorted({row.variant for row in failing} - {""}))
    where = f" ({variants})" if variants else ""
    claimed = words.upper(worst.claimed)
    return (
        f"{len(failing)} of {total} claims do not hold{where}: at worst {worst.mechanism} claims "
        f"{claimed}, {proved} is proved{reached}."
    )


def _unprotected(unprotected: Sequence[ClaimRow], total: int) -> str:
    """Name what promises nothing."""
    if not unprotected:
        return ""
    names = ", ".join(sorted({row.mechanism for row in unprotected}))
    return f"{len(unprotected)} of {total} claims are unprotected, with no epsilon: {names}."


def _holding(holding: Sequence[ClaimRow], rows: Sequence[ClaimRow]) -> str:
    """Say how many claims hold; of variants all of whose claims do, which they are."""
    if len(holding) == len(rows):
        attacked = sum(row.audited is not None for row in rows)
        tried = f"{attacked} were attacked, and no attack contradicts one" if attacked else ""
        return f"All {len(rows)} claims hold: each is proved; {tried or 'none was attacked'}."
    others = {row.variant for row in rows if row.verdict != ClaimVerdict.HOLDS}
    sound = {row.variant for row in holding} - others
    if sound and sum(row.variant in sound for row in rows) == len(holding):
        plural = "s" if len(sound) > 1 else ""
        return f"All claims of the {', '.join(sorted(sound))} variant{plural} hold."
    return f"{len(holding)} of {len(rows)} claims hold."


def _undecided(holding: Sequence[ClaimRow]) -> str:
    """Say how many audits of claims that hold are worth nothing."""
    audits = [row for row in holding if row.audited is not None]
    silent = [
        row for row in audits if row.audited and not row.audited.could_contradict(row.proved)
    ]
    if not silent:
        return ""
    return (
        f"{len(silent)} of {len(audits)} audits of claims that hold decide nothing: they found "
        "nothing, or could not have shown as much as is proved."
    )


def _excess(row: ClaimRow) -> tuple[float, float]:
    """Rank a claim that fails: by how many times it was passed, by attack and then by proof."""
    claimed = max(row.claimed, 1e-9)
    reached = row.audited.epsilon if row.audited else 0.0
    return reached / claimed, row.proved / claimed
