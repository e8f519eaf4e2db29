"""The data sets that a publisher was started with: read once, checked before anybody may ask."""

import re
from collections.abc import Sequence

from noisefloor.errors import NoisefloorError
from noisefloor.publication.records import Records, load_records

_NAME = re.compile(r"[a-z0-9-]{1,64}", re.ASCII)


class BadDataSet(NoisefloorError):
    """An argument does not name a data set."""


def read(listed: Sequence[str]) -> dict[str, Records]:
    """Read data sets from ``NAME`` (one of the registry) or ``NAME=FILE``, by their names.

    Raises:
        BadDataSet: A name breaks its rule, or came twice.
        NoisefloorError: A data set cannot be read; the text names file, column and rule, or the
            command that fetches it.
    """
    found: dict[str, Records] = {}
    for argument in listed:
        name, has_file, file = argument.partition("=")
        if not _NAME.fullmatch(name) or (has_file and not file):
            raise BadDataSet(
                "--data-set takes NAME or NAME=FILE; a name is lower-case letters, digits and "
                "hyphens, at most 64."
            )
        if name in found:
            raise BadDataSet(f"--data-set names {name} twice.")
        found[name] = load_records(file or name)
    return found
