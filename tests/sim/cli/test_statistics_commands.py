"""`noisefloor statistics` closes epochs and reads batches of a running aggregator."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from redis import Redis

from live_apps import TOKENS, append, credentials
from noisefloor.errors import ServicesUnavailable
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.roles import Aggregator, CollectionConfig, ReportProtection
from noisefloor_services import aggregator
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_sim.cli import batch_reading
from noisefloor_sim.cli.commands import main
from served import served
from stream_cases import CLICKS, NOTES, frame

STATED = ReportProtection("UnaryEncoding", Guarantee(0.5, Neighbours.BIT))
COLLECTION = CollectionConfig(
    kinds={"clicks": CLICKS, "notes": NOTES}, minimum_batch=3, protections={"clicks": STATED}
)


class Called(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Commands:
    """Calls `noisefloor statistics` for one aggregator."""

    def __init__(self, url: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.url, self.folder, self._capsys = url, folder, capsys
        for role in (Role.READ, Role.ADMIN):
            file = folder / role.value
            file.write_text(TOKENS[role] + "\n")
            file.chmod(0o600)

    def __call__(self, *words: str, role: str = "read", url: str = "") -> Called:
        """Call it with an address and a token's file."""
        return self.plain(
            *words, "--address", url or self.url, "--token-file", str(self.folder / role)
        )

    def plain(self, *words: str) -> Called:
        """Call it as it is."""
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
            patch.setattr("sys.argv", ["noisefloor", "statistics", *words])
            main()
        found = self._capsys.readouterr()
        return Called(int(ended.value.code or 0), found.out, found.err)


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(tmp_path_factory.mktemp("store")) as made:
        yield made


@pytest.fixture
def commands(
    valkey: EmbeddedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Commands]:
    with Redis.from_url(valkey.url) as client:
        client.flushall()
    settings = Settings(redis_url=valkey.url, credentials=credentials(), minimum_batch=1)
    with served(aggregator.create(settings, COLLECTION)) as url:
        made = Commands(url, tmp_path, capsys)
        frames = [frame(kind, 0, one) for kind in (CLICKS, NOTES) for one in range(3)]
        made("close", "clicks", "7", role="admin")  # the windows are there
        append(settings, COLLECTION, [*frames, frame(CLICKS, 1, 0)])
        yield made


def expected(kind: str) -> bytes:
    role = Aggregator(COLLECTION.kinds.values(), terms=COLLECTION.terms)
    for one in range(3):
        role.apply(frame(COLLECTION.kinds[kind], 0, one))
    role.close(kind, 0)
    return role.answer(kind, 0)


def test_an_epoch_is_closed_and_read_with_its_parameters(commands: Commands) -> None:
    refused = commands("read", "clicks", "0")
    assert refused.code == 1 and refused.err.count("\n") == 1 and "is open" in refused.err
    for kind in ("clicks", "notes"):
        closed = commands("close", kind, "0", role="admin")
        assert (closed.code, closed.out) == (
            0,
            f"{kind} 0: closed with 6 reports; it can be read\n",
        )
    shown = commands("read", "clicks", "0")
    assert shown.code == 0
    for line in ("mechanism: UnaryEncoding", "epsilon: 0.5", "rows: 6", "threshold: 3"):
        assert f"  {line}\n" in shown.out
    as_json = commands("read", "clicks", "0", "--json")
    assert json.loads(as_json.out) == json.loads(expected("clicks"))
    rows = json.loads(commands("read", "notes", "0", "--json").out)
    assert (len(rows["columns"]["age"]), rows["parameters"]["mechanism"]) == (6, None)
    assert "mechanism: not stated" in commands("read", "notes", "0").out
    for kind in ("clicks", "notes"):
        out = commands.folder / f"{kind}.answer"
        for _ in range(2):
            assert commands("read", kind, "0", "--out", str(out)).code == 0
            assert out.read_bytes() == expected(kind)
    with pa.ipc.open_stream(out.read_bytes()) as reader:
        assert reader.read_next_batch().num_rows == 6


def test_a_batch_below_the_minimum_and_a_missing_role_are_refused_in_one_line(
    commands: Commands,
) -> None:
    closed = commands("close", "clicks", "1", role="admin")
    assert closed.code == 0 and "fewer reports than the minimum of 3" in closed.out
    out = commands.folder / "few"
    cases = {
        ("read", "clicks", "1", "--out", str(out)): "fewer reports than the minimum of 3",
        ("close", "clicks", "0"): "lacks the role admin",
        ("read", "tea", "0"): "no such kind",
        ("read", "clicks", "0", "--collection", "tea"): "no such collection",
    }
    for words, said in cases.items():
        found = commands(*words)
        assert (found.code, found.err.count("\n"), found.out) == (1, 1, ""), words
        assert said in found.err
    assert not out.exists()


def test_bad_input_ends_with_2_and_one_line(commands: Commands) -> None:
    file = commands.folder / "open"
    file.write_text("t" * 40)
    file.chmod(0o644)
    cases = [
        commands("read", "Clicks", "0"),
        commands("read", "clicks", "10000000000"),
        commands("read", "clicks", "0", "--collection", "a b"),
        commands("read", "clicks", "0", "--out", str(commands.folder / "no" / "file")),
        commands("read", "clicks", "0", role="open"),
        commands("read", "clicks", "0", role="nowhere"),
        commands("read", "clicks", "0", url="ftp://127.0.0.1"),
        commands("close", "clicks", "999", role="admin"),
        commands.plain("read", "clicks", "0", "--address", commands.url),
        commands.plain("read", "clicks", "0", "--token-file", str(file)),
        commands.plain("read", "clicks", "0", "--folder", str(commands.folder / "empty")),
    ]
    assert [(one.code, one.err.count("\n"), one.out) for one in cases] == [(2, 1, "")] * len(cases)


def test_an_aggregator_that_does_not_answer_is_said_to_be_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_reading, "PATIENCE_S", 0.0)
    file = tmp_path / "token"
    file.write_text("t" * 40)
    file.chmod(0o600)
    access = batch_reading.AggregatorAccess(tmp_path, "http://127.0.0.1:1", file)
    with pytest.raises(ServicesUnavailable, match="does not take part"):
        batch_reading.close(access, "clicks", 0, as_json=False)
