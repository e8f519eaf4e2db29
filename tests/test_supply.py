"""The locks are complete, agree with the constraints, and have a hash for every file."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from image_contents import ROOT, normal_name, pins, requirements

LOCKS = ROOT / "locks"
SHIPPED_EXTRAS = ("services", "collection", "models", "text-models", "text", "text-lm")
_PIN = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[\w.!+]+)")
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
GOOD = f"Some.Name==1.2 \\\n    --hash=sha256:{'0a' * 32} \\\n    --hash=sha256:{'1b' * 32}\n"


def entries(text: str) -> list[list[str]]:
    """Return the words of every requirement or option of a lock."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [line.split() for line in joined.splitlines() if line.strip()]


def locked(text: str) -> dict[str, str]:
    """Return the versions of a lock by normalised name."""
    matches = [_PIN.fullmatch(words[0]) for words in entries(text)]
    return {normal_name(match["name"]): match["version"] for match in matches if match}


def faults(text: str, allowed: dict[str, str]) -> Iterator[str]:
    """Yield what is wrong with a lock, given the versions of the constraints."""
    if "://" in text:
        yield "names an address"
    for first, *hashes in entries(text):
        match = _PIN.fullmatch(first)
        if match is None:
            yield f"{first}: not NAME==VERSION"
        elif allowed.get(normal_name(match["name"])) != match["version"]:
            yield f"{first}: not the version of constraints.txt"
        if not hashes or not all(map(_HASH.fullmatch, hashes)):
            yield f"{first}: without a hash, or with something else"


@pytest.mark.parametrize("lock", sorted(LOCKS.glob("*.txt")), ids=lambda lock: str(lock.name))
def test_every_pin_is_that_of_the_constraints_and_has_a_hash(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    assert locked(text)
    assert list(faults(text, pins())) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("==1.2", "==1.3", "Some.Name==1.3: not the version"),
        ("Some.Name", "other", "other==1.2: not the version"),
        ("==1.2", ">=1.2", "Some.Name>=1.2: not NAME==VERSION"),
        ("==1.2", "==1.2; python_version<'4'", "not NAME==VERSION"),
        ("sha256:0a", "sha256:0", "Some.Name==1.2: without a hash"),
        ("sha256:", "md5:", "Some.Name==1.2: without a hash"),
        (GOOD, "some-name==1.2\n", "some-name==1.2: without a hash"),
        (GOOD, f"--index-url x\n{GOOD}", "--index-url: not NAME==VERSION"),
        (GOOD, f"# from https://example.org\n{GOOD}", "names an address"),
    ],
)
def test_a_fault_of_a_lock_is_found(old: str, new: str, fault: str) -> None:
    allowed = {"some-name": "1.2"}
    assert list(faults(GOOD, allowed)) == []
    assert [one for one in faults(GOOD.replace(old, new), allowed) if fault in one]


@pytest.mark.parametrize(
    ("lock", "extras"),
    [("services", ("services",)), ("shipped", SHIPPED_EXTRAS), ("dev", (*SHIPPED_EXTRAS, "dev"))],
)
def test_a_lock_has_all_that_its_extras_need_except_torch(
    lock: str, extras: tuple[str, ...]
) -> None:
    needed = {name for extra in extras for name in requirements(extra)} - {"torch", "noisefloor"}
    names = locked((LOCKS / f"{lock}.txt").read_text(encoding="utf-8"))
    assert sorted(needed - set(names)) == []
    assert "torch" not in names


def test_what_builds_the_wheel_and_torch_have_locks_of_their_own() -> None:
    one = {name: locked((LOCKS / name).read_text()) for name in ("build.txt", "torch.txt")}
    assert [*one["build.txt"]] == ["setuptools"]
    assert one["torch.txt"] == {"torch": pins()["torch"]}
