"""Targets: only services of ours, which are ready, are ever put under load."""

import pytest

from noisefloor.errors import BadParameter
from noisefloor_services.stress.sampler import LagSample
from noisefloor_services.stress.target import CountingSide, check_ready
from stub_service import READY, serving


def test_a_service_of_ours_that_is_ready_is_taken() -> None:
    with serving() as (port, _):
        check_ready(port, "ad server")


@pytest.mark.parametrize("ready", [{}, {"status": "ok"}, {"lacks": []}])
def test_a_server_of_anybody_else_is_refused(ready: dict[str, object]) -> None:
    with serving(ready=ready) as (port, _):
        with pytest.raises(BadParameter, match=f"target={port} a port at which our ad server"):
            check_ready(port, "ad server")


def test_a_port_at_which_nobody_listens_is_refused() -> None:
    with serving() as (port, _):
        pass
    with pytest.raises(BadParameter, match="answers /readyz"):
        check_ready(port, "ad server")


def test_what_waits_is_read_from_the_account_of_the_collection() -> None:
    with serving() as (port, service):
        service.judge(b"0" * 32)
        side = CountingSide(port, "stress-1", "token")
        assert side.lag() == LagSample(accepted=1, pending=0)
    assert side.lag() is None
    assert READY["lacks"] == []
