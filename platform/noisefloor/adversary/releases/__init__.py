"""Attacks on releases with a known distribution of noise, and on synthetic tables."""

from noisefloor.adversary.releases.attribute_inference import (
    attack_attribute,
    guess_by_confidence,
    population_prior,
)
from noisefloor.adversary.releases.differencing import WeeklyRelease, blind_game, newcomer_game
from noisefloor.adversary.releases.informed_adversary import InformedGame, gaussian_pair_success
from noisefloor.adversary.releases.nearest_records import (
    Codes,
    area_margin,
    area_under_curve,
    attack_nearest,
)
from noisefloor.adversary.releases.noise_distributions import CellNoiseDistribution
from noisefloor.adversary.releases.reconstruction_bounds import as_substitution, candidate_bound
from noisefloor.adversary.releases.residuals import (
    DeclaredNoise,
    NoiseShape,
    ResidualFit,
    ResidualGroup,
    ResidualTest,
    finds_quarter_less,
    fit_residuals,
    rate_test,
)

__all__ = [
    "CellNoiseDistribution",
    "Codes",
    "DeclaredNoise",
    "InformedGame",
    "NoiseShape",
    "ResidualFit",
    "ResidualGroup",
    "ResidualTest",
    "WeeklyRelease",
    "area_margin",
    "area_under_curve",
    "as_substitution",
    "attack_attribute",
    "attack_nearest",
    "blind_game",
    "candidate_bound",
    "finds_quarter_less",
    "fit_residuals",
    "gaussian_pair_success",
    "guess_by_confidence",
    "newcomer_game",
    "population_prior",
    "rate_test",
]
