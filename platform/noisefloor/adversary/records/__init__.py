"""Attacks on collected records: what one response, or many, give away of a record."""

from noisefloor.adversary.records.candidates import RecordGame
from noisefloor.adversary.records.channels import MOST_REPORTS
from noisefloor.adversary.records.joint import attack_part
from noisefloor.adversary.records.piecewise import attack_pair
from noisefloor.adversary.records.printed import attack_class_zero, attack_printed_label
from noisefloor.adversary.records.priors import shares_of
from noisefloor.adversary.records.products import attack_products
from noisefloor.adversary.records.repeated_queries import attack_decisions
from noisefloor.adversary.records.responses import (
    attack_attribute,
)
from noisefloor.adversary.records.support_vector_attacks import (
    attack_members,
    collector_publisher,
    joint_publisher,
)

__all__ = [
    "MOST_REPORTS",
    "RecordGame",
    "attack_attribute",
    "attack_class_zero",
    "attack_decisions",
    "attack_members",
    "attack_pair",
    "attack_part",
    "attack_printed_label",
    "attack_products",
    "collector_publisher",
    "joint_publisher",
    "shares_of",
]
