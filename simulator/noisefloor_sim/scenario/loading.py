"""The one way from a file to a scenario: read, override, validate, try every point.

Values from the command line: ``--set key=value`` on top of what the file says.

The value is read as the same value would be in the file, lists and mappings in flow form
included. A key that the file does not have is added; lists are replaced as a whole.

A key that the file sweeps is set there: one value ends its axis, a list of values is its new axis.
Otherwise the axis would win at every point, and the setting would change nothing.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from noisefloor.errors import BadScenario, BadTable, Fault
from noisefloor_sim.scenario.blocks import Blocks
from noisefloor_sim.scenario.document import Document, Flaw, Path, get, paths, put, split
from noisefloor_sim.scenario.error_text import show, show_key
from noisefloor_sim.scenario.findings import Finding
from noisefloor_sim.scenario.gates import TrendGate, is_meant, parse_gate
from noisefloor_sim.scenario.hashing import resolved
from noisefloor_sim.scenario.model import Scenario
from noisefloor_sim.scenario.sweep import SweepPoint, expand
from noisefloor_sim.scenario.validation import validated
from noisefloor_sim.scenario.yaml_reader import read_file, read_text

_PLACE = "--set"


def override(document: Document, settings: Iterable[str]) -> Document:
    """Return a document with values set; the last one wins.

    Args:
        document: As read from the file.
        settings: Texts of the form ``key=value``.

    Raises:
        BadScenario: A text is not of that form, or the key leads nowhere; it names the key.
    """
    data, overridden = document.data, list(document.overridden)
    for setting in settings:
        key, path, value = _read(setting)
        try:
            data, places = _set(data, path, value)
        except ValueError as error:
            raise BadScenario(_PLACE, [Fault(show_key(key), str(error))]) from None
        overridden += places
    return Document(document.file, data, document.lines, tuple(overridden))


def _set(data: object, path: Path, value: object) -> tuple[object, tuple[Path, ...]]:
    """Return data with a value set, on its axis where the key is swept, and what was set.

    Raises:
        ValueError: The path leads through no section, or into one that is swept as a whole.
    """
    axes = get(data, ("sweep",))
    if path[0] == "sweep" or not isinstance(axes, Mapping):
        return put(data, path, value), (path,)
    key = ".".join(map(str, path))
    for outer in axes:
        if key.startswith(f"{outer}."):
            whole = show_key(outer)
            raise ValueError(f"Expected a key apart, but {whole} is swept; set sweep.{whole}.")
    if key in axes and _is_axis(value, axes[key]):
        place: Path = ("sweep", key)
        return put(data, place, value), (place,)
    ended = {key, *(".".join(map(str, (*path, *inner))) for inner in paths(value))}
    rest = {name: values for name, values in axes.items() if name not in ended}
    return put(put(data, ("sweep",), rest), path, value), (path,)


def _is_axis(value: object, before: object) -> bool:
    """Whether a value is a list of values for a key that takes those of its axis so far."""
    takes_lists = isinstance(before, tuple) and any(isinstance(one, tuple) for one in before)
    if not isinstance(value, tuple) or not takes_lists:
        return isinstance(value, tuple)
    return bool(value) and all(isinstance(one, tuple) for one in value)


def _read(setting: str) -> tuple[str, Path, object]:
    """Take a setting apart into its key, as written and as a path, and its value."""
    key, equals, text = setting.partition("=")
    key = key.strip()
    if not equals:
        rule = f"Expected key=value, got {show(setting)}."
        raise BadScenario(_PLACE, [Fault("", rule)])
    try:
        return key, split(key), read_text(text, _PLACE).data
    except BadScenario as error:
        raise BadScenario(_PLACE, [Fault(show_key(key), error.rule)]) from None
    except ValueError as error:
        raise BadScenario(_PLACE, [Fault(show_key(key), str(error))]) from None


def load(path: str | os.PathLike[str], blocks: Blocks, settings: Iterable[str] = ()) -> Scenario:
    """Read a scenario file.

    Args:
        path: Of the file.
        blocks: From a pipeline's name to the model of its block.
        settings: Values from the command line, ``key=value``, which win over the file.

    Raises:
        BadScenario: With file, key, rule and line; everything that is wrong is listed.
    """
    return _checked(override(read_file(path), settings), blocks)


@dataclass(frozen=True, slots=True)
class LoadedScenario:
    """A scenario with its points.

    Attributes:
        document: What was read, settings included: errors find their lines in it.
        scenario: The scenario.
        points: Of its sweep.
        skipped: Gates that no point matches because of settings; the file alone has such points.
    """

    document: Document
    scenario: Scenario
    points: tuple[SweepPoint, ...]
    skipped: tuple[str, ...]

    def check_files(self) -> None:
        """Open the files that the pipelines of the points name.

        Raises:
            BadScenario: One is missing or breaks a rule; names the key, the file and the rule.
        """
        blocks = {it for point in self.points for it in point.scenario.pipelines.items()}
        flaws = []
        for name, block in sorted(blocks, key=str):
            try:
                block.open_files()
            except BadTable as error:
                keys = [key for key, value in block if value == error.file]
                flaws.append(Flaw(("pipelines", name, *keys), str(error)))
        if flaws:
            raise self.document.error(flaws)


def load_points(
    path: str | os.PathLike[str], blocks: Blocks, settings: Sequence[str] = ()
) -> LoadedScenario:
    """Read a scenario file, and find the points that its gates are about.

    Args:
        path: Of the file.
        blocks: From a pipeline's name to the model of its block.
        settings: Values from the command line, ``key=value``, which win over the file.

    Raises:
        BadScenario: Also if no point matches a gate, with these settings and without.
    """
    file = read_file(path)
    document = override(file, settings)
    scenario = validated(document, blocks)
    points = expand(scenario, blocks, document)
    skipped, unmatched = unmatched_gates(scenario, points), unmatched_findings(scenario, points)
    if skipped or unmatched:
        alone = _unmatched_alone(file, blocks) if settings else {*skipped, *unmatched}
        flaws = [
            Flaw(("gates", index), _unmatched_rule(parse_gate(text)))
            for index, text in enumerate(scenario.gates)
            if text in skipped and text in alone
        ]
        flaws += [
            Flaw(("findings", index), _unmatched_rule(one.condition))
            for index, one in enumerate(scenario.findings)
            if one in unmatched and one in alone
        ]
        if flaws:
            raise document.error(flaws)
    return LoadedScenario(document, scenario, points, skipped)


def _unmatched_rule(gate: object) -> str:
    """Write the rule that a gate or finding breaks which no point of the sweep is meant by."""
    if isinstance(gate, TrendGate):
        return (
            f"Expected {gate.key} to be swept over two numbers or more, at points that it meets."
        )
    return "Expected a condition that some point of the sweep meets."


def _unmatched_alone(file: Document, blocks: Blocks) -> set[str | Finding]:
    """Return the gates and findings that no point of the file matches as it is."""
    try:
        scenario = validated(file, blocks)
        points = expand(scenario, blocks)
        return {*unmatched_gates(scenario, points), *unmatched_findings(scenario, points)}
    except BadScenario:  # settings complete the file: it has no points of its own to compare with
        return set()


def unmatched_findings(scenario: Scenario, points: Sequence[SweepPoint]) -> tuple[Finding, ...]:
    """Return the findings with conditions that no point meets."""
    data = {one.id: resolved(one.scenario) for one in points} if scenario.findings else {}
    return tuple(one for one in scenario.findings if not one.is_meant(data))


def unmatched_gates(scenario: Scenario, points: Sequence[SweepPoint]) -> tuple[str, ...]:
    """Return the gates with conditions that no point meets."""
    gates = {text: parse_gate(text) for text in scenario.gates}
    conditional = {
        text: gate for text, gate in gates.items() if gate.filters or isinstance(gate, TrendGate)
    }
    data = {one.id: resolved(one.scenario) for one in points} if conditional else {}
    return tuple(text for text, gate in conditional.items() if not is_meant(gate, data))


def loads(text: str, blocks: Blocks, file: str = "scenario") -> Scenario:
    """Read a scenario from a text; ``file`` is what errors call it."""
    return _checked(read_text(text, file), blocks)


def _checked(document: Document, blocks: Blocks) -> Scenario:
    """Validate, and expand once, so that no point of a sweep can fail later."""
    scenario = validated(document, blocks)
    expand(scenario, blocks, document)
    return scenario
