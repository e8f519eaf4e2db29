"""Where a word is: in which keys of a store, in which files, in which answers."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from redis import Redis

from noisefloor_services.store.embedded import EmbeddedServer


def keys_with(valkey: EmbeddedServer, word: str) -> set[str]:
    """Return the keys whose name or content has a word, in lower case; nothing may be packed."""
    sought = word.lower().encode()
    with Redis.from_url(valkey.url) as client:
        return {
            key.decode()
            for key in client.scan_iter(count=10_000)
            if sought in key.lower() or sought in (client.dump(key) or b"").lower()
        }


def files_with(valkey: EmbeddedServer, word: str) -> set[str]:
    """Return the suffixes of the store's files that have a word; it is made to write them all."""
    with Redis.from_url(valkey.url) as client:
        client.save()
    files = [path for path in valkey.folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} >= {".rdb", ".aof", ".log"}
    found = set()
    for path in files:
        with suppress(FileNotFoundError):  # a rewrite of the log has just taken its place
            if word.lower().encode() in path.read_bytes().lower():
                found.add(path.suffix[1:])
    return found


def texts_with(texts: Mapping[str, str], word: str) -> set[str]:
    """Return the names of texts that have a word."""
    return {name for name, text in texts.items() if word.lower() in text.lower()}


def folder_with(folder: Path, word: str) -> set[str]:
    """Return the files of a folder that have a word."""
    sought = word.lower().encode()
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.name for path in files if sought in path.read_bytes().lower()}
