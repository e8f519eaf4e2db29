"""The status of a topology says when frames that were promised do not count."""

import pytest

from noisefloor.wire.messages import ConservationReport
from noisefloor_sim.cli.services import print_status
from noisefloor_sim.deploy.status import DeploymentStatus, DurabilityStatus

ALARM = "1 frames were answered with 202 and do not count: their epoch was closed."


def status(alarms: list[str]) -> DeploymentStatus:
    outcomes = {"accepted": 9, "counted": 8, "duplicates": 0, "dead_letters": 0, "late": 1}
    refused = {"refused_closed": 3, "refused_again": 2, "refused_ahead": 4, "refused_full": 0}
    account = ConservationReport(
        **outcomes, **refused, pending=0, reports=80, missing=0, is_conserved=True, alarms=alarms
    )
    return DeploymentStatus(
        "here", "embedded", (), DurabilityStatus("disk", "Kept.", ()), account, ()
    )


def test_an_alarm_stands_in_the_verdict_and_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    quiet, loud = status([]), status([ALARM])
    assert quiet.verdict == "READY, CONSERVED."
    assert loud.verdict == f"READY, CONSERVED, ALARM: {ALARM}"
    assert loud.as_json()["conservation"]["alarms"] == [ALARM]
    print_status(loud)
    shown = capsys.readouterr().out
    assert f"ALARM: {ALARM}\n" in shown
    assert "5 for a closed epoch, 4 for one too far ahead, 0 for a full one" in shown
