"""What pipelines that publish from a data set share: the holder, its releases, and their audit.

``data_holder`` publishes what ``arrivals`` brought; ``residuals`` and ``release_fit`` compare the
releases with what ``declared_noise`` says and with the ledger; ``canary_audit`` and
``shadow_models`` attack them; ``spending`` says what all of them cost.
"""

from noisefloor_sim.pipelines.releases.arrivals import (
    NEVER,
    Arrivals,
    declared_size,
    publishing,
    release_days,
)
from noisefloor_sim.pipelines.releases.canary_audit import ALPHA, CanaryAudit
from noisefloor_sim.pipelines.releases.data_holder import (
    DataHolder,
    PublicationTerms,
    Release,
    check_card,
    use_one_thread,
)
from noisefloor_sim.pipelines.releases.declared_noise import (
    FLOATS,
    STEP,
    DeclaredPart,
    ReleaseNoise,
    longest_of,
    sgd_noise,
    single_part,
)
from noisefloor_sim.pipelines.releases.label_scores import accuracy_metric, label_log_odds
from noisefloor_sim.pipelines.releases.release_claims import (
    claims_of,
    model_metrics,
    planned_claims,
)
from noisefloor_sim.pipelines.releases.release_fit import (
    FLOW,
    ReleaseFit,
    fit_releases,
    ledger_faults,
)
from noisefloor_sim.pipelines.releases.release_plan import (
    AnyPlan,
    charged_loss,
    data_set_message,
    planned_ledger,
)
from noisefloor_sim.pipelines.releases.release_tables import (
    named_groups,
    noise_table,
    release_table,
    shared_curves,
)
from noisefloor_sim.pipelines.releases.residuals import ReleaseResiduals
from noisefloor_sim.pipelines.releases.roc_metrics import (
    FALSE_POSITIVE_RATES,
    auc_bound,
    auc_metric,
    roc_curve_metrics,
    true_positive_bound,
)
from noisefloor_sim.pipelines.releases.shadow_models import ShadowModelAttack, play_membership
from noisefloor_sim.pipelines.releases.spending import all_releases_guarantee, spending_metrics

__all__ = [
    "ALPHA",
    "FALSE_POSITIVE_RATES",
    "FLOATS",
    "FLOW",
    "NEVER",
    "STEP",
    "AnyPlan",
    "Arrivals",
    "CanaryAudit",
    "DataHolder",
    "DeclaredPart",
    "PublicationTerms",
    "Release",
    "ReleaseFit",
    "ReleaseNoise",
    "ReleaseResiduals",
    "ShadowModelAttack",
    "accuracy_metric",
    "all_releases_guarantee",
    "auc_bound",
    "auc_metric",
    "charged_loss",
    "check_card",
    "claims_of",
    "data_set_message",
    "declared_size",
    "fit_releases",
    "label_log_odds",
    "ledger_faults",
    "longest_of",
    "model_metrics",
    "named_groups",
    "noise_table",
    "planned_claims",
    "planned_ledger",
    "play_membership",
    "publishing",
    "release_days",
    "release_table",
    "roc_curve_metrics",
    "sgd_noise",
    "shared_curves",
    "single_part",
    "spending_metrics",
    "true_positive_bound",
    "use_one_thread",
]
