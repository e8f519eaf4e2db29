"""Where language models lie: fetched ones by name, and one directory of the publisher's own.

A fetched model is a file in GGUF. It is turned into a directory of transformers beside it, once:
the directory appears whole, with the SHA-256 of each of its files, which are checked each time
that the model is named.
"""

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

from noisefloor.errors import BadParameter, DamagedData, FetchFailed
from noisefloor.publication.text.language_models.gguf_directory import write_model_directory
from noisefloor.tables import DataSet, cache_folder, find_data_set, read_cached

DEFAULT_MODEL = "smollm2-135m"
"""A name of the registry of data sets: ``noisefloor data fetch smollm2-135m``."""

OWN = "own"
OWN_MODEL_VARIABLE = "NOISEFLOOR_LANGUAGE_MODEL"
"""Names the directory of a causal language model that this publisher knows to be public."""

_RECORD = "written.json"


def language_model_names() -> tuple[str, ...]:
    """Return what a request may name as a language model."""
    return (DEFAULT_MODEL, *((OWN,) if os.environ.get(OWN_MODEL_VARIABLE) else ()))


def language_model_folder(name: str) -> Path:
    """Return the directory of a language model, made on first use.

    Args:
        name: Of a fetched one, or ``own``: the directory that the environment names. Requests
            name no directories: those of a publisher are nobody else's to choose.

    Raises:
        BadParameter: There is none of that name.
        MissingData: It was not fetched; the text says how.
        MissingExtra: What reads it is not installed.
        DamagedData: It is not what was pinned.
    """
    if name not in language_model_names():
        names = ", ".join(language_model_names())
        rule = f"one of {names} (own: the directory in ${OWN_MODEL_VARIABLE})"
        raise BadParameter("language_model", "<text>", rule)
    if name == OWN:
        return Path(os.environ[OWN_MODEL_VARIABLE])
    return converted_folder(find_data_set(name))


def converted_folder(data_set: DataSet) -> Path:
    """Return the directory that a fetched file in GGUF was turned into; turn it if it was not."""
    (member,) = data_set.members
    source = cache_folder() / data_set.name / member.file
    folder = source.with_name(f"transformers-{member.sha256[:16]}")
    if not folder.is_dir():
        read_cached(data_set, member)  # its hash is checked: what is read next is what was pinned
        _convert(source, folder)
    _check(folder)
    return folder


def _convert(source: Path, folder: Path) -> None:
    """Write beside the target and move it there: a reader never sees half of it."""
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        write_model_directory(source, draft)
        record = {file.name: _sha256(file) for file in sorted(draft.iterdir())}
        (draft / _RECORD).write_text(json.dumps(record, indent=1) + "\n")
        draft.rename(folder)
    except OSError as error:
        if not folder.is_dir():  # otherwise another process was first, with the same content
            raise FetchFailed(f"{folder}: cannot be written: {error.strerror}.") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _check(folder: Path) -> None:
    """Refuse a directory whose files are not those that were written."""
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        if all(_sha256(folder / name) == digest for name, digest in record.items()):
            return
    except (OSError, ValueError, AttributeError):
        pass
    raise DamagedData(f"{folder}: is not what was written there. Remove it; it is made again.")


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
