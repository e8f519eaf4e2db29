"""All mutants, one small change of the code each."""

from mutants.ads_mutants import ADS_MUTANTS
from mutants.click_mutants import CLICK_MUTANTS
from mutants.collection_mutants import COLLECTION_MUTANTS
from mutants.finetuning_mutants import FINETUNING_MUTANTS
from mutants.mutant import Mutant
from mutants.publisher_mutants import PUBLISHER_MUTANTS
from mutants.text_mutants import TEXT_MUTANTS
from mutants.wire_mutants import WIRE_MUTANTS

MUTANTS: tuple[Mutant, ...] = (
    *CLICK_MUTANTS,
    *WIRE_MUTANTS,
    *ADS_MUTANTS,
    *COLLECTION_MUTANTS,
    *PUBLISHER_MUTANTS,
    *FINETUNING_MUTANTS,
    *TEXT_MUTANTS,
)

SUITE = tuple(mutant for mutant in MUTANTS if mutant.in_suite)
"""Those that the test suite runs, a third: of each flow some."""
