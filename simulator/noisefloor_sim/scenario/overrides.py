"""Values from the command line: ``--set key=value`` on top of what the file says.

The value is read as the same value would be in the file, lists and mappings in flow form
included. A key that the file does not have is added; lists are replaced as a whole.
"""

from collections.abc import Iterable

from noisefloor.errors import BadScenario, Fault
from noisefloor_sim.scenario.document import Document
from noisefloor_sim.scenario.keys import Path, put, split
from noisefloor_sim.scenario.reading import read_text
from noisefloor_sim.scenario.showing import show, show_key

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
            data = put(data, path, value)
        except ValueError as error:
            raise BadScenario(_PLACE, [Fault(show_key(key), str(error))]) from None
        overridden.append(path)
    return Document(document.file, data, document.lines, tuple(overridden))


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
