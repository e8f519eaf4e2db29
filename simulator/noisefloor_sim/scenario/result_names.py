"""The metrics and claims that gates may name: each pipeline declares its own.

A declared name may hold ``*``, which stands for what depends on the run: a day, an ad, a release.
The metrics of the generated world are declared here, because no pipeline measures them.
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from noisefloor.privacy import Neighbours
from noisefloor_sim.scenario.blocks import PipelineBlock
from noisefloor_sim.scenario.error_text import near_names, show
from noisefloor_sim.scenario.gates import ClaimGate, Gate

WORLD_METRICS = tuple(
    f"world.{name}"
    for name in (
        *("views_per_user_day", "impressions_per_user_day", "clicks_per_user_day"),
        *("devices_per_user", "ratings_per_user", "rating_mean", "silent_share", "left_share"),
        *("impressions_counted", "frames_sent", "frames_attempts", "frames_lost"),
        *("frames_given_up", "frames_delivered", "frames_counted", "frames_duplicate"),
        *("frames_late", "frames_dead", "longest_queue"),
    )
)


_LISTED = "No name is near it; metrics.csv and privacy.json of a run list what there is."


def is_declared(name: str, declared: tuple[str, ...]) -> bool:
    """Say whether a name is among the declared ones, or of the form of one."""
    return name in declared or any(fnmatchcase(name, form) for form in declared if "*" in form)


def metric_names(pipelines: Mapping[str, PipelineBlock]) -> tuple[str, ...]:
    """Return what a world with these pipelines measures, with the pipeline's name before it."""
    own = [f"{name}.{one}" for name, block in pipelines.items() for one in block.metric_names]
    return (*own, *WORLD_METRICS)


def claim_names(pipelines: Mapping[str, PipelineBlock]) -> tuple[str, ...]:
    """Return the mechanisms that these pipelines make claims about, as gates select them."""
    return tuple(
        f"claims.{name}.{one}" for name, block in pipelines.items() for one in block.claim_names
    )


def unknown_results(gate: Gate, pipelines: Mapping[str, PipelineBlock]) -> Iterator[str]:
    """Yield the rules that a gate breaks by naming what no pipeline of the scenario produces."""
    if not isinstance(gate, ClaimGate):
        yield from _unknown("metric", gate.metric, metric_names(pipelines))
        return
    pipeline, mechanism, neighbours = (*gate.selector, "*", "*")[:3]
    chosen = pipelines if pipeline == "*" else {pipeline: pipelines[pipeline]}
    if mechanism != "*":
        declared = [f"claims.{one}" for block in chosen.values() for one in block.claim_names]
        if not is_declared(f"claims.{mechanism}", tuple(declared)):
            yield from _unknown("claim", f"claims.{pipeline}.{mechanism}", claim_names(chosen))
    if neighbours != "*":
        yield from _unknown("relation", neighbours, tuple(one.value for one in Neighbours))


def _unknown(kind: str, name: str, declared: tuple[str, ...]) -> Iterator[str]:
    """Yield the rule that a name breaks which nothing goes by, with the names near it."""
    if not is_declared(name, declared):
        near = near_names(name, declared)
        listed = f"Near names: {', '.join(near)}." if near else _LISTED
        yield f"Unknown {kind} {show(name)}. {listed}"
