"""The operator's data sets: read and checked once, before the publisher takes requests."""

import re
from collections.abc import Sequence
from pathlib import Path

from noisefloor.errors import NoisefloorError
from noisefloor.tables import DataRecords, is_table_file, load_data

_NAME = re.compile(r"[a-z0-9-]{1,64}", re.ASCII)


class BadDataSet(NoisefloorError):
    """An argument does not name a data set."""


def read_data_sets(listed: Sequence[str], folder: Path | None = None) -> dict[str, DataRecords]:
    """Read data sets by their names.

    Args:
        listed: ``NAME`` (one of the registry) or ``NAME=FILE`` each.
        folder: Every table in it is a data set, too, by the name of its file.

    Raises:
        BadDataSet: A name breaks its rule, or came twice; or there is no such folder.
        NoisefloorError: A data set cannot be read; the text names file, column and rule, or the
            command that fetches it.
    """
    found: dict[str, DataRecords] = {}
    for argument in (*listed, *_of_folder(folder)):
        name, has_file, file = argument.partition("=")
        if not _NAME.fullmatch(name) or (has_file and not file):
            raise BadDataSet(
                "--data-set takes NAME or NAME=FILE; a name is lower-case letters, digits and "
                "hyphens, at most 64."
            )
        if name in found:
            raise BadDataSet(f"--data-set names {name} twice.")
        found[name] = load_data(file or name)
    return found


def _of_folder(folder: Path | None) -> list[str]:
    """Return the tables of a folder as ``NAME=FILE``."""
    if folder is None:
        return []
    try:
        tables = sorted(path for path in folder.iterdir() if is_table_file(path))
    except OSError as error:
        raise BadDataSet(f"--data-folder {folder}: {error.strerror}.") from None
    return [f"{path.stem}={path}" for path in tables]
