"""Private training of the ads' model in rounds: by bits, by Laplace noise, and spectral."""

from noisefloor.ads.training.bit_training import GRADIENT_BITS, BitTraining, gradient_bits_kind
from noisefloor.ads.training.columns import (
    GRADIENT_NOISE,
    GradientRows,
    SignPairs,
    gradient_noise_kind,
)
from noisefloor.ads.training.evaluation import (
    global_mean,
    hit_rate,
    item_means,
    mean_model,
    nonprivate,
    rmse,
)
from noisefloor.ads.training.factorisation import (
    AdModel,
    Ratings,
    Single,
    drift,
    fit_tastes,
    random_model,
)
from noisefloor.ads.training.fallback import means_instead, noise_over_signal, with_fallback
from noisefloor.ads.training.gradient_noise import GradientBound, GradientReport
from noisefloor.ads.training.laplace_training import LaplaceTraining, gradients
from noisefloor.ads.training.rounds import AdTraining, Broadcast, RoundReports, update_tastes
from noisefloor.ads.training.spectral_training import (
    RATED_BITS,
    RATING_AXES,
    RATING_DIRECTIONS,
    SpectralTraining,
    rated_bits_kind,
    rating_axes_kind,
    rating_directions_kind,
)

__all__ = [
    "GRADIENT_BITS",
    "GRADIENT_NOISE",
    "RATED_BITS",
    "RATING_AXES",
    "RATING_DIRECTIONS",
    "AdModel",
    "AdTraining",
    "BitTraining",
    "Broadcast",
    "GradientBound",
    "GradientReport",
    "GradientRows",
    "LaplaceTraining",
    "Ratings",
    "RoundReports",
    "SignPairs",
    "Single",
    "SpectralTraining",
    "drift",
    "fit_tastes",
    "global_mean",
    "gradient_bits_kind",
    "gradient_noise_kind",
    "gradients",
    "hit_rate",
    "item_means",
    "mean_model",
    "means_instead",
    "noise_over_signal",
    "nonprivate",
    "random_model",
    "rated_bits_kind",
    "rating_axes_kind",
    "rating_directions_kind",
    "rmse",
    "update_tastes",
    "with_fallback",
]
