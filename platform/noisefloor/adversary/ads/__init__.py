"""Attacks on advertising: requests, clicks and training, fake devices, and what finds them."""

from noisefloor.adversary.ads.detectors import (
    bit_bias_test,
    detection_rates,
    total_test,
    uniformity_test,
)
from noisefloor.adversary.ads.linking import LinkingGame
from noisefloor.adversary.ads.membership import MembershipGame
from noisefloor.adversary.ads.poisoning import (
    ReportSupport,
    concentrated_messages,
    crafted_bias,
    crafted_reports,
    crowd_bias,
    input_bias,
    mimic,
    mimic_bias,
    spread_bias,
    spread_messages,
    support_of,
)
from noisefloor.adversary.ads.request_inference import RequestGame
from noisefloor.adversary.ads.side_channel import guess_class
from noisefloor.adversary.ads.training_inference import candidate_values, play_pair

__all__ = [
    "LinkingGame",
    "MembershipGame",
    "ReportSupport",
    "RequestGame",
    "bit_bias_test",
    "candidate_values",
    "concentrated_messages",
    "crafted_bias",
    "crafted_reports",
    "crowd_bias",
    "detection_rates",
    "guess_class",
    "input_bias",
    "mimic",
    "mimic_bias",
    "play_pair",
    "spread_bias",
    "spread_messages",
    "support_of",
    "total_test",
    "uniformity_test",
]
