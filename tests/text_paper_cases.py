"""Small plans and made-up cells of the reproduction about generated texts."""

from dataclasses import replace
from typing import Any

from noisefloor_sim.papers.text import printed, reproduction
from noisefloor_sim.papers.text.plans import QUICK, TextCell, TextRunPlan, cells_of

TINY = replace(
    QUICK,
    longest=8,
    records=0,
    vocabulary=24,
    embedding=4,
    hidden=4,
    batch=16,
    epochs=1.0,
    plain_epochs=1.0,
    inputs=10,
    compared=20,
    sample=10,
)
MANY = replace(TINY, splits=10)
MORE = ("anna", "smith", "paris", "london", "in", "with", "but", "not")
Pair = tuple[str, str]
GOOD, BAD = ("good", "great", "fine", "warm"), ("bad", "poor", "dull", "cold")


def scores(neg: float, pos: float) -> dict[str, list[float]]:
    return {name: [neg, pos] for name in printed.CLASSIFIERS}


def found_with(plan: TextRunPlan, more: dict[TextCell, dict[str, Any]]) -> dict[TextCell, Any]:
    """Return cells that are all alike, but for what is given of some, whatever their split."""
    none = {"epsilon": None, "delta": 0.0, "reason": "because"}
    found: dict[TextCell, Any] = {}
    for cell in cells_of(plan):
        proved: dict[str, Any] = {}
        if cell.epsilon:
            proved = {"weights": {"epsilon": 0.9 * cell.epsilon, "delta": 9e-6, "reason": ""}}
            small = {"epsilon": 0.05 * cell.epsilon, "delta": 5e-7, "reason": ""}
            proved |= dict.fromkeys(
                ("generalisation", "lengths"), none if cell.is_paper else small
            )
        found[cell] = {
            "f1": scores(60.0, 55.0),
            "judged": 1_000,
            "row_means": [1.0, 2.0, 3.0] * 40,
            "row_maxima": [10.0, 20.0, 30.0] * 40,
            "heat": [[1.0, 2.0], [3.0, 4.0]],
            "largest": [0.5, 0.25, 0.125] * 60,
            "proved": proved,
            "substituted": {"epsilon": 15.5, "delta": 1.8e-5, "reason": ""},
            "noise": 2.0,
            "different_lengths": 1,
            "samples": [],
            "seeds": {
                "delta": 0.0165,
                "labels": [{"pieces": 60, "texts": 1, "delta": 0.0165}] * 2,
            },
            **dict.fromkeys(("distinct_1", "distinct_2", "rare_share", "self_bleu"), 5.0),
            **dict.fromkeys(("vocabulary", "rare_kinds"), 100),
            **more.get(replace(cell, split=0), {}),
        }
    return found


def verdicts_of(found: dict[TextCell, Any], variant: str) -> dict[str, str]:
    _, judged = reproduction.judge_all(MANY, found)
    return {one.claim.key: one.verdict for one in judged[variant]}
