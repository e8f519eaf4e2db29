"""Key files: made once, read by their owner alone, and never shown."""

import base64
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.cards.signing import PublicKey, SigningKey, public_path, read_keys
from noisefloor.errors import BadKey, BadParameter
from properties import examples

# RFC 8032, section 7.1, test 2.
SEED = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
PUBLIC = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
SIGNED = bytes.fromhex(
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)


def test_signatures_are_those_of_the_standard() -> None:
    key = SigningKey(SEED, "rfc")
    assert key.public == PublicKey(PUBLIC, "rfc")
    assert key.sign(b"\x72") == SIGNED
    assert key.public.verifies(SIGNED, b"\x72")
    assert not key.public.verifies(SIGNED, b"\x73")
    assert not key.public.verifies(SIGNED[:-1], b"\x72")


def test_a_key_is_made_once_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "own.key"
    made = SigningKey.create(path, "Example, Inc.")
    assert SigningKey.read(path) == made
    assert read_keys(public_path(path)) == (made.public,)
    assert path.stat().st_mode & 0o777 == 0o600
    assert base64.b64encode(made.seed).decode() not in repr(made) + public_path(path).read_text()
    before = path.read_bytes()
    for missing in (path, public_path(path)):
        with pytest.raises(BadKey, match="never written over"):
            SigningKey.create(path, "other")
        missing.unlink()
        missing.write_bytes(b"")
    assert path.read_bytes() == b"" != before


def test_a_key_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.key"
    SigningKey.create(path, "own")
    for mode in (0o640, 0o604, 0o644, 0o620, 0o601, 0o777):
        path.chmod(mode)
        with pytest.raises(BadKey, match=r"own\.key: others than its owner .*: chmod 600\.$"):
            SigningKey.read(path)
    path.chmod(0o400)
    SigningKey.read(path)


def test_a_link_a_folder_a_pipe_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.key"
    SigningKey.create(path, "own")
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(path)
    os.mkfifo(pipe, 0o600)
    for wrong, rule in (
        (link, "is a link"),
        (pipe, "no regular file"),
        (tmp_path, "no regular file"),
        (tmp_path / "none", "cannot be read"),
    ):
        with pytest.raises(BadKey, match=rule):
            SigningKey.read(wrong)


@examples(40)
@given(content=st.binary(max_size=80))
def test_other_content_is_no_key_and_is_not_shown(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("keys") / "own.key"
    path.touch(0o600)
    for text in (content, b"noisefloor-signing-key-1 " + content, SigningKey(SEED, "x").sign(b"")):
        path.write_bytes(text)
        with pytest.raises(BadKey) as refused:
            SigningKey.read(path)
        assert "\n" not in str(refused.value)
        with pytest.raises(BadKey):
            read_keys(path)


def test_a_public_key_is_no_signing_key_and_the_other_way_round(tmp_path: Path) -> None:
    path = tmp_path / "own.key"
    SigningKey.create(path, "own")
    public_path(path).chmod(0o600)
    with pytest.raises(BadKey, match="noisefloor-signing-key-1 KEY NAME"):
        SigningKey.read(public_path(path))
    with pytest.raises(BadKey, match="noisefloor-key-1 KEY NAME"):
        read_keys(path)


def test_a_file_of_public_keys_holds_several(tmp_path: Path) -> None:
    keys = [SigningKey(bytes([n]) * 32, f"key {n}").public for n in range(3)]
    path = tmp_path / "trusted"
    path.write_text("# ours\n\n" + "".join(key.line for key in keys))
    assert read_keys(path) == tuple(keys)
    assert len({key.id for key in keys}) == 3
    path.write_text("# none\n")
    with pytest.raises(BadKey, match="at least one"):
        read_keys(str(path))


@pytest.mark.parametrize("name", ["", " a", "a ", "a\nb", "é", "a" * 101])
def test_a_name_is_one_line_of_printable_signs(name: str) -> None:
    with pytest.raises(BadParameter, match="name"):
        SigningKey(SEED, name)
