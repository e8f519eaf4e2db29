"""Secrets are made once, for their owner only, each service its own, and never written over."""

import stat
from itertools import combinations
from pathlib import Path

import pytest

from noisefloor_services.__main__ import main
from noisefloor_services.security.credentials import Credentials
from noisefloor_services.security.secret_files import SecretsExist, make_secrets
from noisefloor_services.settings import Settings


def test_the_folder_is_its_owners_and_the_files_are_read_only(tmp_path: Path) -> None:
    folder = tmp_path / "some" / "secrets"
    made = make_secrets(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()} == {0o444}
    assert set(made) == {one.name for one in folder.iterdir()}
    assert [one.name for one in folder.parent.iterdir()] == ["secrets"]


def test_two_runs_and_two_files_share_nothing(tmp_path: Path) -> None:
    words = []
    for name in ("one", "two"):
        make_secrets(tmp_path / name)
        for file in sorted((tmp_path / name).iterdir()):
            text = file.read_text().replace(":", " ").replace("@", " ")
            words.append({word for word in text.split() if len(word) >= 32})
    # A password stands in one address, and the monitor's in its file; users are hashes.
    assert all(words)
    assert not any(one & other for one, other in combinations(words, 2) if one is not other)


def test_a_service_reads_what_was_made(tmp_path: Path) -> None:
    made = make_secrets(tmp_path / "secrets")
    names = {one.removesuffix(".redis-url") for one in made if one.endswith(".redis-url")}
    assert names == {"ad-server", "aggregator", "model-publisher"}
    for name in names:
        files = {
            f"NOISEFLOOR_{variable}_FILE": str(tmp_path / "secrets" / f"{name}.{ending}")
            for variable, ending in (("REDIS_URL", "redis-url"), ("TOKENS", "tokens"))
        }
        settings = Settings.read(files)
        store = "ledger-store" if name == "model-publisher" else "store"
        assert settings.redis_url.endswith(f"@{store}:6379/0")
        assert isinstance(settings.credentials, Credentials)
        assert len(settings.credentials) >= 2


def test_nothing_is_written_over(tmp_path: Path) -> None:
    for place in (tmp_path / "folder", tmp_path / "file"):
        place.mkdir() if place.name == "folder" else place.write_text("mine")
        with pytest.raises(SecretsExist, match="already"):
            make_secrets(place)
    assert (tmp_path / "file").read_text() == "mine"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "folder"]


def test_the_command_names_the_files_and_shows_no_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "secrets"
    assert main(["make-secrets", str(folder)], {"NOISEFLOOR_REPORT_TOKENS": "on"}) == 0
    shown = capsys.readouterr()
    assert "store.acl" in shown.out
    assert (folder / "store.monitor").read_text().strip() not in shown.out
    assert "{tokens}" in (folder / "store.acl").read_text()
    assert main(["make-secrets", str(folder)], {}) == 2
    assert capsys.readouterr().err.startswith(f"noisefloor: {folder} is there already")


@pytest.mark.parametrize("arguments", [["make-secrets"], ["worker", "folder"]])
def test_a_folder_is_for_make_secrets_and_for_nothing_else(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments, {})
    assert caught.value.code == 2
