"""Fine-tuning in the world: whose texts came, what was released, and what its audit says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from finetuning_worlds import finetuning_world, run_finetuning
from noisefloor.errors import BadScenario, BadTable, NoisefloorError
from noisefloor.publication.fine_tuning import TextModelFile
from noisefloor_sim.pipelines import PIPELINES
from noisefloor_sim.pipelines.finetuning.text_assignment import UserTexts
from noisefloor_sim.runs.engine import Engine

AUDITED = {"attacks": ["finetuning.canary", "finetuning.members"]}
PRINTED = {"method": "lora", "clipping": "printed", "steps": 2}


def test_a_private_head_is_published_scored_and_proved() -> None:
    seen = run_finetuning({"steps": 20, "epsilon": 8.0}, **AUDITED)
    assert (seen.value("releases.made"), seen.value("data.made_up")) == (1, 1)
    accuracy = seen.metric("accuracy.last")
    assert accuracy.low <= accuracy.value <= accuracy.high
    assert accuracy.n == seen.pipeline.texts.is_test.sum() == 48
    assert seen.value("accuracy.open") > seen.value("accuracy.majority")
    assert {one: seen.claim(one).verdict for one in ("release", "members")} == {
        "release": "holds",
        "members": "holds",
    }
    file = TextModelFile.read(seen.pipeline.holder.releases[0].content)
    assert file.parameters == seen.value("training.updated") == seen.value("model.parameters")


def test_members_of_a_head_without_privacy_are_found_and_of_a_private_one_are_not() -> None:
    """Areas over 16 models of 40 texts; the planted one is several standard errors above."""
    seen = run_finetuning({"steps": 20, "epsilon": 8.0}, **AUDITED)
    assert seen.value("attack.planted.accuracy_members") == 1.0
    planted = seen.metric("attack.planted.auc")
    assert planted.low > 0.6
    assert planted.low > seen.metric("attack.lira.auc").high
    assert seen.metric("attack.null.auc").low < 0.5 < seen.metric("attack.null.auc").high
    assert seen.value("attack.lira.auc") < seen.value("attack.lira.auc_bound")


@pytest.mark.parametrize("method", ["combined-lora", "combined-rgp", "sparse"])
def test_releases_of_layers_carry_the_declared_noise_in_the_declared_coordinates(
    method: str,
) -> None:
    """False alarm 1e-9 each."""
    seen = run_finetuning({"method": method, "clipping": "groups", "clip": 0.2})
    (evidence,) = seen.found.flows
    assert (evidence.misfit, evidence.faults, evidence.verdict) == ("", (), "consistent")
    assert seen.value("residuals.planted_found") == seen.value("clipping.planted_found") == 1
    assert seen.value("clipping.filled") == seen.value("clipping.groups") > 1
    assert seen.value("clipping.coordinates") == seen.value("training.updated")
    assert seen.value("training.updated") < seen.value("model.parameters")
    assert seen.claim("release").verdict == "holds"


def test_clipping_as_printed_is_overclaimed_and_an_audit_says_so() -> None:
    seen = run_finetuning(PRINTED)
    claim = seen.claim("release")
    assert claim.audited is not None
    assert claim.claimed.epsilon == 2.0 < claim.audited.epsilon <= claim.proved.epsilon
    assert claim.verdict == "overclaimed"
    noised, most = seen.value("clipping.noised"), seen.value("clipping.sensitivity")
    assert seen.value("clipping.longest") == pytest.approx(most, rel=1e-3)
    assert noised == pytest.approx(most / np.sqrt(seen.value("clipping.groups")), rel=1e-3)
    assert seen.value("spent.debited") == 2.0, "the ledger debits what is claimed"
    assert seen.found.flows[0].verdict == "consistent", "the noise is what was said of it"


def test_budgets_are_kept_and_a_refused_release_leaves_no_model() -> None:
    seen = run_finetuning({"budget": 4.0, "epsilon": 2.0, "budget_delta": 3e-5}, days=4)
    assert seen.value("releases.made") + seen.value("releases.refused") == 4
    assert min(seen.value("releases.made"), seen.value("releases.refused") + 1) >= 2
    assert seen.value("spent.claimed") <= 4.0
    assert seen.claim("all_releases").verdict == "holds"


def test_a_text_that_is_kept_back_is_in_no_release() -> None:
    seen = run_finetuning({"method": "combined-lora", "clipping": "groups", "clip": 0.2})
    for release in seen.pipeline.holder.releases:
        assert not (release.owners & seen.pipeline.texts.is_test).any()


def test_frozen_layers_run_once_for_all_texts_and_methods() -> None:
    layers = {"method": "combined-lora"}
    run_finetuning({"steps": 5})
    store = run_finetuning({**layers, "steps": 5}).pipeline.frozen.store
    # Other tests of this process may have run other texts through the same encoder before.
    run_before = store.texts_run
    assert run_before, "once for a head, and once for trained layers"
    for again in ({"steps": 6}, {**layers, "steps": 6}):
        assert run_finetuning(again).pipeline.frozen.store is store
    assert store.texts_run == run_before, "the same texts went through frozen layers again"


def test_diagnostics_are_written_by_experiments_alone() -> None:
    plain = run_finetuning({"method": "combined-lora", "clipping": "groups", "clip": 0.2})
    assert not [one.name for one in plain.found.metrics if one.name.startswith("diagnostics")]
    shown = run_finetuning({"method": "combined-lora", "experiment": True})
    assert 0 < shown.value("diagnostics.mask_overlap") <= 1
    few, many = (shown.value(f"diagnostics.clipped.{one}") for one in ("masked", "unmasked"))
    assert few <= many <= shown.value("diagnostics.clipped.examples") == 21
    for number in range(21):
        kept, whole = (
            shown.value(f"diagnostics.clip_factor.{name}.example_{number}")
            for name in ("masked", "unmasked")
        )
        assert whole <= kept + 1e-6, "fewer coordinates are no longer"


REFUSED: dict[str, dict[str, Any]] = {
    "rank": {"rank": 4},
    "sparsity": {"method": "lora", "sparsity": 0.5},
    "clipping": {"method": "plain", "clipping": "equal"},
    "experiment": {"experiment": True},
    "source": {"source": "reviews.txt"},
    "method": {"method": "boosting"},
}


@pytest.mark.parametrize("key", REFUSED)
def test_settings_that_do_not_go_together_name_their_key(key: str) -> None:
    with pytest.raises(BadScenario) as refused:
        finetuning_world(REFUSED[key])
    assert f"pipelines.finetuning.{key}" in str(refused.value)


def test_own_files_are_read_and_too_few_texts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "remarks.tsv"
    rows = [f"a good film {number}\tgood\na bad film {number}\tbad" for number in range(60)]
    path.write_text("\n".join(["text\tmood", *rows, ""]), encoding="utf-8")
    schema = "record: one remark\ncolumns:\n  text: {text: 8}\n  mood: {categories: [bad, good]}\n"
    (tmp_path / "remarks.schema.yaml").write_text(f"{schema}label: mood\n", encoding="utf-8")
    texts = UserTexts.of(finetuning_world({"source": str(path)}))
    assert texts.users == 120
    assert len(set(texts.records.texts["text"])) == 120, "nobody shares a text"
    crowd = {"population": {"users": 121, "cohort": 64}}
    with pytest.raises(BadTable, match="121 users, found 120"):
        UserTexts.of(finetuning_world({"source": str(path)}, **crowd))


def test_a_backbone_that_is_missing_is_refused_before_a_day_has_passed(tmp_path: Path) -> None:
    scenario = finetuning_world({"backbone": str(tmp_path)})
    with pytest.raises(NoisefloorError, match=r"config\.json"):
        scenario.pipelines["finetuning"].open_files()
    with pytest.raises(NoisefloorError):
        Engine(scenario, PIPELINES)
