"""Settings are read once; an error names the variable and the rule and never the value."""

import dataclasses
import os
from pathlib import Path

import pytest

from noisefloor.privacy import Neighbours
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import BadSetting, Settings

TOKEN = "t" * 40


def test_nothing_set_is_the_defaults() -> None:
    others = {"NOISEFLOOR_PROFILE": "ci", "NOISEFLOOR_BACKBONE": "/models/tiny"}
    others |= {"NOISEFLOOR_PUBLIC_TEXTS": "/texts/public.tsv"}
    made = Settings.read({"PATH": "/bin", **others})
    assert (made.host, made.port, made.durability) == ("127.0.0.1", 0, "disk")
    assert len(made.credentials) == 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.port = 1  # type: ignore[misc]  # on purpose


def test_every_setting_is_read() -> None:
    given = {
        "HOST": "::1",
        "PORT": "8080",
        "REDIS_URL": "unix:///run/redis.sock",
        "DURABILITY": "memory",
        "PARTITIONS": "4",
        "HIGH_WATER": "100",
        "BODY_BYTES": "2048",
        "BODY_TIME_S": "0.5",
        "HEAD_BYTES": "4096",
        "HEAD_TIME_S": "2.5",
        "IDLE_TIME_S": "7",
        "CONNECTIONS": "99",
        "RATE": "2.5",
        "BURST": "7",
        "REPORT_TOKENS": "on",
        "MINIMUM_BATCH": "500",
        "LEDGER": "models",
        "LEDGER_EPSILON": "3.5",
        "LEDGER_DELTA": "1e-6",
        "LEDGER_NEIGHBOURS": "user",
        "LEDGER_ANCHOR": "/var/lib/noisefloor/anchor",
        "SIGNING_KEY_FILE": "/var/lib/noisefloor/signing.key",
        "EXPERIMENTS": "on",
        "LOG_LEVEL": "WARNING",
        "DATA_FOLDER": "/var/lib/noisefloor",
    }
    made = Settings.read({f"NOISEFLOOR_{name}": text for name, text in given.items()})
    assert (made.report_tokens, made.experiments) == (True, True)
    assert made.ledger_neighbours is Neighbours.USER
    assert made.data_folder == Path("/var/lib/noisefloor")
    assert (made.body_time_s, made.rate, made.ledger_delta) == (0.5, 2.5, 1e-6)
    default = Settings()
    fields = {one.name for one in dataclasses.fields(Settings)}
    assert {name.lower() for name in given} | {"credentials"} == fields
    assert all(getattr(made, name.lower()) != getattr(default, name.lower()) for name in given)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "70000"),
        ("PORT", "-1"),
        ("PORT", "٣"),
        ("PORT", ""),
        ("RATE", "nan"),
        ("RATE", "inf"),
        ("RATE", "0"),
        ("MINIMUM_BATCH", "0"),
        ("MINIMUM_BATCH", "1.5"),
        ("LEDGER_DELTA", "1.5"),
        ("LEDGER_EPSILON", "-1"),
        ("LEDGER_NEIGHBOURS", "enemy-value"),
        ("DURABILITY", "hope-value"),
        ("REDIS_URL", "http://user:secret-value@host"),
        ("DATA_FOLDER", "relative-value"),
        ("LEDGER_ANCHOR", "relative-value"),
        ("SIGNING_KEY_FILE", "relative-value"),
        ("SIGNING_KEY", "secret-value"),
        ("HOST", "a b"),
        ("LEDGER", "../value"),
        ("LOG_LEVEL", "DEBUG"),
        ("REPORT_TOKENS", "maybe-value"),
        ("TOKENS", f"a king {TOKEN}"),
        ("TOKENS_FILE", "/no/such/value"),
        ("REDIS_URL_FILE", "/no/such/value"),
        ("PROT", "8080"),
        ("SEED", "1"),
    ],
)
def test_an_error_names_the_variable_and_a_rule_and_no_value(name: str, value: str) -> None:
    with pytest.raises(BadSetting) as caught:
        Settings.read({f"NOISEFLOOR_{name}": value})
    assert str(caught.value).startswith(f"NOISEFLOOR_{name} ")
    assert caught.value.rule in str(caught.value)
    assert len(value) < 4 or value not in str(caught.value)
    assert "value" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_key_in_a_variable_is_refused_with_what_to_do() -> None:
    with pytest.raises(BadSetting, match="Name its file by NOISEFLOOR_SIGNING_KEY_FILE, and make"):
        Settings.read({"NOISEFLOOR_SIGNING_KEY": "noisefloor-signing-key-1 AAAA me"})


def test_tokens_come_from_a_variable_or_a_file_and_not_from_both(tmp_path: Path) -> None:
    line = f"tool admin,read {TOKEN}"
    file = tmp_path / "tokens"
    file.write_text(f"# tools\n{line}\n")
    file.chmod(0o600)
    inline = {"NOISEFLOOR_TOKENS": f"{line};other ledger {'u' * 40}"}
    named = {"NOISEFLOOR_TOKENS_FILE": str(file)}
    for environment, count in ((inline, 2), (named, 1)):
        made = Settings.read(environment)
        assert len(made.credentials) == count
        found = made.credentials.find(TOKEN)
        assert found is not None
        assert found.roles == {Role.ADMIN, Role.READ}
        assert TOKEN not in repr(made)
    with pytest.raises(BadSetting, match="exclude"):
        Settings.read({**inline, **named})
    file.chmod(0o622)
    with pytest.raises(BadSetting, match="chmod"):
        Settings.read(named)


def test_an_address_comes_from_a_variable_or_a_file_and_not_from_both(tmp_path: Path) -> None:
    file = tmp_path / "address"
    file.write_text("redis://u:hunter2@127.0.0.1:1/0\n")
    file.chmod(0o444)
    named = {"NOISEFLOOR_REDIS_URL_FILE": str(file)}
    made = Settings.read(named)
    assert made.redis_url == "redis://u:hunter2@127.0.0.1:1/0"
    assert "hunter2" not in repr(made)
    with pytest.raises(BadSetting, match="exclude"):
        Settings.read({**named, "NOISEFLOOR_REDIS_URL": "redis://127.0.0.1:1/0"})
    file.chmod(0o644)
    file.write_text("http://u:hunter2@127.0.0.1:1/0\n")
    with pytest.raises(
        BadSetting, match=r"^NOISEFLOOR_REDIS_URL_FILE has to be an address"
    ) as refusal:
        Settings.read(named)
    assert "hunter2" not in str(refusal.value)
    file.chmod(0o666)
    with pytest.raises(BadSetting, match="chmod"):
        Settings.read(named)


def test_a_password_in_an_address_is_not_shown() -> None:
    made = Settings.read({"NOISEFLOOR_REDIS_URL": "redis://u:hunter2@127.0.0.1:1/0"})
    assert "hunter2" not in repr(made)
    assert "hunter2" in made.redis_url
    assert "hunter2" not in os.environ.get("NOISEFLOOR_REDIS_URL", "")


def test_a_tap_is_refused() -> None:
    """Simulations read what crosses at their own end of the socket: a service has no tap."""
    with pytest.raises(BadSetting, match="NOISEFLOOR_TAP is not a setting"):
        Settings.read({"NOISEFLOOR_TAP": "on"})
