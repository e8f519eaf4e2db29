"""What every attack uses: Bayes' guesses, outcomes with intervals, ROC curves, and audits."""

from noisefloor.adversary.audit.audit_cases import all_audit_cases, select_cases
from noisefloor.adversary.audit.auditor import (
    PLANTED_FACTOR,
    AuditCase,
    AuditRow,
    any_broken,
    audit,
    bound_from_reports,
)
from noisefloor.adversary.audit.bayes import (
    Guess,
    Prior,
    ReportDistribution,
    bayes_guess,
    binomial_distribution,
    check_prior,
    grouped,
    majority_success,
    most_probable,
    pair_success,
    posterior,
    vector_success,
)
from noisefloor.adversary.audit.group_curve import LEAST_SHARE, GroupCurve
from noisefloor.adversary.audit.held_out import held_out_bound
from noisefloor.adversary.audit.intervals import (
    ceiling,
    lower_limit,
    true_positive_rate,
    upper_limit,
)
from noisefloor.adversary.audit.observations import (
    compositions,
    counts_distribution,
    counts_table,
    exact_success,
    is_listable,
    likelihood_table,
    merged,
    success_from,
    success_of,
)
from noisefloor.adversary.audit.one_run import WELL_ABOVE, has_power, one_run_bound
from noisefloor.adversary.audit.outcome import AttackOutcome, Indices, draw_truth, score
from noisefloor.adversary.audit.roc import REPORTED_RATES, RocCurve
from noisefloor.adversary.audit.witness_bound import (
    WITNESS_ALPHA,
    bound_from_guesses,
    guesses_of,
)

__all__ = [
    "LEAST_SHARE",
    "PLANTED_FACTOR",
    "REPORTED_RATES",
    "WELL_ABOVE",
    "WITNESS_ALPHA",
    "AttackOutcome",
    "AuditCase",
    "AuditRow",
    "GroupCurve",
    "Guess",
    "Indices",
    "Prior",
    "ReportDistribution",
    "RocCurve",
    "all_audit_cases",
    "any_broken",
    "audit",
    "bayes_guess",
    "binomial_distribution",
    "bound_from_guesses",
    "bound_from_reports",
    "ceiling",
    "check_prior",
    "compositions",
    "counts_distribution",
    "counts_table",
    "draw_truth",
    "exact_success",
    "grouped",
    "guesses_of",
    "has_power",
    "held_out_bound",
    "is_listable",
    "likelihood_table",
    "lower_limit",
    "majority_success",
    "merged",
    "most_probable",
    "one_run_bound",
    "pair_success",
    "posterior",
    "score",
    "select_cases",
    "success_from",
    "success_of",
    "true_positive_rate",
    "upper_limit",
    "vector_success",
]
