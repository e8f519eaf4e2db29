"""What a request says of a training of layers: read strictly, and planned without any text."""

from collections.abc import Iterable
from typing import Any, TypeAlias

from noisefloor.errors import BadParameter
from noisefloor.publication.fine_tuning import HeadSettings
from noisefloor.publication.fine_tuning.methods import (
    CLIPPING_RULES,
    METHODS,
    EncoderShapes,
    FineTuningPlan,
    HeadThenAdaptersPlan,
    MethodSettings,
)
from noisefloor.publication.methods.model_spec import ParameterReader
from noisefloor.publication.methods.text_plan import TextSpec
from noisefloor.publication.private_sgd import ParameterGroup, find_group

LayerTraining: TypeAlias = FineTuningPlan | HeadThenAdaptersPlan

BOTH = "head-then-adapters"
PLAIN = "plain"
TRAINS = (*(name for name in METHODS if name != "head"), BOTH)
"""What ``trains`` may be; a head alone is ``text-head``."""

SECOND = tuple(name for name, one in METHODS.items() if one.is_private and name != "head")
"""What a head may be followed by."""

FOLLOWED_BY = "ffa-lora"

_CLIPPED = ("clipping", "clip", "group_clips", "rates", "scales", "averaging")
HEAD_NAMES = ("adapters", "head_share", "head_steps", "head_clip", "head_learning_rate")
NAMES = (
    *("trains", "rank", "sparsity", "clipping", "clip", "group_clips", "steps", "batch"),
    *("optimiser", "learning_rate", "rates", "scales", "momentum", "weight_decay", "averaging"),
    *HEAD_NAMES,
)

MOST_STEPS, MOST_EPOCHS = 20_000, 200
STEPS, PLAIN_BATCH, AVERAGING, HEAD_SHARE = 60, 64, 0.5, 0.7
DEFAULT_RATES = "head=10"
_HEAD = HeadSettings()
_SETTINGS = MethodSettings(steps=1)

HELP = f"""`trains`, what is trained beside the head: `{"`, `".join(TRAINS)}`; `rank` of factors
(default 8) and `sparsity`, the share that masks leave out (default 0.3), where there are some;
`clipping`: `joint` (default), `equal`, `groups` or, for experiments, `printed`; `clip`, the norm
of one record's gradient (default 1); `group_clips`, norms of groups by name, for `groups`; `steps`
(default {STEPS}); `batch`, records a step on average (default all); `optimiser`: `adam` (default)
or `sgd`; `learning_rate` (default {_SETTINGS.learning_rate:g}); `rates`, multiples of it by groups
of parameters (default `{DEFAULT_RATES}`); `scales`, likewise, of gradients; `momentum` (default
{_SETTINGS.momentum:g}); `weight_decay`; `averaging`, the share of last steps whose weights are
averaged (default {AVERAGING:g}). For `{BOTH}`: `adapters`, what the head is followed by (default
{FOLLOWED_BY}); `head_share` of epsilon (default {HEAD_SHARE:g}), `head_steps`, `head_clip`,
`head_learning_rate` (defaults as `text-head`)."""


def plan_layers(reader: ParameterReader, spec: TextSpec, shapes: EncoderShapes) -> LayerTraining:
    """Plan what a request says, or refuse it: BadParameter names parameter and rule."""
    trains = reader.choice("trains", "", *TRAINS)
    if trains != BOTH:
        _refuse(reader, HEAD_NAMES, f"left out: it is for {BOTH} alone")
        if trains == PLAIN:
            _refuse(reader, _CLIPPED, "left out: nothing is clipped, scaled or averaged")
        settings = _settings(reader, spec, is_private=trains != PLAIN)
        plan = FineTuningPlan.of(trains, shapes, spec.cost, spec.declared_size, settings)
        _check_groups(plan)
        return plan
    adapters = reader.choice("adapters", FOLLOWED_BY, *SECOND)
    both = HeadThenAdaptersPlan.of(
        shapes,
        spec.cost,
        spec.declared_size,
        head=_head_settings(reader),
        adapters=_settings(reader, spec, is_private=True),
        method=adapters,
        head_share=reader.number("head_share", HEAD_SHARE, 0.01, 0.99),
    )
    _check_groups(both.adapters)
    return both


def _refuse(reader: ParameterReader, names: Iterable[str], rule: str) -> None:
    for name in names:
        if name in reader:
            raise BadParameter(name, "<value>", rule)


def _settings(reader: ParameterReader, spec: TextSpec, *, is_private: bool) -> MethodSettings:
    size = spec.declared_size
    batch = reader.whole("batch", size if is_private else min(PLAIN_BATCH, size), 1, size)
    steps = reader.whole("steps", STEPS, 1, MOST_STEPS)
    if steps * batch > MOST_EPOCHS * size:
        rule = f"so few that each record is seen {MOST_EPOCHS} times at most, on average"
        raise BadParameter("steps", steps, rule)
    return MethodSettings(
        rank=reader.whole("rank", 1, 1, 4096) if "rank" in reader else None,
        sparsity=reader.number("sparsity", 0.0, 0.0, 1.0) if "sparsity" in reader else None,
        batch=batch,
        steps=steps,
        **_descent(reader),
        **(_clipping(reader) | _weighing(reader) if is_private else {}),
    )


def _clipping(reader: ParameterReader) -> dict[str, Any]:  # Any: attributes of settings
    clips = _pairs(reader, "group_clips", "")
    rule = reader.choice("clipping", "joint", *CLIPPING_RULES)
    if clips and rule != "groups":
        raise BadParameter("group_clips", "<text>", "left out: it is for clipping 'groups'")
    clip = reader.number("clip", _SETTINGS.clip, 1e-3, 1e3)
    return {"clipping": rule, "clip": clip, "group_clips": tuple(clips.items())}


def _weighing(reader: ParameterReader) -> dict[str, Any]:  # Any: attributes of settings
    rates, scales = _pairs(reader, "rates", DEFAULT_RATES), _pairs(reader, "scales", "")
    groups = [
        ParameterGroup(name, scales.get(name, 1.0), rates.get(name, 1.0))
        for name in dict.fromkeys((*rates, *scales))
    ]
    averaging = reader.number("averaging", AVERAGING, 0.0, 1.0)
    return {"groups": tuple(groups), "averaging": averaging}


def _descent(reader: ParameterReader) -> dict[str, Any]:  # Any: attributes of settings
    return {
        "optimiser": reader.choice("optimiser", _SETTINGS.optimiser, "adam", "sgd"),
        "learning_rate": reader.number("learning_rate", _SETTINGS.learning_rate, 1e-7, 1e3),
        "momentum": reader.number("momentum", _SETTINGS.momentum, 0.0, 0.9999),
        "weight_decay": reader.number("weight_decay", _SETTINGS.weight_decay, 0.0, 1.0),
    }


def _head_settings(reader: ParameterReader) -> MethodSettings:
    return MethodSettings(
        steps=reader.whole("head_steps", _HEAD.steps, 1, MOST_STEPS),
        clip=reader.number("head_clip", _HEAD.clip, 1e-3, 1e3),
        learning_rate=reader.number("head_learning_rate", _HEAD.learning_rate, 1e-7, 1e3),
        optimiser="sgd",
        momentum=_HEAD.momentum,
        averaging=_HEAD.averaging,
    )


def _pairs(reader: ParameterReader, name: str, default: str) -> dict[str, float]:
    """Read ``head=10,layers.0=2``: a number for each name."""
    found: dict[str, float] = {}
    for part in reader.names(name, default):
        group, equals, number = part.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            equals = ""
        if not equals or group in found:
            raise BadParameter(name, "<text>", "NAME=NUMBER with commas between, each name once")
        found[group] = value
    return found


def _check_groups(plan: FineTuningPlan) -> None:
    """Refuse a group that nothing is in: it would be without effect."""
    trained = (*plan.trained, *plan.clip_groups)
    _check_names("rates", (group.name for group in plan.settings.groups), trained)
    _check_names("group_clips", (name for name, _ in plan.settings.group_clips), plan.clip_groups)


def _check_names(field: str, names: Iterable[str], trained: Iterable[str]) -> None:
    known = tuple(trained)
    for name in names:
        if all(find_group(one, [name]) is None for one in known):
            rule = "names of trained parameters or their starts, such as head or layers.0"
            raise BadParameter(field, "<text>", rule)
