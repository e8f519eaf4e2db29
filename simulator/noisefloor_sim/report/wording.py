"""The claims of a page in a few sentences: what fails, what protects nothing, what holds.

A claim of an infinite epsilon is unprotected: it is never counted among those that hold. That an
attack found nothing confirms nothing, and is said as well.

Numbers and verdicts in the words of the report.

A lower bound is rounded down and an upper bound up: no rounding may make a claim look better than
it is, and an attack that stays below a claim must not be printed as equal to it.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import NamedTuple

from noisefloor.privacy import LowerBound
from noisefloor_sim.report.spec import Cell, ClaimRow

DIGITS = 4  # significant ones, in tables and claims
_AT_THE_END = 0.01  # a bound as near as this to the most that its trials can show is said to be it
HOLDS, UNPROTECTED = "holds", "unprotected"
HEAVIEST_USER = "heaviest-user"
"""The mechanism of the claim that sets a user's whole run against the budget."""


class _VerdictWords(NamedTuple):
    """How a verdict is shown: plain words, its mark, and what it means if it ends a run."""

    plain: str
    severity: str
    meaning: str = ""


# By the words of ``privacy.ClaimVerdict``, from the worst; any other stands before "holds".
_VERDICTS = {
    "broken": _VerdictWords("Broken", "bad", "Proof or code is wrong."),
    "misfit": _VerdictWords("Misfit", "bad", "Reports do not follow their declared distribution."),
    "unaccounted": _VerdictWords("Unaccounted", "bad", "Wire, server and ledger disagree."),
    "overclaimed": _VerdictWords("Overclaimed", "bad"),
    UNPROTECTED: _VerdictWords("Unprotected", "warn"),
    "blind": _VerdictWords("Blind", "warn"),
    "undecided": _VerdictWords("Undecided", "warn"),
    "consistent": _VerdictWords("Consistent", "warn"),
    "": _VerdictWords("", "warn"),
    HOLDS: _VerdictWords("Holds", "ok"),
}
_RANKS = {word: rank for rank, word in enumerate(_VERDICTS)}
_CONTROLS = re.compile(
    # Control characters, marks that change the direction of the text around them, lone surrogates.
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)


def clean(text: str) -> str:
    """Replace what cannot be printed, or would turn its surroundings about, by a visible sign."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def literal(text: str) -> str:
    """Escape what plotly.js would read as markup: it knows tags, links among them."""
    marks = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"}  # $ would begin a formula
    return "".join(marks.get(letter, letter) for letter in clean(text))


def number(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Write a number with four significant digits, thousands apart, infinity as its sign."""
    if math.isnan(value):
        return "\N{EN DASH}"
    if math.isinf(value):
        return "\N{INFINITY}" if value > 0 else "\N{MINUS SIGN}\N{INFINITY}"
    if value == 0:
        return "0"
    is_plain = 1e-4 <= abs(value) < 1e12
    rounded = _rounded(float(value), rounding, keep_units=is_plain)
    if is_plain:
        text = _trimmed(f"{rounded:,f}")
    else:
        digits, exponent = f"{rounded:e}".split("e")
        text = f"{_trimmed(digits)}e{int(exponent)}"
    return text.replace("-", "\N{MINUS SIGN}")


def _rounded(value: float, rounding: str, *, keep_units: bool) -> Decimal:
    """Round to significant digits; float dust is no digit."""
    exact = Decimal(repr(value))
    place = exact.adjusted() - DIGITS + 1
    unit = Decimal(1).scaleb(min(place, 0) if keep_units else place)
    nearest = exact.quantize(unit, ROUND_HALF_EVEN)
    if nearest and abs(exact - nearest) <= abs(exact) * Decimal("1e-12"):
        return nearest
    return exact.quantize(unit, rounding)


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def cell(value: Cell) -> str:
    """Write a cell of a table; nothing is a dash."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else number(value)


def upper(epsilon: float, slack: float = 0.0) -> str:
    """Write a claimed or proved epsilon, rounded up, with its delta if there is one."""
    text = number(epsilon, ROUND_CEILING)
    return f"{text} ({delta(slack)})" if slack else text


def delta(slack: float) -> str:
    """Write a delta, rounded up; pure privacy needs no word."""
    return f"\N{GREEK SMALL LETTER DELTA}\u00a0{number(slack, ROUND_CEILING)}" if slack else ""


def lower(epsilon: float) -> str:
    """Write an audited epsilon, rounded down."""
    return number(epsilon, ROUND_FLOOR)


def confidence(value: float) -> str:
    """Write a confidence; one that is nearly 1 by what is missing."""
    if value > 0.9999 and value < 1:
        missing = number(float(f"{1 - value:.1e}"), ROUND_CEILING)
        return f"1\u00a0\N{MINUS SIGN}\u00a0{missing}"
    return f"{number(100 * value, ROUND_FLOOR)}\u00a0%"


def audited(row: ClaimRow) -> str:
    """Write what an attack reached; of nothing, that it is nothing."""
    if row.audited is None:
        return "\N{EN DASH}"
    if not row.audited.epsilon:
        return "nothing"
    return f"\N{GREATER-THAN OR EQUAL TO}\u00a0{lower(row.audited.epsilon)}"


def audited_how(row: ClaimRow) -> str:
    """Write the confidence of an audit; of one that found nothing, what it could have shown."""
    if row.audited is None:
        return ""
    level = f"at\u00a0{confidence(row.audited.confidence)}"
    return level if row.audited.epsilon else f"of up to\u00a0{_most(row.audited)} {level}"


def severity(row: ClaimRow) -> str:
    """Say how a row is marked: ``bad``, ``warn`` or ``ok``."""
    return _words(row).severity


def verdict(row: ClaimRow) -> str:
    """Say the verdict in plain words; one the page does not know is shown as it is."""
    return _words(row).plain or row.verdict


def ends_a_run(row: ClaimRow) -> bool:
    """Say whether a claim is broken, misfit or unaccounted: a run with one has failed."""
    return bool(_words(row).meaning)


def _words(row: ClaimRow) -> _VerdictWords:
    return _VERDICTS.get(row.verdict, _VERDICTS[""])


def sentence(row: ClaimRow) -> str:
    """Explain the verdict from the three numbers, then give the reason if there is one."""
    parts = [_within(row) if row.verdict == HOLDS else _against(row)]
    parts += [_words(row).meaning] if _words(row).meaning else []
    if row.cause:
        parts.append(_as_sentence(row.cause))
    if row.reason:
        parts.append(_as_sentence(row.reason))
    return " ".join(parts)


def _within(row: ClaimRow) -> str:
    bound = row.audited
    if bound is None:
        return "Proved; not attacked."
    if not bound.epsilon:
        return f"Proved; {_found_nothing(bound)}."
    if not bound.could_contradict(row.proved):
        return f"Proved; the attack could show at most {_most(bound)}, and decides nothing."
    return "The attack stays within what is proved."


def _against(row: ClaimRow) -> str:
    return f"{_claimed(row)}, {_proved(row)}{_audited(row)}."


def _claimed(row: ClaimRow) -> str:
    if math.isinf(row.claimed):
        return "Claims nothing"
    return f"Claims {upper(row.claimed, row.claimed_delta)}"


def _proved(row: ClaimRow) -> str:
    if math.isinf(row.proved):
        return "nothing could be proved"
    return f"proved {upper(row.proved, row.proved_delta)}"


def _audited(row: ClaimRow) -> str:
    bound = row.audited
    if bound is None:
        return "; not attacked"
    if not bound.epsilon:
        return f"; {_found_nothing(bound)}"
    reached = f", an attacker reached at least {lower(bound.epsilon)}"
    if bound.epsilon < bound.ceiling - _AT_THE_END:
        return reached
    return f"{reached}, the most that {bound.trials:,} trials can show"


def _found_nothing(bound: LowerBound) -> str:
    """Say that an attack found nothing, and how much it could have found."""
    return (
        f"the attack found nothing, and {bound.trials:,} trials could have shown {_most(bound)} "
        "at most"
    )


def _most(bound: LowerBound) -> str:
    return number(bound.ceiling, ROUND_CEILING)


def _as_sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def worst_first(rows: Sequence[ClaimRow]) -> list[ClaimRow]:
    """Sort by verdict, then by how far proof and attack pass the claim; ties keep their order."""
    return sorted(
        rows,
        key=lambda row: (
            _rank(row),
            -_ratio(row.proved, row.claimed),
            -_ratio(row.audited.epsilon if row.audited else 0.0, row.claimed),
        ),
    )


def _rank(row: ClaimRow) -> int:
    return _RANKS.get(row.verdict, _RANKS[""])


def _ratio(reached: float, claimed: float) -> float:
    """Return by what factor a claim is passed; nothing passes an infinite one."""
    if math.isinf(claimed) or reached == 0:
        return 0.0
    return reached / claimed if claimed else math.inf


def headline(
    rows: Sequence[ClaimRow],
    *,
    failed_gates: int = 0,
    gates: int = 0,
    faults: Sequence[str] = (),
) -> str:
    """Say what was found about the claims, the worst first.

    Args:
        rows: The claims.
        failed_gates: How many gates of the run failed: then nothing is said to hold as a whole.
        gates: How many gates there are.
        faults: What was found at fault in flows that no claim is about, likewise.
    """
    parts = [f"{failed_gates} of {gates} gates failed."] if failed_gates else []
    parts += [_as_sentence(fault) for fault in faults[:1]]
    if not rows:
        return " ".join([*parts, "Nothing is claimed."])
    broken = [row for row in rows if ends_a_run(row)]
    failing = [row for row in rows if severity(row) == "bad" and not ends_a_run(row)]
    proved_rows = [row for row in rows if row.verdict == HOLDS]
    unprotected = [row for row in rows if row.verdict == UNPROTECTED]
    parts += [_broken(broken, len(rows)), _failing(failing, len(rows)), _heaviest(rows)]
    parts += [_unprotected(unprotected, len(rows)), _others(rows)]
    parts += [
        _proved_rows(proved_rows, rows, is_sound=not (broken or failed_gates or faults)),
        _undecided(proved_rows),
    ]
    return " ".join(part for part in parts if part)


def _broken(broken: Sequence[ClaimRow], total: int) -> str:
    """Name the claims that end a run, each verdict with its worst claim, flow and cause."""
    parts = []
    for word in dict.fromkeys(row.verdict for row in worst_first(broken)):
        some = [row for row in worst_first(broken) if row.verdict == word]
        worst = some[0]
        where = " ".join(part for part in (worst.pipeline, worst.mechanism) if part)
        cause = worst.cause or sentence(worst)
        parts.append(
            f"{len(some)} of {total} claims: {verdict(worst).lower()}. {where}: "
            f"{cause.rstrip('.')}."
        )
    return " ".join(parts)


def _heaviest(rows: Sequence[ClaimRow]) -> str:
    """Set what is proved of the heaviest user's whole run against the claim, at its worst."""
    found = [row for row in rows if row.mechanism == HEAVIEST_USER]
    if not found:
        return ""
    worst = max(found, key=lambda row: (_ratio(row.proved, row.claimed), row.proved))
    where = f" ({worst.point})" if worst.point else ""
    return (
        f"The heaviest user{where}: {upper(worst.proved)} is proved of the whole run, where "
        f"{upper(worst.claimed)} is claimed."
    )


def _failing(failing: Sequence[ClaimRow], total: int) -> str:
    """Say how many claims do not hold, and by how much at worst."""
    if not failing:
        return ""
    worst = max(failing, key=_excess)
    proved = "nothing" if math.isinf(worst.proved) else upper(worst.proved)
    epsilon = worst.audited.epsilon if worst.audited else 0.0
    reached = f", and an attacker reached at least {lower(epsilon)}" if epsilon else ""
    variants = ", ".join(sorted({row.variant for row in failing} - {""}))
    where = f" ({variants})" if variants else ""
    claimed = upper(worst.claimed)
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


def _others(rows: Sequence[ClaimRow]) -> str:
    """Count the claims of which nothing is decided, by their verdicts."""
    known = (UNPROTECTED, HOLDS)
    others = [row for row in rows if severity(row) == "warn" and row.verdict not in known]
    counts = Counter(verdict(row).lower() for row in worst_first(others))
    return " ".join(f"{times} of {len(rows)} claims: {word}." for word, times in counts.items())


def _proved_rows(
    proved_rows: Sequence[ClaimRow], rows: Sequence[ClaimRow], *, is_sound: bool
) -> str:
    """Say how many claims hold; of variants all of whose claims do, which they are.

    Of a run that failed only the number is said.
    """
    if not is_sound:
        return f"{len(proved_rows)} of {len(rows)} claims hold."
    if len(proved_rows) == len(rows):
        attacked = sum(row.audited is not None for row in rows)
        tried = f"{attacked} were attacked, and no attack contradicts one" if attacked else ""
        return f"All {len(rows)} claims hold: each is proved; {tried or 'none was attacked'}."
    others = {row.variant for row in rows if row.verdict != HOLDS}
    sound = {row.variant for row in proved_rows} - others - {""}
    if sound and sum(row.variant in sound for row in rows) == len(proved_rows):
        plural = "s" if len(sound) > 1 else ""
        return f"All claims of the {', '.join(sorted(sound))} variant{plural} hold."
    return f"{len(proved_rows)} of {len(rows)} claims hold."


def _undecided(proved_rows: Sequence[ClaimRow]) -> str:
    """Say how many audits of claims that hold are worth nothing."""
    audits = [row for row in proved_rows if row.audited is not None]
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
