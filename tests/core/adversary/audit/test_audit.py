"""The auditor, tested both ways: it accuses no correct mechanism, and finds planted faults."""

import json
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from noisefloor.adversary.audit.audit_cases import all_audit_cases, select_cases
from noisefloor.adversary.audit.auditor import (
    AuditCase,
    AuditRow,
    any_broken,
    audit,
    audit_case,
    audit_mechanism,
    bound_from_reports,
)
from noisefloor.errors import BadParameter, UnknownMechanism
from noisefloor.mechanisms import (
    BinaryResponse,
    DiscreteLaplace,
    Mechanism,
    Piecewise,
    UnaryEncoding,
)
from noisefloor.privacy import Claim, Guarantee, LowerBound, Neighbours
from noisefloor.randomness import SeededSource, Source

TRIALS = 60_000
ALPHA = 1e-6
"""The bound of each test below is wrong with this probability."""


ROW_TRIALS = 150_000
"""Enough to find every planted fault: 100,000 were, with three seeds out of three."""


@pytest.fixture(scope="module")
def rows() -> list[AuditRow]:
    cases = all_audit_cases()
    return list(audit(cases, seed=20, trials=ROW_TRIALS, family=len(cases)))


@pytest.mark.slow
def test_every_correct_mechanism_holds_and_every_faulty_one_is_overclaimed(
    rows: list[AuditRow],
) -> None:
    verdicts = {row.case.name: row.verdict for row in rows}
    expected = {row.case.name: "overclaimed" if row.case.faulty else "holds" for row in rows}
    assert verdicts == expected
    assert sum(row.case.faulty for row in rows) == 6
    assert not any_broken(rows)


@pytest.mark.slow
def test_nulls_stay_at_zero_and_planted_faults_are_found(rows: list[AuditRow]) -> None:
    assert [row.case.name for row in rows if row.null.epsilon > 0] == []
    assert [row.case.name for row in rows if not row.planted_found] == []


@pytest.mark.slow
def test_claimed_proved_and_exact_agree_for_correct_mechanisms(rows: list[AuditRow]) -> None:
    for row in rows:
        if not row.case.faulty:
            assert row.claim.proved.epsilon <= row.claim.claimed.epsilon
            assert row.claim.proved.epsilon == pytest.approx(row.claim.claimed.epsilon, abs=1e-6)
        if row.exact is not None and math.isfinite(row.exact):
            assert row.exact == pytest.approx(row.claim.proved.epsilon, abs=1e-6)


@pytest.mark.slow
def test_each_row_is_one_json_object_with_everything_a_reader_needs(rows: list[AuditRow]) -> None:
    fields = {"name", "neighbours", "claimed", "proved", "audited", "confidence", "trials"}
    fields |= {"ceiling", "null", "planted", "verdict"}
    for row in rows:
        written = json.loads(json.dumps(row.as_json(), allow_nan=False))
        assert fields <= written.keys()
    binning = next(row for row in rows if row.case.name == "paper-binning").as_json()
    assert binning["proved"] == "inf"
    assert binning["reason"]


def test_all_verdicts_together_stay_below_the_promised_false_accusations() -> None:
    # What a bound may be wrong with does not depend on the number of trials.
    cases = all_audit_cases()
    rows = audit(cases, seed=20, trials=1_000, family=len(cases))
    risk = sum(2 - row.audited.confidence - row.null.confidence for row in rows)
    assert risk == pytest.approx(1e-4)


class Whole:
    """Reports that are scores: a likelihood for reading them, and nothing that draws."""

    def log_likelihood(self, reports: NDArray[np.float64], value: float) -> NDArray[np.float64]:
        return np.asarray(value * reports / 2, dtype=np.float64)


def test_a_bound_is_that_of_the_held_out_half_by_clopper_and_pearson() -> None:
    # Half of 2,000 reports choose "1", the others count it: 700 and 40 of 1,000.
    first = np.tile(np.repeat([1.0, 0.0], [700, 300]), 2)
    second = np.tile(np.repeat([1.0, 0.0], [40, 960]), 2)
    for delta in (0.0, 0.2):
        found = bound_from_reports(Whole(), [first, second], (1.0, -1.0), alpha=0.01, delta=delta)
        low, high = beta.ppf(0.005, 700, 301), beta.ppf(0.995, 41, 960)
        assert found.epsilon == pytest.approx(math.log((low - delta) / high), rel=1e-9)
        assert (found.confidence, found.trials) == (0.99, 1_000)
        most = math.log((beta.ppf(0.005, 1_000, 1) - delta) / beta.ppf(0.995, 1, 1_000))
        assert found.ceiling == pytest.approx(most, rel=1e-9)


def test_what_chooses_an_event_does_not_judge_it() -> None:
    # The half that chooses says the contrary of the half that is held out.
    first, second = np.repeat([1.0, 0.0], 500), np.repeat([0.0, 1.0], 500)
    for reports in ([first, second], [second, first]):
        assert bound_from_reports(Whole(), reports, (1.0, -1.0), alpha=0.01).epsilon == 0
    # Reports 1 and 2 occur in the held-out half only: a score that is learned from the first
    # quarter does not know them, one that is learned from all would tell them apart.
    unseen = [np.repeat([0, code], 500) for code in (1, 2)]
    assert bound_from_reports(Whole(), unseen, (0.0, 0.0), alpha=0.01).epsilon == 0


class Deaf(BinaryResponse):
    """Randomised response whose draws are all spent: it always tells the truth."""

    __slots__ = ()

    def randomise(self, values: object, source: object) -> NDArray[np.bool_]:
        return np.asarray(values, dtype=np.bool_)


def test_a_mechanism_whose_code_breaks_its_own_proof_is_broken() -> None:
    case = AuditCase("deaf", Deaf, 1.0, Neighbours.USER, (True, False))
    row = audit_case(case, SeededSource(3, "deaf"), trials=TRIALS, alpha=ALPHA)
    assert row.verdict == "broken"
    assert any_broken([row])


def row_of(
    audited: float,
    null: float,
    planted: float,
    *,
    proved: float = 1.0,
    exact: float | None = None,
    faulty: bool = False,
) -> AuditRow:
    """Return the row of a case that claims 1, with what was found put in."""
    case = AuditCase("row", BinaryResponse, 1.0, Neighbours.USER, (True, False), faulty=faulty)
    bounds = [LowerBound(epsilon, 1 - ALPHA, 1_000, 6.0) for epsilon in (audited, null, planted)]
    claim = Claim(case.claimed, Guarantee(proved, Neighbours.USER), bounds[0])
    return AuditRow(case, claim, exact, *bounds[1:])


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (row_of(0.9, 0.0, 1.2), "holds"),
        (row_of(1.0, 0.0, 1.2, exact=1 + 5e-10), "holds"),  # that much is rounding
        (row_of(0.9, 1e-9, 1.2), "blind"),  # the same input twice was distinguished
        (row_of(0.9, 0.0, 1.0), "blind"),  # the planted fault does not pass what is proved
        (row_of(0.0, 0.0, 1.2), "blind"),  # nothing was found
        (row_of(1.1, 0.0, 1.2), "broken"),
        (row_of(1.1, 0.1, 0.9), "broken"),
        (row_of(0.9, 0.0, 1.2, exact=1.01), "broken"),  # by enumeration, not by attack
        (row_of(0.4, 0.0, 1.2, proved=0.5, exact=0.7), "broken"),  # within the claim
        (row_of(0.7, 0.0, 1.2, proved=0.5), "broken"),
        (row_of(1.5, 0.0, 2.5, proved=2.0), "broken"),  # proved, but more than is claimed
        (row_of(0.9, 0.0, 2.5, proved=2.0, exact=1.5), "broken"),
        (row_of(1.5, 0.0, 0.0, proved=2.0, faulty=True), "overclaimed"),
        (row_of(1.0, 0.0, 2.5, proved=2.0, faulty=True), "blind"),
        (row_of(0.9, 0.0, 2.5, proved=2.0, exact=1.5, faulty=True), "overclaimed"),
    ],
)
def test_the_verdict_of_a_row_follows_from_its_numbers(row: AuditRow, verdict: str) -> None:
    assert row.verdict == verdict
    assert any_broken([row]) is (verdict == "broken")


def test_a_planted_fault_is_found_above_what_is_proved_or_for_a_faulty_case_claimed() -> None:
    assert not row_of(0.9, 0.0, 1.5, proved=2.0).planted_found
    assert row_of(0.9, 0.0, 1.5, proved=2.0, faulty=True).planted_found


def test_a_null_that_can_be_distinguished_raises_an_alarm() -> None:
    # A sampler with a memory: two runs on one input differ. Its reports are too many to count, so
    # that only the score of the case's own pair can see it; one of the null's pair is always 0.
    class Remembering(Piecewise):
        __slots__ = ()

        def randomise(self, values: object, source: Source) -> NDArray[np.uint32]:
            value = 1.0 if repr(source).count("first") else -1.0
            return Piecewise.randomise(self, np.full(len(np.asarray(values)), value), source)

    case = AuditCase("memory", Remembering, 1.0, Neighbours.USER, (1.0, -1.0))
    row = audit_case(case, SeededSource(5, "memory"), trials=TRIALS, alpha=ALPHA)
    assert row.null.epsilon > 0.5
    assert row.verdict == "blind"


def test_too_few_trials_make_the_audit_blind_not_content() -> None:
    case = AuditCase("few", BinaryResponse, 0.05, Neighbours.USER, (True, False))
    row = audit_case(case, SeededSource(3, "few"), trials=1_000, alpha=ALPHA)
    assert row.verdict == "blind"
    assert not any_broken([row])


@pytest.mark.statistical
def test_the_bound_is_below_the_truth_and_close_to_it() -> None:
    # False alarm: ALPHA, for each of the two.
    for mechanism, pair in [
        (BinaryResponse(2.0), (True, False)),
        (DiscreteLaplace(2.0, 0, 50), (50, 0)),
    ]:
        assert isinstance(mechanism, Mechanism)
        source = SeededSource(4, type(mechanism).__name__)
        bound = audit_mechanism(mechanism, pair, source, trials=TRIALS, alpha=ALPHA)
        assert 1.7 < bound.epsilon <= 2.0


@pytest.mark.statistical
def test_a_reused_draw_is_found() -> None:
    # Twin of the above: one draw for all bits of a vector, the classical slip. Reports then are
    # the vector or its opposite. The honest likelihood does not see it for this pair; what was
    # learned from the sample does.
    class SharedFlip(UnaryEncoding):
        __slots__ = ()

        def randomise(self, values: object, source: object) -> NDArray[np.bool_]:
            bits = np.asarray(values, dtype=np.bool_)
            flips = SeededSource(9, "coin", repr(source)).bernoulli(self.rise, len(bits))
            return bits ^ flips[:, None]

    good = UnaryEncoding.symmetric(4, 1.0)
    bad = SharedFlip(good.size, good.stay, good.rise, good.most_ones)
    pair = (np.array([True, True, True, False]), np.array([False, False, False, False]))
    bound = audit_mechanism(bad, pair, SeededSource(4, "one"), trials=TRIALS, alpha=ALPHA)
    assert bound.epsilon > good.guarantee().epsilon


def test_the_ceiling_limits_what_any_number_of_trials_reaches() -> None:
    bound = audit_mechanism(
        Deaf(1.0), (True, False), SeededSource(4, "c"), trials=2_000, alpha=ALPHA
    )
    assert bound.epsilon == pytest.approx(bound.ceiling)


def test_same_seed_gives_the_same_row_and_selection_moves_nobody() -> None:
    def run(names: list[str]) -> dict[str, float]:
        from noisefloor.randomness import new_run

        with new_run():
            found = audit(select_cases(names), seed=5, trials=2_000, family=50)
            return {row.case.name: row.audited.epsilon for row in found}

    alone, together = run(["piecewise"]), run(["piecewise", "hybrid"])
    assert alone["piecewise"] == together["piecewise"]


def test_names_are_unique_and_unknown_ones_are_answered_with_a_guess() -> None:
    names = [case.name for case in all_audit_cases()]
    assert len(set(names)) == len(names)
    with pytest.raises(UnknownMechanism, match="Did you mean 'piecewise'"):
        select_cases(["piecewize"])


def test_a_family_smaller_than_the_cases_is_refused() -> None:
    with pytest.raises(BadParameter, match="family"):
        list(audit(all_audit_cases(), seed=1, trials=2_000, family=3))
