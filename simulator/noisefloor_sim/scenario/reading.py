"""The text of a scenario, from a file, bytes or a string, into plain data with line numbers.

Refused here: more than 256 KiB, anything but UTF-8, text that is no YAML. What is refused inside
the YAML is said in ``building``. Every refusal is a ``BadScenario`` with file, key, rule and line.
"""

import os
from pathlib import Path as FilePath

import yaml

from noisefloor.errors import BadScenario, Fault
from noisefloor_sim.scenario.building import Builder, Refused
from noisefloor_sim.scenario.document import Document
from noisefloor_sim.scenario.keys import dotted
from noisefloor_sim.scenario.showing import show_name

MAX_BYTES = 256 * 1024
_TOO_LONG = f"Expected at most {MAX_BYTES} bytes (256 KiB), found more."


def read_file(path: str | os.PathLike[str]) -> Document:
    """Read a scenario file into plain data.

    Raises:
        BadScenario: It cannot be opened or read; the error says why and, if known, on which line.
    """
    file = show_name(os.fspath(path))
    try:
        with FilePath(path).open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise BadScenario(file, [Fault("", "Expected a file, found none.")]) from None
    except IsADirectoryError:
        raise BadScenario(file, [Fault("", "Expected a file, found a directory.")]) from None
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = getattr(error, "strerror", None) or "No file can have this name"
        rule = f"Expected a file that can be read. {reason}."
        raise BadScenario(file, [Fault("", rule)]) from None
    return read_bytes(raw, file)


def read_bytes(raw: bytes, file: str) -> Document:
    """Read the bytes of a scenario; ``file`` is what errors call it."""
    if len(raw) > MAX_BYTES:
        raise BadScenario(file, [Fault("", _TOO_LONG)])
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        rule = f"Expected UTF-8, found another encoding at byte {error.start}."
        raise BadScenario(file, [Fault("", rule, line)]) from None
    return read_text(text, file)


def read_text(text: str, file: str) -> Document:
    """Read the text of a scenario; ``file`` is what errors call it."""
    if len(text) > MAX_BYTES:
        raise BadScenario(file, [Fault("", _TOO_LONG)])
    builder = Builder(text)
    try:
        data = builder.document()
    except (Refused, yaml.YAMLError, ValueError) as error:
        line, rule = _explained(error, text)
        fault = Fault(dotted(builder.path), rule, line or builder.line)
        raise BadScenario(file, [fault]) from None
    return Document(file, data, builder.lines)


def _explained(error: Exception, text: str) -> tuple[int | None, str]:
    """Return the line, if the error knows it, and the rule that was broken."""
    match error:
        case Refused():
            return None, str(error)
        case yaml.reader.ReaderError():
            line = text.count("\n", 0, error.position) + 1
            return line, f"Expected text, found the character U+{error.character:04X}."
        case yaml.MarkedYAMLError():
            mark = error.problem_mark or error.context_mark
            problem = show_name((error.problem or error.context or "it cannot be read")[:200])
            return mark.line + 1 if mark else None, f"Expected YAML; {problem}."
    # PyYAML converts the numbers of escapes and of directives without a check.
    return None, "Expected YAML; a number in an escape or a directive is out of range."
