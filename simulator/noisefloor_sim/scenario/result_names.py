"""The metrics and claims that gates may name: each pipeline declares its own.

A declared name may hold ``*``, which stands for what depends on the run: a day, an ad, a release.
The metrics of the generated world are declared here, because no pipeline measures them.
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from noisefloor.privacy import Neighbours
from noisefloor_sim.scenario.blocks import PipelineBlock
from noisefloor_sim.scenario.error_text import near_names, show
from noisefloor_sim.scenario.gates import ClaimGate, Gate, TrendGate

WORLD_METRICS = tuple(
    f"world.{name}"
    for name in (
        *("views_per_user_day", "impressions_per_user_day", "clicks_per_user_day"),
        "click_rate",
        *("devices_per_user", "ratings_per_user", "rating_mean", "silent_share", "left_share"),
        *("impressions_counted", "frames_sent", "frames_attempts", "frames_lost"),
        *("frames_given_up", "frames_delivered", "frames_counted", "frames_duplicate"),
        *("frames_late", "frames_dead", "longest_queue", "formula_coverage"),
    )
)
SPENDING_METRICS = tuple(
    f"world.{user}_user.{name}"
    for user in ("mean", "heaviest")
    for name in ("debited", "proved", "debited.day_*", "proved.day_*")
) + tuple(
    f"world.heaviest_user.{name}"
    for name in ("number", "own_debited", "most_debited", "releases.*")
)
"""What users have spent: in worlds with a pipeline that takes from their budgets."""

WORLD = "world"
"""What the findings of the world are called, beside those of the pipelines."""

HEAVIEST_USER = "heaviest-user"
"""The claim about the user of whose releases in the whole run the most is proved."""


_LISTED = "No name is near it; metrics.csv and privacy.json of a run list what there is."


def is_declared(name: str, declared: tuple[str, ...]) -> bool:
    """Say whether a name is among the declared ones, or of the form of one."""
    return name in declared or any(fnmatchcase(name, form) for form in declared if "*" in form)


def metric_names(pipelines: Mapping[str, PipelineBlock]) -> tuple[str, ...]:
    """Return what a world with these pipelines measures, with the pipeline's name before it."""
    own = [f"{name}.{one}" for name, block in pipelines.items() for one in block.metric_names]
    return (*own, *WORLD_METRICS, *(SPENDING_METRICS if _spends(pipelines) else ()))


def _spends(pipelines: Mapping[str, PipelineBlock]) -> bool:
    return any(block.spends_budgets for block in pipelines.values())


def claim_names(pipelines: Mapping[str, PipelineBlock]) -> tuple[str, ...]:
    """Return the mechanisms that these pipelines make claims about, as gates select them."""
    own = [
        f"claims.{name}.{one}" for name, block in pipelines.items() for one in block.claim_names
    ]
    return (*own, *([f"claims.{WORLD}.{HEAVIEST_USER}"] if _spends(pipelines) else ()))


def unknown_results(gate: Gate, pipelines: Mapping[str, PipelineBlock]) -> Iterator[str]:
    """Yield the rules that a gate breaks by naming what no pipeline of the scenario produces."""
    if isinstance(gate, TrendGate):
        measured = metric_names(pipelines)
        if not any(gate.selects(name) for name in measured):
            yield from _unknown("metric", gate.metric, measured)
        return
    if not isinstance(gate, ClaimGate):
        yield from _unknown("metric", gate.metric, metric_names(pipelines))
        return
    pipeline, mechanism, neighbours = (*gate.selector, "*", "*")[:3]
    names = [
        name
        for name in claim_names(pipelines)
        if pipeline == "*" or name.startswith(f"claims.{pipeline}.")
    ]
    if mechanism != "*" or not names:
        declared = tuple(f"claims.{name.split('.', 2)[2]}" for name in names)
        if not is_declared(f"claims.{mechanism}", declared):
            yield from _unknown("claim", f"claims.{pipeline}.{mechanism}", tuple(names))
    if neighbours != "*":
        yield from _unknown("relation", neighbours, tuple(one.value for one in Neighbours))


def _unknown(kind: str, name: str, declared: tuple[str, ...]) -> Iterator[str]:
    """Yield the rule that a name breaks which nothing goes by, with the names near it."""
    if not is_declared(name, declared):
        near = near_names(name, declared)
        listed = f"Near names: {', '.join(near)}." if near else _LISTED
        yield f"Unknown {kind} {show(name)}. {listed}"
