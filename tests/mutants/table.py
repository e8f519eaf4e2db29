"""All mutants, one small change of the code each."""

from mutants.click_mutants import CLICK_MUTANTS
from mutants.mutant import Mutant
from mutants.wire_mutants import WIRE_MUTANTS

MUTANTS: tuple[Mutant, ...] = (*CLICK_MUTANTS, *WIRE_MUTANTS)
